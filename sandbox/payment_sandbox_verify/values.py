"""The values to send for each field of a request, by its name or its type."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final, NamedTuple

from marshmallow import fields

from payment_sandbox.forms import Choice, Form
from payment_sandbox.forms.fields import (
    Anything,
    AnyValue,
    Birthdate,
    DateTime,
    Flag,
    PeriodText,
    WebUrl,
    Whole,
)
from payment_sandbox.forms.order_fields import CustomerForm
from payment_sandbox.methods import METHODS_BY_NAME
from payment_sandbox.web.answers.order_tables import OrderForm, OrderLineForm
from payment_sandbox.web.answers.qr_tables import QrForm
from payment_sandbox.web.answers.transaction_tables import DetailsForm, TransactionForm
from payment_sandbox_verify.answer import PATH_SEGMENT
from payment_sandbox_verify.samples import CARD, CODE, CUSTOMER, LINES, WALLET_WEB, sale, transaction_with
from payment_sandbox_verify.steps import CODES_PATH, ORDERS_PATH

Body = Mapping[str, Any]

LONG_TEXT: Final = "Wollsocken, größer als 42, für «Zoë» 🧦 " * 12
PERIODS: Final = ("PT45M", "P1M", "P1W", "PT60M", "P1Y2DT3H4M5S", "PT1S", "PT0S", "-PT5M", "P0D", "soon")
DATES: Final = ("1990-01-31", "2000-02-29", "31-01-1990", "1990-13-01", "19900131", "1990-1-31")
TIMES: Final = ("2031-05-04T12:00:00+00:00", "2031-05-04T14:00:00+02:00", "2031-05-04T12:00:00", "next year")
ADDRESSES: Final = (
    "https://shop.invalid/thanks?basket=7",
    f"https://shop.invalid/{'x' * 400}?a=1&b=%20",
    "no address",
    "/thanks",
)
ADDITIONAL: Final = {"address": "Teststraat 2", "address_type": "billing", "country": "NL"}
FREE_FORM: Final = ({"basket": [1, 2.5, None, {"gift": True}], "note": LONG_TEXT}, {"user_agent": "verify/1"})
VALUES_BY_NAME: Final[
    Mapping[str, Sequence[Any]]
] = {  # fields that hold objects, or texts of a form of their own
    "customer": ({}, "Jan"),
    "order_lines": ([], {}, [LINES[0]]),
    "transactions": ([], [transaction_with(CARD), transaction_with(CARD)], [5]),
    "payment_methods": ([CARD], [CARD, WALLET_WEB], ["cheque"], [], CARD),
    "payment_method": (*METHODS_BY_NAME, "cheque", "Credit-Card", ""),
    "payment_method_details": ({}, "x"),
    "phone_numbers": (["+31000000000", "020 1"], [], "+31000000000"),
    "additional_addresses": ([ADDITIONAL], [ADDITIONAL, ADDITIONAL], [{"country": "NLD"}], "Teststraat 2"),
    "country": ("NL", "BE", "de", "Netherlands", "N", "NLD", ""),
    "cvc": ("123", "12", ""),
}
OTHER_KINDS: Final = (5, ["x"], None, ...)
"""Values of other types; ``...`` omits the field."""
VALUES_BY_TYPE: Final[Sequence[tuple[Any, Sequence[Any]]]] = (
    (Flag, (True, False, "yes", 1, None)),
    (Anything, (*FREE_FORM, {}, 5, "x", None)),
    (PeriodText, (*PERIODS, *OTHER_KINDS)),
    (Birthdate, (*DATES, *OTHER_KINDS)),
    (DateTime, (*TIMES, *OTHER_KINDS)),
    (WebUrl, (*ADDRESSES, *OTHER_KINDS)),
    (AnyValue, ("1011 AB", 5, 1.5, False, ["x"], {"a": 1}, None, ...)),
    (fields.String, (LONG_TEXT, "A-1 €", "x" * 300, "", *OTHER_KINDS)),
)


def values_of(name: str, kind: Any) -> Iterator[Any]:
    """Yield the values to send for a field: both sides of each bound, each choice, and other types."""
    if name in VALUES_BY_NAME:
        yield from (*VALUES_BY_NAME[name], *OTHER_KINDS)
    elif isinstance(kind, Choice):
        first = kind.choices[0]
        spellings = dict.fromkeys((first.upper(), first.lower(), first.title(), "", "x"))
        yield from (*kind.choices, *(word for word in spellings if word not in kind.choices), *OTHER_KINDS)
    elif isinstance(kind, Whole):
        yield from (*_values_at_bounds(kind), 250, 1000, 1295, 12.95, "1295", True, None, ...)
    else:
        yield from next(values for field_type, values in VALUES_BY_TYPE if isinstance(kind, field_type))


def _values_at_bounds(kind: Whole) -> Iterator[int]:
    bounds = {getattr(each, side, None) or 0 for each in kind.validators for side in ("min", "max")}
    for bound in sorted(bounds):
        yield from (bound - 1, bound, bound + 1)


class FieldGroup(NamedTuple):
    """Fields of a form at a path of a body; each value is sent alone in this body."""

    name: str
    form: type[Form]
    below: str
    path: str
    body: Body


WITH_LINES: Final = sale(order_lines=LINES, customer=dict(CUSTOMER))
WITH_CARD: Final = sale(transaction_with(CARD))
GROUPS: Final = (
    FieldGroup("order", OrderForm, "", ORDERS_PATH, WITH_LINES),
    FieldGroup("customer", CustomerForm, "customer.", ORDERS_PATH, WITH_LINES),
    FieldGroup("line", OrderLineForm, "order_lines[0].", ORDERS_PATH, WITH_LINES),
    FieldGroup("transaction", TransactionForm, "transactions[0].", ORDERS_PATH, WITH_CARD),
    FieldGroup("card", DetailsForm, "transactions[0].payment_method_details.", ORDERS_PATH, WITH_CARD),
    FieldGroup("QR code", QrForm, "", CODES_PATH, CODE),
    FieldGroup("fixed QR code", QrForm, "", CODES_PATH, {**CODE, "amount_changeable": False}),
)


def with_value(body: Body, path: str, value: object) -> dict[str, Any]:
    """Return a copy of a body with another value at a path; ``...`` removes the field."""
    copy: dict[str, Any] = deepcopy(dict(body))
    parent: Any = copy
    steps = [int(index) if index else key for index, key in PATH_SEGMENT.findall(path)]
    for key in steps[:-1]:
        parent = parent.setdefault(key, {}) if isinstance(parent, dict) else parent[key]
    if value is ...:
        parent.pop(steps[-1], None)
    else:
        parent[steps[-1]] = value
    return copy
