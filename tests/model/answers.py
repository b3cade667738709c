"""Answers of the server that the model judges, sample data, and the rules that name differences."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from payment_sandbox.web.answers.order_tables import RECORD_RULES

Json = dict[str, Any]
"""A JSON object."""


class _Missing:
    """The type of ``MISSING``, the value of an absent field."""

    def __repr__(self) -> str:
        return "missing"


MISSING: Final = _Missing()
PATH_SEGMENT: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
VALUE_LENGTH_MAX: Final = 120  # characters of a value in a report
RULE_BY_STATUS: Final = {413: "SET-09", 415: "SET-09", 401: "SET-02", 412: "SET-33", 409: "SET-04"}
OTHER_STATUS_RULE: Final = "SET-08"
RULES_BY_FIELD: Final = {
    **RECORD_RULES,
    "amount": "ORD-05",
    "customer": "SET-25",
    "client": "ORD-18",
    "transactions": "ORD-17",
    "transactions.expiration_period": "TX-08",
    "transactions.payment_method": "TX-09",
    "transactions.payment_method_details": "TX-11",
    "order_line_details": "LDET-01",
    "amount_details": "ADET-01",
    "refund_of_order_id": "SET-48",
}
UNKNOWN_ID: Final = "00000000-0000-4000-8000-000000000000"
LINES: Final[list[Json]] = [
    {
        "type": "physical",
        "amount": 250,
        "currency": "EUR",
        "merchant_order_line_id": "socks",
        "name": "Socks",
        "quantity": 3,
        "vat_percentage": 2100,
    },
    {
        "type": "shipping_fee",
        "amount": 250,
        "currency": "EUR",
        "merchant_order_line_id": "post",
        "name": "Postage",
        "quantity": 1,
        "vat_percentage": 2100,
    },
]
CUSTOMER: Final = {
    "first_name": "Test",
    "last_name": "Order",
    "birthdate": "1990-01-31",
    "email_address": "test-order@example.com",
    "phone_numbers": ["+31000000000"],
    "address": "Teststraat 1\n1000 AA Amsterdam",
    "country": "NL",
    "locale": "nl",
}


class ServiceAnswer(NamedTuple):
    """One call and its answer; ``data`` is the parsed body."""

    method: str
    path: str
    request_body: Any
    status: int
    headers: Mapping[str, str]
    data: Any
    content: bytes = b""

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300

    @property
    def summary(self) -> str:
        """The status and error type as text."""
        error = self.at("error.type")
        return f"{self.status}{'' if error is MISSING else f' {error}'}"

    @property
    def call(self) -> str:
        """The method and path, as text."""
        return f"{self.method} {self.path}"

    def at(self, path: str) -> Any:
        """Return the value at a path such as ``transactions[0].status``, or ``MISSING``."""
        return value_at(self.data, path)

    def list_at(self, path: str) -> list[Any]:
        """Return the list at a path, or an empty list."""
        value = self.at(path)
        return value if isinstance(value, list) else []


class Leaf(NamedTuple):
    """A value in two answers to the same call; one of them can be ``MISSING``."""

    path: str
    value: Any
    reference: Any


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


def value_at(data: Any, path: str) -> Any:
    """Return the value at a path in a JSON document, or ``MISSING``."""
    value = data
    for index, key in PATH_SEGMENT.findall(path):
        try:
            value = value[int(index)] if index else value[key]
        except (KeyError, IndexError, TypeError):
            return MISSING
    return value


def none_if_missing(value: Any) -> Any:
    """Replace ``MISSING`` with None."""
    return None if value is MISSING else value


def describe(value: Any) -> str:
    """Return a value as text for a report, truncated if it is long."""
    text = "missing" if value is MISSING else repr(value)
    return text if len(text) <= VALUE_LENGTH_MAX else f"{text[:VALUE_LENGTH_MAX]}..."
