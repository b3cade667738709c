"""The generated scenes: each field with each kind of value, and each call in each state of an order."""

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
from payment_sandbox.web.answers.order_tables import OrderForm, OrderLineForm, UpdateForm
from payment_sandbox.web.answers.qr_tables import QrForm
from payment_sandbox.web.answers.transaction_tables import DetailsForm, TransactionForm
from payment_sandbox_verify.answer import PATH_SEGMENT
from payment_sandbox_verify.rules import (
    OTHER_PERIOD_RULE,
    PERIOD_RULES,
    VISIT_RULES,
    initial_rules,
    rule_of_path,
)
from payment_sandbox_verify.samples import (
    CARD,
    CUSTOMER,
    LINES,
    LINES_TOTAL,
    MARKER,
    WALLET_WEB,
    WEBHOOK_URL,
    line_quantity,
    sale,
    transaction_with,
)
from payment_sandbox_verify.steps import (
    CODES_PATH,
    ORDER_PATH,
    ORDERS_PATH,
    ApiCall,
    ConversationScene,
    ConversationStep,
    Customer,
    Pause,
)

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


CODE: Final[Body] = {
    "currency": "EUR",
    "amount": 1000,
    "amount_changeable": True,
    "description": MARKER,
    "webhook_url": WEBHOOK_URL,
}
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


def field_scenes() -> Iterator[ConversationScene]:
    """Yield a scene for each field: an order or a code for each value, which is read back."""
    for group in GROUPS:
        for name, kind in group.form().fields.items():
            path = f"{group.below}{name}"
            steps: list[ConversationStep] = []
            for number, value in enumerate(values_of(name, kind)):
                steps += _creation_with(group, path, value, f"order{number}")
            yield ConversationScene(f"{group.name}: {name}", tuple(steps))


def _creation_with(group: FieldGroup, path: str, value: object, saves: str) -> Iterator[ConversationStep]:
    name = f"a new {group.name} with {path} {'missing' if value is ... else f'of {value!r:.60}'}"
    rule = rule_of_path(group.path, path)
    body = with_value(group.body, path, value)
    yield post(group.path, body, rule, name, saves=saves)
    if group.path == ORDERS_PATH:
        yield read(saves, rule, name=f"{name}, read")


def read(order: str, rules: str = "END-03", blocks: bool = False, name: str = "", **options: Any) -> ApiCall:
    """Return a call that reads an order."""
    query = "?fields[]=order_line_details&fields[]=amount_details" if blocks else ""
    path = f"{ORDERS_PATH}<<{order}.id>>/{query}"
    return ApiCall(method="GET", path=path, rules=rules, name=name, saves=order, **options)


def change_scenes() -> Iterator[ConversationScene]:
    """Yield a scene for each field that PUT changes: an order with a change for each value."""
    for name, kind in UpdateForm().fields.items():
        sent = {"extra": {"a": 1}, "merchant_order_id": f"change of {name}"}
        order = sale(order_lines=LINES, customer=dict(CUSTOMER), **sent)
        rule = "SET-52" if name in ("amount", "order_lines") else "SET-51"
        steps: list[ConversationStep] = [
            ApiCall(method="POST", path=ORDERS_PATH, body=order, rules="END-02", saves="order")
        ]
        values = [{"first_name": "Zoë", "country": "BE"}] if name == "customer" else []
        for value in [*values, *values_of(name, kind)]:
            if value is not ...:
                steps += _change(name, value, rule)
        yield ConversationScene(f"changed {name}", tuple(steps))


def _change(name: str, value: object, rule: str) -> Iterator[ConversationStep]:
    sent = f"PUT with {name} of {value!r:.60}"
    path = f"{ORDERS_PATH}<<order.id>>/"
    yield ApiCall(method="PUT", path=path, body={name: value}, rules=rule, name=sent, saves="order")
    yield get(path, rule, f"{sent}, read", saves="order", about={name: rule})


class OrderCall(NamedTuple):
    """A call on an order: its rules, and what it sends; ``<<order>>`` is the order of the scene."""

    name: str
    rules: str
    method: str
    suffix: str
    body: Any = None


