"""Orders, captures, voids, refunds, issuers and QR requests, with the forms of their bodies."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from flask import Response

from payment_sandbox.forms import NOTHING, Cents, Choice, Form, FormPart, Items, NothingForm, Text, Whole
from payment_sandbox.forms.base import UnknownKey
from payment_sandbox.methods import METHODS_BY_NAME
from payment_sandbox.methods.common import Issuer
from payment_sandbox.operations import authorizations
from payment_sandbox.operations.bank_qr import create_qr_request
from payment_sandbox.operations.cancel import cancel
from payment_sandbox.operations.create_order import create_order
from payment_sandbox.operations.refund import refund
from payment_sandbox.operations.update import update
from payment_sandbox.orders.amounts import AMOUNT_CENTS_MAX
from payment_sandbox.orders.lines import LINES_MAX, LineQuantity
from payment_sandbox.orders.order import LOCALES, Order
from payment_sandbox.orders.refunds import REFUND_WITHOUT_AMOUNT
from payment_sandbox.orders.refusals import Invalid, Unknown, Violation
from payment_sandbox.projects.project import Project
from payment_sandbox.web.answers.order_tables import (
    AMOUNT_DETAILS_NAME,
    COMPARED_FIELDS,
    EXTRA_BLOCKS,
    FIELD_RULES,
    LINE_DETAILS_NAME,
    ORDER,
    READ_ONLY_FIELDS,
    OrderForm,
    UpdateForm,
    order_record,
)
from payment_sandbox.web.answers.qr_tables import QR, QrForm, qr_record
from payment_sandbox.web.answers.records import Currencies, OwnProject
from payment_sandbox.web.answers.responses import (
    client_has_version,
    if_match,
    json_answer,
    order_answer,
    unchanged_answer,
)
from payment_sandbox.web.answers.transaction_tables import TRANSACTION, DetailsForm, transaction_record
from payment_sandbox.web.bodies import json_line, json_object
from payment_sandbox.web.call import Call
from payment_sandbox.web.merchant.merchant_blueprint import BODY_ERRORS, CHANGE_ERRORS, merchant
from payment_sandbox.web.merchant.order_warnings import warnings_about
from payment_sandbox.web.merchant.reading import (
    handle_unknown,
    note_ignored,
    query_values,
    read_body,
    read_valid_fields,
    warn,
)
from payment_sandbox.web.routes import route

api_route: Final = partial(route, merchant, group="api")
LINE_QUANTITIES: Final = [{"merchant_order_line_id": "line-1", "quantity": 1}]


class LineQuantityForm(Form):
    """A quantity of an order line."""

    merchant_order_line_id = Text(required=True, about="The order line's merchant_order_line_id.")
    quantity = Whole(low=1, high=AMOUNT_CENTS_MAX, required=True, about="The number of items.")


class ByAmountForm(Form):
    """A capture or void by amount."""

    description = Text(about="Stored with the capture or void.")
    amount = Cents(required=True, about="Cents; at most the remaining amount.")


class ByLinesForm(Form):
    """A capture or void by lines."""

    description = Text(about="Stored with the capture or void.")
    order_lines = Items(
        FormPart(LineQuantityForm),
        least=1,
        most=LINES_MAX,
        required=True,
        about="Lines and quantities; at most the remaining quantities.",
    )


class RefundForm(Form):
    """A refund by amount, by lines or both; an empty body refunds the full remaining amount."""

    description = Text(about="Stored with the refund.")
    amount = Cents(
        about="Cents; at most the captured amount not yet refunded. Takes precedence over order_lines."
    )
    order_lines = Items(
        FormPart(LineQuantityForm),
        least=1,
        most=LINES_MAX,
        about="Lines and quantities; required for invoice-later-b.",
    )


BLOCKS_FIELD: Final = Items(
    Choice((LINE_DETAILS_NAME, AMOUNT_DETAILS_NAME)), about="Extra blocks to include."
)
OrderQuery: Final = type(
    "OrderQuery",
    (Form,),
    {"__doc__": "Extra blocks to include.", "__module__": __name__, "fields[]": BLOCKS_FIELD},
)

ORDER_FORM: Final = OrderForm()
UPDATE_FORM: Final = UpdateForm()
DETAILS_FORM: Final = DetailsForm()
REFUND_FORM: Final = RefundForm()
QR_FORM: Final = QrForm()
ORDER_EXAMPLE: Final = {
    "currency": "EUR",
    "amount": 1295,
    "merchant_order_id": "shop-1001",
    "description": "Two pairs of socks",
    "return_url": "https://shop.example/thanks",
    "webhook_url": "https://shop.example/webhook",
    "customer": {"email_address": "jan@example.com", "country": "NL", "locale": "nl"},
    "order_lines": [
        {"merchant_order_line_id": "line-1", "name": "Socks", "amount": 500, "quantity": 2},
        {"merchant_order_line_id": "line-2", "name": "Postage", "amount": 295, "quantity": 1},
    ],
    "transactions": [{"payment_method": "credit-card", "capture_mode": "manual", "expiration_period": "P7D"}],
}


@api_route(
    "POST",
    "/orders/",
    reads=OrderForm,
    answers=ORDER.shape,
    status=201,
    errors=(*BODY_ERRORS, 409),
    example=ORDER_EXAMPLE,
    rules=FIELD_RULES,
)
def post_order(call: Call) -> Response:
    """Create an order."""
    project = call.project
    _ignore_unknown_locale(call)
    data, violations = read_valid_fields(call, ORDER_FORM)
    violations += handle_unknown(call, [*_details_of_other_methods(project, data)])
    user_agent = project.masking.mask_text(call.request.environ.get("HTTP_USER_AGENT", ""))  # not echoed
    data.setdefault("client", {}).setdefault("user_agent", user_agent)
    order = create_order(project, data, violations)
    for sentence in warnings_about(order):
        warn(call, sentence)
    return order_answer(call, order, 201)


@api_route(
    "GET",
    "/orders/<order_id>/",
    answers=ORDER.shape,
    query=OrderQuery,
    errors=(400, 401, 404),
    rules={"fields[]": "END-04"},
    without_body=(304,),
)
def get_order(call: Call, order_id: str) -> Response:
    """Get an order or a refund, optionally with extra blocks."""
    blocks = query_values(call, "fields[]")
    _refuse_unknown_blocks(blocks)
    project, order = call.project, call.project.find_order(order_id)
    if client_has_version(call, order):
        return unchanged_answer(project, order)
    answer = order_answer(call, order)
    if blocks:
        answer.set_data(_with_blocks(project, order, blocks))
    return answer


@api_route(
    "PUT",
    "/orders/<order_id>/",
    reads=UpdateForm,
    answers=ORDER.shape,
    if_match=True,
    errors=CHANGE_ERRORS,
    example={"description": "Two pairs of socks, blue"},
    rules=FIELD_RULES,
)
def put_order(call: Call, order_id: str) -> Response:
    """Update an order; changed read-only keys are ignored and named in a header."""
    project = call.project
    shown = order_record(project, project.find_order(order_id))
    _ignore_unknown_locale(call)
    data, violations = read_valid_fields(call, UPDATE_FORM, also_known=READ_ONLY_FIELDS)
    sent = json_object(call)
    note_ignored(call, *(key for key in sent if key in COMPARED_FIELDS and sent[key] != shown.get(key)))
    order = update(project, order_id, data, violations, if_match(call))
    for sentence in warnings_about(order, data):
        warn(call, sentence)
    return order_answer(call, order)


@api_route("DELETE", "/orders/<order_id>/", answers=ORDER.shape, if_match=True, errors=(401, 404, 409, 412))
def delete_order(call: Call, order_id: str) -> Response:
    """Cancel an order."""
    return order_answer(call, cancel(call.project, order_id, if_match(call)))


@api_route(
    "POST",
    "/orders/<order_id>/refunds/",
    reads=RefundForm,
    answers=ORDER.shape,
    status=201,
    needs_body=False,
    if_match=True,
    errors=CHANGE_ERRORS,
    example={"amount": 500, "description": "One pair came back"},
    rules={"amount": "SET-49", "order_lines": "END-08", "description": "END-10"},
)
def post_refund(call: Call, order_id: str) -> Response:
    """Refund an order."""
    data = read_body(call, REFUND_FORM, empty_is={})
    result = refund(call.project, order_id, data, if_match(call))
    if result.warning is not None:
        warn(call, result.warning)
    if (
        "amount" not in data
        and not METHODS_BY_NAME[result.record.transactions[0].method].capabilities.refunds_by_lines
    ):
        warn(call, REFUND_WITHOUT_AMOUNT)
    return order_answer(call, result.record, 201)


@api_route("GET", "/<method_name>/issuers/", answers=Issuer, is_list=True, errors=(401, 404))
def get_issuers(call: Call, method_name: str) -> Response:
    """List the banks of an online banking method, by the method's name or alias (CTL-02)."""
    method = METHODS_BY_NAME.get(call.project.settings.method(method_name) or "")
    if method is None or not method.capabilities.has_issuers:
        raise Unknown(f"{method_name!r} is not a payment method with issuers")
    return json_answer([issuer._asdict() for issuer in call.project.settings.banks])


