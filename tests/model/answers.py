"""Answers of the server that the model judges."""

import re
from collections.abc import Mapping
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


def describe(value: Any) -> str:
    """Return a value as text for a report, truncated if it is long."""
    text = "missing" if value is None else repr(value)
    return text if len(text) <= VALUE_LENGTH_MAX else f"{text[:VALUE_LENGTH_MAX]}..."