TRANSACTION: Final = "transactions/<<order.transactions[-1].id>>/"
MANY: Final = LINES_TOTAL + 1
ORDER_CALLS: Final = (  # those that usually are refused come first, those that end an order last
    OrderCall(
        "capture of too much", "SET-47 END-14", "POST", f"{TRANSACTION}captures/amount/", {"amount": MANY}
    ),
    OrderCall("void of too much", "SET-47 END-16", "POST", f"{TRANSACTION}voids/amount/", {"amount": MANY}),
    OrderCall("refund of too much", "SET-49 END-10", "POST", "refunds/", {"amount": MANY}),
    OrderCall("capture of nothing", "SET-11 END-14", "POST", f"{TRANSACTION}captures/amount/", {"amount": 0}),
    OrderCall(
        "capture of an unknown line",
        "LINE-04 END-13",
        "POST",
        f"{TRANSACTION}captures/orderlines/",
        {"order_lines": line_quantity(1, "hats")},
    ),
    OrderCall("change of the amount", "SET-52", "PUT", "", {"amount": MANY, "order_lines": LINES}),
    OrderCall(
        "change of the text", "SET-51", "PUT", "", {"description": "Changed", "return_url": ADDRESSES[0]}
    ),
    OrderCall(
        "refund by lines",
        "END-08 SET-49",
        "POST",
        "refunds/",
        {"order_lines": line_quantity(1), "description": "1"},
    ),
    OrderCall(
        "refund by amount", "END-10 SET-49", "POST", "refunds/", {"amount": 1, "description": "1 cent"}
    ),
    OrderCall(
        "void by lines",
        "END-15 STA-20",
        "POST",
        f"{TRANSACTION}voids/orderlines/",
        {"description": "One", "order_lines": line_quantity(1, "post")},
    ),
    OrderCall("void by amount", "END-16 VOID-01", "POST", f"{TRANSACTION}voids/amount/", {"amount": 1}),
    OrderCall(
        "capture by lines",
        "END-13 STA-19",
        "POST",
        f"{TRANSACTION}captures/orderlines/",
        {"description": "One", "order_lines": line_quantity(1)},
    ),
    OrderCall("capture by amount", "END-14 CAP-02", "POST", f"{TRANSACTION}captures/amount/", {"amount": 1}),
    OrderCall("capture in full", "END-11 END-12 CAP-02", "POST", f"{TRANSACTION}captures/"),
    OrderCall("refund of the rest", "END-10 SET-49", "POST", "refunds/"),
    OrderCall("cancellation", "SET-50 END-07", "DELETE", ""),
)
LAST_POST: Final = ORDER_CALLS[-2]


def order_call(call: OrderCall, name: str, etag: str = "", order: str = "order") -> ApiCall:
    """Return a call on an order; ``etag`` is the value of If-Match."""
    suffix = call.suffix.replace("<<order.", f"<<{order}.")
    return ApiCall(
        method=call.method,
        path=f"{ORDERS_PATH}<<{order}.id>>/{suffix}",
        body=call.body,
        rules=f"SET-33 {call.rules}" if etag else call.rules,
        name=name,
        headers={"If-Match": etag} if etag else {},
        saves="change",
    )


def calls_on_order(state: str, order: str = "order", is_paid: bool = False) -> Iterator[ConversationStep]:
    """Yield each call on an order in a state; after a payment, a stale ETag and a read go with each."""
    for call in ORDER_CALLS:
        name = f"{call.name} of {state}"
        if is_paid:
            yield order_call(call, f"{name} with a stale ETag", '"stale"', order)
        yield order_call(call, name, order=order)
        if is_paid or call.method != "POST" or call is LAST_POST:
            yield read(order, call.rules.split()[0], blocks=True, name=f"{name}, read")


def create(*transactions: dict[str, Any], rules: str = "", saves: str = "order", **fields: Any) -> ApiCall:
    """Return a call that creates an order of 10 euros."""
    method = transactions[0]["payment_method"] if transactions else ""
    initial = initial_rules(method)
    return ApiCall(
        method="POST",
        path=ORDERS_PATH,
        body=sale(*transactions, **fields),
        rules=rules or f"{' '.join(initial)} {_period_rule(*transactions)}",
        name=f"a new order with {method or 'no transaction'}",
        saves=saves,
    )


def _period_rule(*transactions: dict[str, Any]) -> str:
    """Return the rule of the default period, if an order has a transaction without a period."""
    if not transactions or "expiration_period" in transactions[0]:
        return ""
    return PERIOD_RULES.get(transactions[0]["payment_method"], OTHER_PERIOD_RULE)


