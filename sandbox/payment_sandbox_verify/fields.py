"""The rules for response fields, and a comparison of a service's fields with the sandbox's."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from payment_sandbox.forms.orders import SENT_FIELDS
from payment_sandbox_verify.answer import MISSING, ServiceAnswer, anonymous
from payment_sandbox_verify.checks import Check, Checks, holds, shown
from payment_sandbox_verify.shapes import CODE, ORDER, TRANSACTION, Shape

CALLS: Final = (  # the first match counts
    ("POST", r"/v1/orders/?", "END-02"),
    ("GET", r"/v1/orders/[^/]+/?", "END-03"),
    ("DELETE", r"/v1/orders/[^/]+/?", "END-07"),
    ("PUT", r"/v1/orders/[^/]+/?", "SET-51"),
    ("POST", r".*/refunds/?", "END-10"),
    ("POST", r".*/captures/?", "END-11"),
    ("POST", r".*/captures/orderlines/?", "END-13"),
    ("POST", r".*/captures/amount/?", "END-14"),
    ("POST", r".*/voids/orderlines/?", "END-15"),
    ("POST", r".*/voids/amount/?", "END-16"),
    ("GET", r".*/issuers/?", "END-17"),
    ("POST", r"/v1/bankqr/?", "END-18"),
    ("GET", r".*/currencies/?", "SET-54"),
)
OTHER_CALL: Final = "VER-02"


def _rules_of(rows: Sequence[Shape], below: str = "") -> dict[str, str]:
    """Return the closest rule of each field that has a shape."""
    return {
        below + re.sub(r"\[\d+\]", "", place): row.rules.split()[0]
        for row in reversed(rows)
        for place in row.places.split()
    }


FIELDS: Final = {
    **_rules_of(ORDER),
    **_rules_of(TRANSACTION, "transactions."),
    **{field.name: field.rule for field in SENT_FIELDS},
    "currency": "ORD-03",
    "payment_methods": "ORD-13",
    "customer": "SET-25",
    "order_lines": "ORD-16",
    "client": "ORD-18",
    "order_line_details": "LDET-01",
    "amount_details": "ADET-01",
    "refund_of_order_id": "SET-48",
}
QR_FIELDS: Final = _rules_of(CODE)


def rule_of_call(method: str, path: str) -> str:
    """Return the rule of a call."""
    plain = path.partition("?")[0]
    for known, pattern, rule in CALLS:
        if method == known and re.fullmatch(pattern, plain):
            return rule
    return OTHER_CALL


def rule_of_field(answer: ServiceAnswer, place: str) -> str:
    """Return the rule of a field of an answer; if it has none, the rule of the call."""
    call = rule_of_call(answer.method, answer.path)
    if is_refund(answer) and "." not in place:
        return REFUND_RECORD
    name = re.sub(r"\[\d+\]", "", place)
    known = QR_FIELDS if call == "END-18" else FIELDS
    while name and name not in known:
        name = name.rpartition(".")[0]
    return known.get(name, call)


VALUES: Final = (  # the fields with compared values; other fields only have to exist
    *(field.name for field in SENT_FIELDS if field.is_plain),
    *("status", "amount", "currency", "flags", "payment_methods", "payment_method"),
    *("balance", "credit_debit", "product_type", "channel"),
    *("capture_mode", "is_capturable", "is_fully_captured", "one_click_type", "recurring_type"),
    *("captured", "original", "remaining", "voided", "quantity", "type", "vat_percentage"),
    *("amount_changeable", "one_off", "size"),
)
EVENTS: Final = re.compile(r"\bevents\[")  # a poll between two calls may add some
KINDS: Final = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}
RECORDS: Final = ("END-02", "END-03", "END-10", "END-18", "SET-51")  # the calls that return a record
REFUND_RECORD: Final = "SET-48"
OF_REFUNDS: Final = ("id", "amount", "status", "transactions", "flags", "refund_of_order_id")
EMPTY: Final[tuple[Any, ...]] = (MISSING, "", [], {})
NAMED: Final = re.compile(r"([\w.]+)(?:\[\d+\])? (?:is(?! refused)|has)\b")  # in messages of checks
STATES: Final = ("status", "transactions[0].status")


class Leaf(NamedTuple):
    """A value in two answers to the same call; one of them can be ``MISSING``."""

    place: str
    there: Any
    here: Any

    @property
    def name(self) -> str:
        """The name of the field."""
        return self.place.rpartition(".")[2].partition("[")[0]

    @property
    def problem(self) -> str | None:
        """The difference between the kinds of the two values; None if they have the same kind."""
        if self.there in EMPTY and self.here in EMPTY:
            return None
        there, here = (KINDS.get(type(value)) for value in (self.there, self.here))
        if there == here:
            return None
        if here is None:
            return f"{self.place} is present, but not in the sandbox: {shown(self.there)}"
        return f"{self.place} is {shown(self.there)}, not {here}"

    @property
    def difference(self) -> str | None:
        """The difference in kind, or in the value of a field whose values are compared."""
        is_fixed = self.name in VALUES and not EVENTS.search(self.place)
        if self.problem is None and is_fixed and _comparable(self.there) != _comparable(self.here):
            return f"{self.place} is {shown(self.there)}, not {shown(self.here)}"
        return self.problem


def _comparable(value: Any) -> Any:
    return anonymous(value) if isinstance(value, str) else None if value in EMPTY else value


def leaves(there: Any, here: Any, place: str = "") -> Iterator[Leaf]:
    """Yield the pairs of values of two answers; null counts as missing."""
    if isinstance(there, dict) and isinstance(here, dict):
        for key in {**here, **there}:
            below = f"{place}.{key}".lstrip(".")
            yield from leaves(there.get(key), here.get(key), below)
    elif isinstance(there, list) and isinstance(here, list):
        for index, (one, other) in enumerate(zip(there, here, strict=False)):
            yield from leaves(one, other, f"{place}[{index}]")
    else:
        yield Leaf(place, *(MISSING if value is None else value for value in (there, here)))


def compare_fields(
    theirs: Sequence[ServiceAnswer], ours: Sequence[ServiceAnswer], checks: Sequence[Check]
) -> Checks:
    """Report missing and additional fields of the service's records, and values of another kind.

    Each field is reported once, and not at all if one of ``checks`` reports it.
    """
    named = {name for check in checks for place in NAMED.findall(check.how) for name in place.split(".")}
    for answer, other in _pairs(theirs, ours):
        for leaf in leaves(answer.data, other.data):
            if leaf.difference is not None and leaf.name not in named and is_owed(answer, leaf):
                named.add(leaf.name)
                yield holds(rule_of_field(answer, leaf.place), False, f"{answer.call}: {leaf.difference}")


def is_refund(answer: ServiceAnswer) -> bool:
    """Whether the answer is a refund. A refund has fewer fields than an order."""
    return isinstance(answer.at("refund_of_order_id"), str)


def is_owed(answer: ServiceAnswer, leaf: Leaf) -> bool:
    """Whether the service must send a value that the sandbox sends; refunds can lack fields of orders."""
    root = re.split(r"[.\[]", leaf.place, maxsplit=1)[0]
    return leaf.there is not MISSING or not is_refund(answer) or root in OF_REFUNDS


def are_alike(answer: ServiceAnswer, other: ServiceAnswer) -> bool:
    """Whether two records are in the same state; their fields depend on it."""
    return all(answer.at(place) == other.at(place) for place in STATES)


def _pairs(
    theirs: Sequence[ServiceAnswer], ours: Sequence[ServiceAnswer]
) -> Iterator[tuple[ServiceAnswer, ServiceAnswer]]:
    """Yield the pairs of records that answer the same call and are in the same state."""
    known = {answer.asked: answer for answer in ours if _is_record(answer)}
    for answer in filter(_is_record, theirs):
        other = known.get(answer.asked)
        if other is not None and are_alike(answer, other):
            yield answer, other


def _is_record(answer: ServiceAnswer) -> bool:
    return answer.is_success and rule_of_call(answer.method, answer.path) in RECORDS
