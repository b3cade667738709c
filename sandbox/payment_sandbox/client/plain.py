"""Calls as methods, and Python values as JSON: periods and times as ISO 8601, effects as in a scenario."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, Final, ParamSpec, TypeVar
from urllib.parse import quote

from payment_sandbox.client.errors import ends_at_caller
from payment_sandbox.kernel.times import format_duration

SECONDS_SUFFIX: Final = "_seconds"
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

__tracebackhide__ = ends_at_caller


def is_effect(value: Any) -> bool:
    """Return whether a value is an effect, which can be converted to its form in a scenario."""
    return hasattr(value, "document")


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
    if is_effect(value):
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


def to_query(values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the values of a query, so that the server reads them as it reads those in a body."""
    sent = {name: int(value) if isinstance(value, bool) else value for name, value in values.items()}
    return {
        name: value if isinstance(value, str | int | float) else to_json_value(value)
        for name, value in sent.items()
        if value is not None
    }


def control_call(
    method: str, path: str, unwraps: str | None = None, *, is_document: bool = False, **keys: str
) -> Callable[[Callable[Concatenate[Any, Arguments], Result]], Callable[Concatenate[Any, Arguments], Result]]:
    """Let a method without a body make a call of the control API.

    The first arguments are the ids in the path. The others are the body, or in a read the query, under their
    names or under those in ``keys``; with ``is_document``, the only other argument is the body. The method
    returns the answer, or the value under ``unwraps``.
    """

    def declare(
        function: Callable[Concatenate[Any, Arguments], Result],
    ) -> Callable[Concatenate[Any, Arguments], Result]:
        stated, ids = signature(function), path.count("{}")
        has_values = len(stated.parameters) > ids + 1

        @wraps(function)
        def run(client: Any, /, *arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
            try:
                given = list(stated.bind(client, *arguments, **options).arguments.items())[1:]
            except TypeError as wrong:
                raise TypeError(f"{function.__name__}(): {wrong}") from None
            filled = path_of(path, *[value for _, value in given[:ids]])
            sent: Any = None
            if is_document:
                sent = given[ids][1]
            elif has_values:
                sent = {
                    keys.get(name, name): to_seconds(value) if name.endswith(SECONDS_SUFFIX) else value
                    for name, value in given[ids:]
                    if value is not None
                }
            body, query = (None, sent) if method == "GET" else (sent, None)
            answer: Any = client.call(method, filled, body, query)
            result: Result = answer if unwraps is None else answer[unwraps]
            return result

        return run

    return declare
