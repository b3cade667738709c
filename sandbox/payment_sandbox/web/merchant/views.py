"""The merchant API's routes: each loads, does one operation and answers."""

from flask import Blueprint, Response, request

from payment_sandbox.methods import BY_NAME, WITH_ISSUERS
from payment_sandbox.methods.banking import ISSUERS
from payment_sandbox.operations import authorizations
from payment_sandbox.operations.bank_qr import create_qr_request
from payment_sandbox.operations.cancel import cancel
from payment_sandbox.operations.create_order import create_order
from payment_sandbox.operations.refund import refund
from payment_sandbox.operations.update import update
from payment_sandbox.orders.lines import LineQuantity, total_cents
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Invalid, Unknown, Violation
from payment_sandbox.web.answers.orders import if_match, is_known, json_answer, order_answer
from payment_sandbox.web.answers.records import (
    AMOUNTS,
    DETAILS,
    ORDER_KEYS,
    amount_details,
    order_line_details,
    order_record,
    qr_record,
    transaction_record,
)
from payment_sandbox.web.auth import project
from payment_sandbox.web.bodies import json_object, line
from payment_sandbox.web.merchant import forms
from payment_sandbox.web.merchant.exchange import begin, finish
from payment_sandbox.web.merchant.reading import note_ignored, read_body, read_partly, warn

ORDER = forms.OrderForm()
UPDATE = forms.UpdateForm()
NOTHING = forms.NothingForm()
BY_AMOUNT = forms.ByAmountForm()
BY_LINES = forms.ByLinesForm()
REFUND = forms.RefundForm()
QR = forms.QrForm()
EXTRA_BLOCKS = {DETAILS: order_line_details, AMOUNTS: amount_details}
READ_ONLY = ORDER_KEYS - UPDATE.fields.keys()
COMPARED = READ_ONLY - EXTRA_BLOCKS.keys()

TRANSACTION = "/orders/<order_id>/transactions/<transaction_id>"

api = Blueprint("api", __name__, url_prefix="/v1")
api.before_request(begin)
api.after_request(finish)


@api.post("/orders/")
def post_order() -> Response:
    """Create an order."""
    here = project()
    data, violations = read_partly(here, ORDER)
    data.setdefault("client", {}).setdefault("user_agent", request.headers.get("User-Agent", ""))
    order = create_order(here, data, violations)
    _warn_of_sum(order)
    return order_answer(here, order, 201)


@api.get("/orders/<order_id>/")
def get_order(order_id: str) -> Response:
    """Read an order or refund, with extra blocks if asked for."""
    blocks = request.args.getlist("fields[]")
    _refuse_unknown_blocks(blocks)
    here = project()
    order = here.find_order(order_id)
    if is_known(here, order):
        return Response(status=304, headers={"ETag": f'"{here.epoch.etag(order)}"'})
    answer = order_answer(here, order)
    if blocks:
        answer.set_data(_with_blocks(order, blocks))
    return answer


@api.put("/orders/<order_id>/")
def put_order(order_id: str) -> Response:
    """Change an order; read-only keys that differ are ignored and named."""
    shown = order_record(project(), project().find_order(order_id))
    data, violations = read_partly(project(), UPDATE, also_known=READ_ONLY)
    note_ignored(
        *(key for key, value in json_object().items() if key in COMPARED and value != shown.get(key))
    )
    return order_answer(project(), update(project(), order_id, data, violations, if_match()))


@api.delete("/orders/<order_id>/")
def delete_order(order_id: str) -> Response:
    """Cancel an order."""
    return order_answer(project(), cancel(project(), order_id, if_match()))


@api.post("/orders/<order_id>/refunds/")
def post_refund(order_id: str) -> Response:
    """Refund an order."""
    data = read_body(project(), REFUND, empty_is={})
    done = refund(project(), order_id, data, if_match())
    if done.warning is not None:
        warn(done.warning)
    return order_answer(project(), done.record, 201)


@api.post(f"{TRANSACTION}/captures/")
def post_capture(order_id: str, transaction_id: str) -> Response:
    """Capture all that is left."""
    read_body(project(), NOTHING, empty_is={})
    return _take(order_id, transaction_id, authorizations.capture_rest())


@api.post(f"{TRANSACTION}/captures/amount/")
def post_capture_amount(order_id: str, transaction_id: str) -> Response:
    """Capture an amount."""
    data = read_body(project(), BY_AMOUNT)
    entry = authorizations.capture_amount(data["amount"], data.get("description"))
    return _take(order_id, transaction_id, entry)


@api.post(f"{TRANSACTION}/captures/orderlines/")
def post_capture_lines(order_id: str, transaction_id: str) -> Response:
    """Capture lines."""
    lines, description = _lines()
    return _take(order_id, transaction_id, authorizations.capture_lines(lines, description))


@api.post(f"{TRANSACTION}/voids/amount/")
def post_void_amount(order_id: str, transaction_id: str) -> Response:
    """Void an amount."""
    data = read_body(project(), BY_AMOUNT)
    entry = authorizations.void_amount(data["amount"], data.get("description"))
    return _take(order_id, transaction_id, entry)


@api.post(f"{TRANSACTION}/voids/orderlines/")
def post_void_lines(order_id: str, transaction_id: str) -> Response:
    """Void lines."""
    lines, description = _lines()
    return _take(order_id, transaction_id, authorizations.void_lines(lines, description))


@api.get("/<method_name>/issuers/")
def get_issuers(method_name: str) -> Response:
    """List the banks of online banking, under the method's name or an alias (CTL-02)."""
    if project().settings.method(method_name) != WITH_ISSUERS:
        raise Unknown(f"{method_name!r} is no payment method with issuers")
    return json_answer([issuer._asdict() for issuer in ISSUERS])


@api.get("/merchants/self/projects/self/currencies/")
def get_currencies() -> Response:
    """List the enabled methods and the currency of each."""
    enabled = project().settings.payment_methods
    return json_answer(
        {"payment_methods": {name: {"currencies": ["EUR"]} for name in BY_NAME if name in enabled}}
    )


@api.post("/bankqr/")
def post_qr() -> Response:
    """Create a QR request."""
    data, violations = read_partly(project(), QR)
    return json_answer(qr_record(project(), create_qr_request(project(), data, violations)), 201)


def _take(order_id: str, transaction_id: str, entry: authorizations.Take) -> Response:
    order, transaction = authorizations.take(project(), order_id, transaction_id, entry, if_match())
    return json_answer(transaction_record(project(), order, transaction))


def _lines() -> tuple[list[LineQuantity], str | None]:
    data = read_body(project(), BY_LINES)
    return [LineQuantity(**line) for line in data["order_lines"]], data.get("description")


def _refuse_unknown_blocks(blocks: list[str]) -> None:
    known = list(EXTRA_BLOCKS)
    unknown = [
        Violation("fields[]", f"{name!r} is no extra block", known) for name in blocks if name not in known
    ]
    if unknown:
        raise Invalid(unknown)


def _with_blocks(order: Order, blocks: list[str]) -> str:
    extra = {name: EXTRA_BLOCKS[name](order) for name in blocks}
    return line({**order_record(project(), order), **extra})


def _warn_of_sum(order: Order) -> None:
    lines_cents = total_cents(order.order_lines)
    if order.order_lines and lines_cents != order.amount_cents:
        warn(f"order_lines add up to {lines_cents} cents and amount is {order.amount_cents}")
