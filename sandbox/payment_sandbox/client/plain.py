"""Python values as JSON ones: periods and times as ISO 8601."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any


def plain(value: Any) -> Any:
    """What JSON has no form for, as something that it has: for the encoder, which finds it at any depth.

    Raises:
        TypeError: it has no such form.
        ValueError: a period is negative.
    """
    if isinstance(value, timedelta):
        return period(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} {value!r} is not a value of JSON")


def period(duration: timedelta) -> str:
    """A duration in ISO 8601: days and seconds.

    Raises:
        ValueError: it is negative.
    """
    if duration < timedelta():
        raise ValueError(f"a period is not negative: {duration}")
    fraction = f".{duration.microseconds:06}".rstrip("0").rstrip(".")
    seconds = f"T{duration.seconds}{fraction}S" if duration.seconds or fraction or not duration.days else ""
    return f"P{f'{duration.days}D' if duration.days else ''}{seconds}"


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
