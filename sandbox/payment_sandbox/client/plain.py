"""Converts Python values to JSON: periods and times as ISO 8601, effects as in a scenario."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol, runtime_checkable
from urllib.parse import quote

from payment_sandbox.kernel.times import format_duration


@runtime_checkable
class HasDocument(Protocol):
    """An effect that can be converted to its form in a scenario."""

    @property
    def document(self) -> Mapping[str, Any]:
        """The effect in JSON types."""
        ...


def path_of(template: str, *ids: object) -> str:
    """Fill ids into the path of a call, so that no id can lead to another path.

    Raises:
        TypeError: a value is no text.
        ValueError: a text cannot be an id.
    """
    quoted = []
    for each in ids:
        if not isinstance(each, str):
            kind = type(each).__name__
            raise TypeError(f"this takes the id of an order or of another record, not a {kind}: order['id']")
        if each in ("", ".", ".."):  # no quoting keeps HTTP clients from resolving these
            raise ValueError(f"{each!r} is not an id")
        quoted.append(quote(each, safe=""))
    return template.format(*quoted)


def to_json_value(value: Any) -> Any:
    """Convert a value that JSON does not support; the ``default`` function for ``json.dumps``.

    Raises:
        TypeError: the value cannot be converted to JSON.
        ValueError: a period is negative.
    """
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, HasDocument):
        return value.document
    raise TypeError(f"{type(value).__name__} {value!r} is not a JSON value")


def to_seconds(duration: float | timedelta) -> float:
    """Return a duration in seconds.

    Raises:
        TypeError: the duration is neither a number nor a timedelta.
    """
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    if isinstance(duration, bool) or not isinstance(duration, int | float):
        raise TypeError(f"a timeout must be a number of seconds or a timedelta, not {duration!r}")
    return duration


def to_query_value(value: Any) -> Any:
    """Convert a value of a query, so that the server reads it as it reads one in a body."""
    if isinstance(value, bool):
        return int(value)
    return value if isinstance(value, str | int | float) else to_json_value(value)


def without_none(**values: Any) -> dict[str, Any]:
    """Return the values that are not None."""
    return {name: value for name, value in values.items() if value is not None}
