"""The results of probes: a check of one rule, and functions that check an answer."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Final, NamedTuple

from payment_sandbox.kernel.patterns import UUID
from payment_sandbox_verify.answer import MISSING, ServiceAnswer

VALUE_LENGTH_MAX: Final = 120  # characters of a value in a report
REFUSED_STATUSES: Final = range(400, 500)
RULE_BY_STATUS: Final = {413: "SET-09", 415: "SET-09", 401: "SET-02", 412: "SET-33", 409: "SET-04"}
OTHER_STATUS_RULE: Final = "SET-08"


class CannotTell(Exception):
    """A rule could not be checked; the message is the reason."""


class NotVerified(Exception):
    """The service cannot be verified at all; the message is the reason."""


class Check(NamedTuple):
    """The result of checking a rule, and the observed violation; ``refusal`` is the error response."""

    rule: str
    is_met: bool
    reason: str = ""
    refusal: ServiceAnswer | None = None


Checks = Iterator[Check]


class ValueKind(NamedTuple):
    """A kind of value: its description, and a predicate."""

    description: str
    matches: Callable[[Any], bool]


def _is_iso_time(value: Any) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except (TypeError, ValueError):
        return False


TEXT: Final = ValueKind("a non-empty string", lambda value: isinstance(value, str) and bool(value))
INTEGER: Final = ValueKind("an integer", lambda value: isinstance(value, int) and not isinstance(value, bool))
BOOLEAN: Final = ValueKind("true or false", lambda value: isinstance(value, bool))
LIST: Final = ValueKind("a list", lambda value: isinstance(value, list))
OBJECT: Final = ValueKind("an object", lambda value: isinstance(value, dict))
ISO_TIME: Final = ValueKind("an ISO 8601 time with offset", _is_iso_time)
NUMERAL: Final = ValueKind("a number as a string", lambda value: isinstance(value, str) and value.isdigit())
IDENTIFIER: Final = ValueKind(
    "a UUID", lambda value: isinstance(value, str) and UUID.fullmatch(value) is not None
)
SCHEMELESS_ADDRESS: Final = ValueKind(
    "an address without a scheme",
    lambda value: isinstance(value, str) and "/" in value and "://" not in value,
)


def describe(value: Any) -> str:
    """Return a value as text for a report, truncated if it is long."""
    text = "missing" if value is MISSING else repr(value)
    return text if len(text) <= VALUE_LENGTH_MAX else f"{text[:VALUE_LENGTH_MAX]}..."


def check_that(rule: str, is_met: bool, reason: str) -> Check:
    """Create a check that a condition holds; ``reason`` describes the observed violation."""
    return Check(rule, bool(is_met), "" if is_met else reason)


def check_equal(rule: str, answer: ServiceAnswer, path: str, expected: Any) -> Check:
    """Check that a field has the expected value."""
    value = answer.at(path)
    return check_that(rule, value == expected, f"{path} is {describe(value)}, not {describe(expected)}")


def check_refused(
    rule: str, answer: ServiceAnswer, status: int = 400, kind: str | None = None, path: str | None = None
) -> Iterator[Check]:
    """Check that a call is refused; an incorrect status, type or path counts against other rules."""
    is_refused = answer.status in REFUSED_STATUSES
    yield Check(rule, is_refused, "" if is_refused else f"is not refused: {answer.summary}", answer)
    if not is_refused:
        return
    status_rule = RULE_BY_STATUS.get(status, OTHER_STATUS_RULE)
    yield check_that(status_rule, answer.status == status, f"{rule}: {answer.summary}, not {status}")
    error_type = answer.at("error.type")
    if kind is not None:
        yield check_that(
            "SET-04", error_type == kind, f"{rule}: the error's type is {describe(error_type)}, not {kind!r}"
        )
    if path is not None:
        violations = answer.at("error.violations")
        paths = [item.get("path") for item in violations] if LIST.matches(violations) else []
        is_path_named = any(str(name).startswith(path) for name in paths)
        yield check_that(
            "SET-05", is_path_named, f"{rule}: the violations name {paths or 'nothing'}, not {path}"
        )
