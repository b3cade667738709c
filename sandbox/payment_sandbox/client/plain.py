"""Python values as JSON ones: periods and times as ISO 8601, and effects as in a scenario."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol, runtime_checkable

from payment_sandbox.kernel.times import spelled


@runtime_checkable
class HasDocument(Protocol):
    """An effect of a scenario: it knows how a document says it."""

    @property
    def document(self) -> Mapping[str, Any]:
        """The effect as data."""
        ...


def plain(value: Any) -> Any:
    """What JSON has no form for, as something that it has: for the encoder, which finds it at any depth.

    Raises:
        TypeError: it has no such form.
        ValueError: a period is negative.
    """
    if isinstance(value, timedelta):
        return spelled(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, HasDocument):
        return value.document
    raise TypeError(f"{type(value).__name__} {value!r} is not a value of JSON")


def seconds(duration: float | timedelta) -> float:
    """A duration in seconds.

    Raises:
        TypeError: it is neither a number nor a timedelta.
    """
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    if isinstance(duration, bool) or not isinstance(duration, int | float):
        raise TypeError(f"a time to wait is a number of seconds or a timedelta, not {duration!r}")
    return duration
