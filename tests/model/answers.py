"""Answers of the server that the model judges, and the values in them."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

Json = dict[str, Any]
"""A JSON object."""

PATH_SEGMENT: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
VALUE_LENGTH_MAX: Final = 120  # characters of a value in a report


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
        """The call, the status and the error type, as text."""
        return f"{self.method} {self.path} returned {self.status} {self.at('error.type') or ''}".rstrip()

    def at(self, path: str) -> Any:
        """Return the value at a path such as ``transactions[0].status``; None if it is null or missing."""
        value = self.data
        for index, key in PATH_SEGMENT.findall(path):
            try:
                value = value[int(index)] if index else value[key]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def list_at(self, path: str) -> list[Any]:
        """Return the list at a path, or an empty list."""
        value = self.at(path)
        return value if isinstance(value, list) else []


class Leaf(NamedTuple):
    """A value in two answers to the same call; one of them can be None."""

    path: str
    value: Any
    reference: Any


def leaves(value: Any, reference: Any, path: str = "") -> Iterator[Leaf]:
    """Yield the values in two answers, in pairs."""
    if isinstance(value, dict) and isinstance(reference, dict):
        for key in {**reference, **value}:
            below = f"{path}.{key}".lstrip(".")
            yield from leaves(value.get(key), reference.get(key), below)
    elif isinstance(value, list) and isinstance(reference, list):
        for index, (one, other) in enumerate(zip(value, reference, strict=False)):
            yield from leaves(one, other, f"{path}[{index}]")
    else:
        yield Leaf(path, value, reference)


def describe(value: Any) -> str:
    """Return a value as text for a report, truncated if it is long."""
    text = "missing" if value is None else repr(value)
    return text if len(text) <= VALUE_LENGTH_MAX else f"{text[:VALUE_LENGTH_MAX]}..."