@api_route("GET", "/merchants/self/projects/self/currencies/", answers=Currencies)
def get_currencies(call: Call) -> Response:
    """List the enabled payment methods and their currencies."""
    enabled = call.project.settings.payment_methods
    return json_answer(
        {"payment_methods": {name: {"currencies": ["EUR"]} for name in METHODS_BY_NAME if name in enabled}}
    )


@api_route("GET", "/merchants/self/projects/self/", answers=OwnProject)
def get_own_project(call: Call) -> Response:
    """Describe the project and its enabled payment methods, as plugins read them (A72)."""
    return json_answer(_own_project(call.project))


def _own_project(project: Project) -> OwnProject:
    settings = project.settings
    enabled = (name for name in METHODS_BY_NAME if name in settings.payment_methods)
    return {
        "id": project.project_id,
        "name": settings.name,
        "status": "active-testing" if settings.is_test else "active",
        "permissions": {f"/payment-methods/{name}/": {"POST": True} for name in enabled},
    }


@api_route(
    "POST",
    "/bankqr/",
    reads=QrForm,
    answers=QR.shape,
    status=201,
    errors=BODY_ERRORS,
    example={"amount": 1295, "description": "Coffee", "size": 300},
    rules=QR.rules(),
)
def post_qr(call: Call) -> Response:
    """Create a bank QR request."""
    data, violations = read_valid_fields(call, QR_FORM)
    return json_answer(qr_record(call.project, create_qr_request(call.project, data, violations)), 201)


