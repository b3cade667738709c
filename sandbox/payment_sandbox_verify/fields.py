"""The rules for response fields, and a comparison of a service's fields with the sandbox's."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from payment_sandbox.forms.orders import SENT_FIELDS
from payment_sandbox_verify.answer import MISSING, ServiceAnswer, anonymize
from payment_sandbox_verify.checks import Check, Checks, check_that, describe
from payment_sandbox_verify.shapes import CODE, ORDER, TRANSACTION, Shape

RULES_BY_CALL: Final = (  # the first match counts
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
OTHER_CALL_RULE: Final = "VER-02"


def _rules_of(rows: Sequence[Shape], below: str = "") -> dict[str, str]:
    """Return the closest rule for each field that has a shape."""
    return {
        below + re.sub(r"\[\d+\]", "", path): row.rules.split()[0]
        for row in reversed(rows)
        for path in row.paths.split()
    }


RULES_BY_FIELD: Final = {
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
RULES_BY_QR_FIELD: Final = _rules_of(CODE)


def rule_of_call(method: str, path: str) -> str:
    """Return the rule for a call."""
    plain = path.partition("?")[0]
    for known, pattern, rule in RULES_BY_CALL:
        if method == known and re.fullmatch(pattern, plain):
            return rule
    return OTHER_CALL_RULE


def rule_of_field(answer: ServiceAnswer, path: str) -> str:
    """Return the rule for a field in an answer; if there is none, return the rule for the call."""
    call = rule_of_call(answer.method, answer.path)
    if is_refund(answer) and "." not in path:
        return REFUND_RULE
    name = re.sub(r"\[\d+\]", "", path)
    known = RULES_BY_QR_FIELD if call == "END-18" else RULES_BY_FIELD
    while name and name not in known:
        name = name.rpartition(".")[0]
    return known.get(name, call)


COMPARED_FIELDS: Final = (  # the fields with compared values; other fields only have to exist
    *(field.name for field in SENT_FIELDS if field.is_plain),
    *("status", "amount", "currency", "flags", "payment_methods", "payment_method"),
    *("balance", "credit_debit", "product_type", "channel"),
    *("capture_mode", "is_capturable", "is_fully_captured", "one_click_type", "recurring_type"),
    *("captured", "original", "remaining", "voided", "quantity", "type", "vat_percentage"),
    *("amount_changeable", "one_off", "size"),
)
EVENTS_PATH: Final = re.compile(r"\bevents\[")  # a poll between two calls may add events
KIND_NAMES: Final = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}
RECORD_RULES: Final = ("END-02", "END-03", "END-10", "END-18", "SET-51")  # the calls that return a record
REFUND_RULE: Final = "SET-48"
REFUND_FIELDS: Final = ("id", "amount", "status", "transactions", "flags", "refund_of_order_id")
EMPTY_VALUES: Final[tuple[Any, ...]] = (MISSING, "", [], {})
NAMED_FIELD: Final = re.compile(r"([\w.]+)(?:\[\d+\])? (?:is(?! refused)|has)\b")  # matches a check's reason
STATE_PATHS: Final = ("status", "transactions[0].status")


class Leaf(NamedTuple):
    """A value in two answers to the same call; one of them can be ``MISSING``."""

    path: str
    value: Any
    reference: Any

    @property
    def name(self) -> str:
        """The name of the field."""
        return self.path.rpartition(".")[2].partition("[")[0]

    @property
    def problem(self) -> str | None:
        """The difference between the kinds of the two values; None if they have the same kind."""
        if self.value in EMPTY_VALUES and self.reference in EMPTY_VALUES:
            return None
        kind, reference_kind = (KIND_NAMES.get(type(each)) for each in (self.value, self.reference))
        if kind == reference_kind:
            return None
        if reference_kind is None:
            return f"{self.path} is present, but not in the sandbox: {describe(self.value)}"
        return f"{self.path} is {describe(self.value)}, not {reference_kind}"

    @property
    def difference(self) -> str | None:
        """The difference in kind, or in the value of a field whose values are compared."""
        is_fixed = self.name in COMPARED_FIELDS and not EVENTS_PATH.search(self.path)
        if self.problem is None and is_fixed and _comparable(self.value) != _comparable(self.reference):
            return f"{self.path} is {describe(self.value)}, not {describe(self.reference)}"
        return self.problem


def _comparable(value: Any) -> Any:
    return anonymize(value) if isinstance(value, str) else None if value in EMPTY_VALUES else value


def leaves(value: Any, reference: Any, path: str = "") -> Iterator[Leaf]:
    """Yield the values in two answers, in pairs; null counts as missing."""
    if isinstance(value, dict) and isinstance(reference, dict):
        for key in {**reference, **value}:
            below = f"{path}.{key}".lstrip(".")
            yield from leaves(value.get(key), reference.get(key), below)
    elif isinstance(value, list) and isinstance(reference, list):
        for index, (one, other) in enumerate(zip(value, reference, strict=False)):
            yield from leaves(one, other, f"{path}[{index}]")
    else:
        yield Leaf(path, *(MISSING if each is None else each for each in (value, reference)))


def compare_fields(
    theirs: Sequence[ServiceAnswer], ours: Sequence[ServiceAnswer], checks: Sequence[Check]
) -> Checks:
    """Report missing and extra fields in the service's records, and values of the wrong kind.

    Each field is reported once, and not at all if one of ``checks`` reports it.
    """
    named = {
        name for check in checks for path in NAMED_FIELD.findall(check.reason) for name in path.split(".")
    }
    for answer, other in _record_pairs(theirs, ours):
        for leaf in leaves(answer.data, other.data):
            if leaf.difference is not None and leaf.name not in named and is_required(answer, leaf):
                named.add(leaf.name)
                yield check_that(rule_of_field(answer, leaf.path), False, f"{answer.call}: {leaf.difference}")


def is_refund(answer: ServiceAnswer) -> bool:
    """Whether the answer is a refund. A refund has fewer fields than an order."""
    return isinstance(answer.at("refund_of_order_id"), str)


def is_required(answer: ServiceAnswer, leaf: Leaf) -> bool:
    """Whether the service must send a value that the sandbox sends; refunds can lack some order fields."""
    root = re.split(r"[.\[]", leaf.path, maxsplit=1)[0]
    return leaf.value is not MISSING or not is_refund(answer) or root in REFUND_FIELDS


def are_in_same_state(answer: ServiceAnswer, other: ServiceAnswer) -> bool:
    """Whether two records are in the same state; their fields depend on it."""
    return all(answer.at(path) == other.at(path) for path in STATE_PATHS)


def _record_pairs(
    theirs: Sequence[ServiceAnswer], ours: Sequence[ServiceAnswer]
) -> Iterator[tuple[ServiceAnswer, ServiceAnswer]]:
    """Yield the pairs of records that answer the same call and are in the same state."""
    known = {answer.call_key: answer for answer in ours if _is_record(answer)}
    for answer in filter(_is_record, theirs):
        other = known.get(answer.call_key)
        if other is not None and are_in_same_state(answer, other):
            yield answer, other


def _is_record(answer: ServiceAnswer) -> bool:
    return answer.is_success and rule_of_call(answer.method, answer.path) in RECORD_RULES
