"""Captures and voids."""

from collections.abc import Mapping
from typing import Any, Final

from flask import Response

from payment_sandbox.operations import authorizations
from payment_sandbox.orders.lines import LineQuantity
from payment_sandbox.web.answers.responses import if_match, json_answer
from payment_sandbox.web.answers.transactions import TRANSACTION, transaction_record
from payment_sandbox.web.auth import project
from payment_sandbox.web.merchant import forms
from payment_sandbox.web.merchant.blueprint import TAKING, api
from payment_sandbox.web.merchant.reading import read_body
from payment_sandbox.web.routes import route

NOTHING: Final = forms.NothingForm()
BY_AMOUNT: Final = forms.ByAmountForm()
BY_LINES: Final = forms.ByLinesForm()
CHANGES_LEDGER: Final[Mapping[str, Any]] = {
    "answers": TRANSACTION.shape,
    "if_match": True,
    "errors": TAKING,
}
PATH: Final = "/orders/<order_id>/transactions/<transaction_id>"
LINES_EXAMPLE: Final = {"description": "First parcel", "order_lines": forms.LINES_EXAMPLE}


@route(
    api,
    "POST",
    f"{PATH}/captures/",
    reads=forms.NothingForm,
    **CHANGES_LEDGER,
    needs_body=False,
    example={},
)
def post_capture(order_id: str, transaction_id: str) -> Response:
    """Capture the full remaining amount."""
    read_body(project(), NOTHING, empty_is={})
    return _answered(order_id, transaction_id, authorizations.capture_rest())


@route(
    api,
    "POST",
    f"{PATH}/captures/amount/",
    reads=forms.ByAmountForm,
    **CHANGES_LEDGER,
    example={"amount": 500, "description": "First parcel"},
    rules={"amount": "SET-11", "description": "END-14"},
)
def post_capture_amount(order_id: str, transaction_id: str) -> Response:
    """Capture an amount."""
    data = read_body(project(), BY_AMOUNT)
    step = authorizations.capture_amount(data["amount"], data.get("description"))
    return _answered(order_id, transaction_id, step)


@route(
    api,
    "POST",
    f"{PATH}/captures/orderlines/",
    reads=forms.ByLinesForm,
    **CHANGES_LEDGER,
    example=LINES_EXAMPLE,
    rules={"order_lines": "END-13", "description": "END-13"},
)
def post_capture_lines(order_id: str, transaction_id: str) -> Response:
    """Capture order lines."""
    lines, description = _lines()
    return _answered(order_id, transaction_id, authorizations.capture_lines(lines, description))


@route(
    api,
    "POST",
    f"{PATH}/voids/amount/",
    reads=forms.ByAmountForm,
    **CHANGES_LEDGER,
    example={"amount": 500, "description": "Out of stock"},
    rules={"amount": "SET-11", "description": "END-16"},
)
def post_void_amount(order_id: str, transaction_id: str) -> Response:
    """Void an amount."""
    data = read_body(project(), BY_AMOUNT)
    step = authorizations.void_amount(data["amount"], data.get("description"))
    return _answered(order_id, transaction_id, step)


@route(
    api,
    "POST",
    f"{PATH}/voids/orderlines/",
    reads=forms.ByLinesForm,
    **CHANGES_LEDGER,
    example=LINES_EXAMPLE,
    rules={"order_lines": "END-15", "description": "END-15"},
)
def post_void_lines(order_id: str, transaction_id: str) -> Response:
    """Void order lines."""
    lines, description = _lines()
    return _answered(order_id, transaction_id, authorizations.void_lines(lines, description))


def _answered(order_id: str, transaction_id: str, step: authorizations.LedgerStep) -> Response:
    order, transaction = authorizations.apply_to_ledger(project(), order_id, transaction_id, step, if_match())
    return json_answer(transaction_record(project(), order, transaction))


def _lines() -> tuple[list[LineQuantity], str | None]:
    data = read_body(project(), BY_LINES)
    return [LineQuantity(**line) for line in data["order_lines"]], data.get("description")