def _refuse_unknown_blocks(blocks: list[str]) -> None:
    known = list(EXTRA_BLOCKS)
    unknown = [
        Violation("fields[]", f"{name!r} is not an extra block", known)
        for name in blocks
        if name not in known
    ]
    if unknown:
        raise Invalid(unknown)


def _with_blocks(project: Project, order: Order, blocks: list[str]) -> str:
    extra = {name: EXTRA_BLOCKS[name](order) for name in blocks}
    return json_line({**order_record(project, order), **extra})


def _ignore_unknown_locale(call: Call) -> None:
    """Drop a locale that is not allowed, if the project's settings ignore it (A63)."""
    if call.project.settings.unknown_locale != "ignore":
        return
    body = json_object(call)
    customer = body.get("customer")
    locale = customer.get("locale") if isinstance(customer, Mapping) else None
    if isinstance(customer, Mapping) and isinstance(locale, str) and locale not in LOCALES:
        known = {name: value for name, value in customer.items() if name != "locale"}
        call.body = {**body, "customer": known}
        note_ignored(call, "customer.locale")


def _details_of_other_methods(project: Project, data: Mapping[str, Any]) -> Iterator[UnknownKey]:
    """Yield the details in a request that are unknown to its payment method."""
    for index, transaction in enumerate(data.get("transactions", ())):
        sent = transaction.get("payment_method_details")
        method = project.settings.method(str(transaction.get("payment_method"))) if sent else None
        if method is not None:
            details = METHODS_BY_NAME[method].capabilities.details
            known = {field.name: DETAILS_FORM.load_fields[field.name] for field in details}
            for name, value in sent.items():
                if name not in known:
                    path = f"transactions[{index}].payment_method_details.{name}"
                    yield UnknownKey(path, name, known, value)