def issuers() -> ApiCall:
    """Return the call that lists the banks, as ``banks``."""
    return ApiCall(
        method="GET", path="/v1/bank-redirect-nl/issuers/", rules="END-17 ISS-01 ISS-02", saves="banks"
    )


SHORT_PERIOD: Final = "PT4S"
AFTER_SHORT_PERIOD_SECONDS: Final = 5.5


def state_scenes() -> Iterator[ConversationScene]:
    """Yield a scene for each method and state that an order reaches without a payment, and the expiries."""
    for method in ("", *METHODS_BY_NAME):
        yield from _scenes_of_method(method)
    yield ConversationScene("expired orders", expired_steps(is_costly=False))


def expired_steps(
    *, is_costly: bool, begin: Sequence[ConversationStep] = (), end: Sequence[ConversationStep] = ()
) -> tuple[ConversationStep, ...]:
    """Return orders that expire in one pause, with further steps before and after it."""
    expiring = [
        _expiring_steps(method, f"order{number}")
        for number, method in enumerate(("", *METHODS_BY_NAME))
        if _is_costly(method) is is_costly
    ]
    new = [step for steps, _ in expiring for step in steps]
    expired = [step for _, steps in expiring for step in steps]
    return (*new, *begin, Pause(seconds=AFTER_SHORT_PERIOD_SECONDS), *expired, *end)


def _is_costly(method: str) -> bool:
    """Whether an order with a method may become an invoice."""
    return bool(method) and METHODS_BY_NAME[method].capabilities.needs_order_lines


def banks_for(method: str) -> list[ConversationStep]:
    """Return the call that lists the banks, if a method requires one."""
    return [issuers()] if method and METHODS_BY_NAME[method].capabilities.has_issuers else []


def _scenes_of_method(method: str) -> Iterator[ConversationScene]:
    is_costly, shown = _is_costly(method), f"{method} order" if method else "hosted order"
    transactions = [transaction_with(method)] if method else []
    lines: dict[str, Any] = {} if is_costly else {"order_lines": LINES}
    new = [*banks_for(method), create(*transactions, **lines)]
    rule = VISIT_RULES.get(method, "SET-36")
    visit = Customer(order="order", action="visit", rules=rule, name=f"a visit to the page of a {shown}")
    cancel = order_call(ORDER_CALLS[-1], f"cancellation of a {shown}")
    ways: Sequence[tuple[str, Sequence[ConversationStep]]] = (
        ("new", [read("order")]),
        ("visited", [visit, read("order", rule)]),
        ("cancelled", [cancel, read("order", "SET-50")]),
    )
    for state, way in ways:
        calls = calls_on_order(f"a {state} {shown}")
        yield ConversationScene(f"{state} {shown}", (*new, *way, *calls), is_costly)
    stale = (order_call(each, f"{each.name} with a stale ETag", '"stale"') for each in ORDER_CALLS)
    yield ConversationScene(f"{shown} with a stale ETag", (*new, *stale, read("order", "SET-33")), is_costly)


def _expiring_steps(method: str, name: str) -> tuple[list[ConversationStep], list[ConversationStep]]:
    """Return the steps before and after the expiry of an order."""
    rule = "TRQ-03" if method else "ORD-12 SET-35"
    period = {"expiration_period": SHORT_PERIOD}
    call = (
        create(transaction_with(method, **period), rules=rule, saves=name)
        if method
        else create(rules=rule, saves=name, **period)
    )
    shown = f"an expired {method or 'hosted'} order"
    return [*banks_for(method), call], [read(name, rule, name=shown), *calls_on_order(shown, order=name)]


def get(path: str, rules: str, name: str = "", **options: Any) -> ApiCall:
    """Return a read."""
    return ApiCall(method="GET", path=path, rules=rules, name=name, **options)


def post(path: str, body: Any, rules: str, name: str = "", **options: Any) -> ApiCall:
    """Return a POST."""
    return ApiCall(method="POST", path=path, body=body, rules=rules, name=name, **options)


def put(body: Any, rules: str, name: str = "", **options: Any) -> ApiCall:
    """Return a change of the order."""
    options = {"saves": "order", **options}
    return ApiCall(method="PUT", path=ORDER_PATH, body=body, rules=rules, name=name, **options)
