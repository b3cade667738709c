"""The results of probes: a check of one rule, and functions that check an answer."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Final, NamedTuple

from payment_sandbox.kernel.patterns import UUID
from payment_sandbox_verify.answer import MISSING, ServiceAnswer

SHOWN_MAX: Final = 120  # characters of a value
REFUSED: Final = range(400, 500)
RULE_OF_STATUS: Final = {413: "SET-09", 415: "SET-09", 401: "SET-02", 412: "SET-33", 409: "SET-04"}
STATUSES_RULE: Final = "SET-08"


class CannotTell(Exception):
    """A rule could not be checked; the message is the reason."""


class NotVerified(Exception):
    """The service cannot be verified at all; the message is the reason."""


class Check(NamedTuple):
    """Whether a rule holds, and the observed violation; ``refusal`` is the answer if it is an error."""

    rule: str
    holds: bool
    how: str = ""
    refusal: ServiceAnswer | None = None


Checks = Iterator[Check]


class ValueKind(NamedTuple):
    """A kind of value: its description, and a predicate."""

    words: str
    fits: Callable[[Any], bool]


def _is_moment(value: Any) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except (TypeError, ValueError):
        return False


TEXT: Final = ValueKind("a text", lambda value: isinstance(value, str) and bool(value))
INTEGER: Final = ValueKind("an integer", lambda value: isinstance(value, int) and not isinstance(value, bool))
BOOLEAN: Final = ValueKind("true or false", lambda value: isinstance(value, bool))
LIST: Final = ValueKind("a list", lambda value: isinstance(value, list))
OBJECT: Final = ValueKind("an object", lambda value: isinstance(value, dict))
MOMENT: Final = ValueKind("an ISO 8601 time with offset", _is_moment)
NUMERAL: Final = ValueKind("a number as a string", lambda value: isinstance(value, str) and value.isdigit())
IDENTIFIER: Final = ValueKind(
    "a UUID", lambda value: isinstance(value, str) and UUID.fullmatch(value) is not None
)
BARE: Final = ValueKind(
    "an address without a scheme",
    lambda value: isinstance(value, str) and "/" in value and "://" not in value,
)


def shown(value: Any) -> str:
    """Return a value as text for a report, truncated if it is long."""
    text = "missing" if value is MISSING else repr(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."


def holds(rule: str, is_so: bool, how: str) -> Check:
    """Create a check of a condition; ``how`` describes the observed violation."""
    return Check(rule, bool(is_so), "" if is_so else how)


def same(rule: str, answer: ServiceAnswer, place: str, expected: Any) -> Check:
    """Check that a field has the expected value."""
    value = answer.at(place)
    return holds(rule, value == expected, f"{place} is {shown(value)}, not {shown(expected)}")


def refused(
    rule: str, answer: ServiceAnswer, status: int = 400, kind: str | None = None, place: str | None = None
) -> Iterator[Check]:
    """Check that a call is refused; an incorrect status, type or path counts against other rules."""
    is_refused = answer.status in REFUSED
    yield Check(rule, is_refused, "" if is_refused else f"is not refused: {answer.summary}", answer)
    if not is_refused:
        return
    of_status = RULE_OF_STATUS.get(status, STATUSES_RULE)
    yield holds(of_status, answer.status == status, f"{rule}: {answer.summary}, not {status}")
    type_is = answer.at("error.type")
    if kind is not None:
        yield holds("SET-04", type_is == kind, f"{rule}: the error's type is {shown(type_is)}, not {kind!r}")
    if place is not None:
        violations = answer.at("error.violations")
        paths = [item.get("path") for item in violations] if LIST.fits(violations) else []
        is_named = any(str(path).startswith(place) for path in paths)
        yield holds("SET-05", is_named, f"{rule}: the violations name {paths or 'nothing'}, not {place}")