BY_AMOUNT_FORM: Final = ByAmountForm()
BY_LINES_FORM: Final = ByLinesForm()
LEDGER_FACTS: Final[Mapping[str, Any]] = {
    "answers": TRANSACTION.shape,
    "if_match": True,
    "errors": CHANGE_ERRORS,
}
TRANSACTION_PATH: Final = "/orders/<order_id>/transactions/<transaction_id>"
LINES_EXAMPLE: Final = {"description": "First parcel", "order_lines": LINE_QUANTITIES}


@api_route(
    "POST",
    f"{TRANSACTION_PATH}/captures/",
    reads=NothingForm,
    **LEDGER_FACTS,
    needs_body=False,
    example={},
)
def post_capture(call: Call, order_id: str, transaction_id: str) -> Response:
    """Capture the full remaining amount."""
    read_body(call, NOTHING, empty_is={})
    return _apply_step(call, order_id, transaction_id, authorizations.capture_remainder())


@api_route(
    "POST",
    f"{TRANSACTION_PATH}/captures/amount/",
    reads=ByAmountForm,
    **LEDGER_FACTS,
    example={"amount": 500, "description": "First parcel"},
    rules={"amount": "SET-11", "description": "END-14"},
)
def post_capture_amount(call: Call, order_id: str, transaction_id: str) -> Response:
    """Capture an amount."""
    data = read_body(call, BY_AMOUNT_FORM)
    step = authorizations.capture_amount(data["amount"], data.get("description"))
    return _apply_step(call, order_id, transaction_id, step)


@api_route(
    "POST",
    f"{TRANSACTION_PATH}/captures/orderlines/",
    reads=ByLinesForm,
    **LEDGER_FACTS,
    example=LINES_EXAMPLE,
    rules={"order_lines": "END-13", "description": "END-13"},
)
def post_capture_lines(call: Call, order_id: str, transaction_id: str) -> Response:
    """Capture order lines."""
    lines, description = _read_lines(call)
    return _apply_step(call, order_id, transaction_id, authorizations.capture_lines(lines, description))


@api_route(
    "POST",
    f"{TRANSACTION_PATH}/voids/amount/",
    reads=ByAmountForm,
    **LEDGER_FACTS,
    example={"amount": 500, "description": "Out of stock"},
    rules={"amount": "SET-11", "description": "END-16"},
)
def post_void_amount(call: Call, order_id: str, transaction_id: str) -> Response:
    """Void an amount."""
    data = read_body(call, BY_AMOUNT_FORM)
    step = authorizations.void_amount(data["amount"], data.get("description"))
    return _apply_step(call, order_id, transaction_id, step)


@api_route(
    "POST",
    f"{TRANSACTION_PATH}/voids/orderlines/",
    reads=ByLinesForm,
    **LEDGER_FACTS,
    example=LINES_EXAMPLE,
    rules={"order_lines": "END-15", "description": "END-15"},
)
def post_void_lines(call: Call, order_id: str, transaction_id: str) -> Response:
    """Void order lines."""
    lines, description = _read_lines(call)
    return _apply_step(call, order_id, transaction_id, authorizations.void_lines(lines, description))


def _apply_step(call: Call, order_id: str, transaction_id: str, step: authorizations.LedgerStep) -> Response:
    order, transaction = authorizations.apply_to_ledger(
        call.project, order_id, transaction_id, step, if_match(call)
    )
    return json_answer(transaction_record(call.project, order, transaction))


def _read_lines(call: Call) -> tuple[list[LineQuantity], str | None]:
    data = read_body(call, BY_LINES_FORM)
    return [LineQuantity(**line) for line in data["order_lines"]], data.get("description")
