"""An answer of the service under verification."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple


class _Missing:
    """What a field that is not there has for a value."""

    def __repr__(self) -> str:
        return "missing"


MISSING: Final = _Missing()
SUCCESS: Final = range(200, 300)
DEPTH_MAX: Final = 100
_STEP: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


class ServiceAnswer(NamedTuple):
    """One call and its answer; ``data`` is the parsed body, None if it is no JSON."""

    method: str
    path: str
    sent: Any
    status: int
    headers: Mapping[str, str]
    data: Any
    content: bytes = b""

    @property
    def is_success(self) -> bool:
        """Whether the call was answered with 2xx."""
        return self.status in SUCCESS

    @property
    def summary(self) -> str:
        """The answer in a few words."""
        error = self.at("error.type")
        return f"answered {self.status}{'' if error is MISSING else f' {error}'}"

    @property
    def call(self) -> str:
        """The call in a few words."""
        return f"{self.method} {self.path}"

    def at(self, place: str) -> Any:
        """The value at a place such as ``transactions[0].status``; ``MISSING`` if there is none."""
        return value_at(self.data, place)


def value_at(data: Any, place: str) -> Any:
    """The value at a place in a JSON document; ``MISSING`` if there is none."""
    value = data
    for index, key in _STEP.findall(place):
        try:
            value = value[int(index)] if index else value[key]
        except (KeyError, IndexError, TypeError):
            return MISSING
    return value


def parsed(content: bytes) -> Any:
    """The JSON in a body; None if it is none, or goes too deep."""
    try:
        data = json.loads(content)
        return data if _depth_is_in_bounds(data, DEPTH_MAX) else None
    except (ValueError, RecursionError):
        return None


def _depth_is_in_bounds(data: Any, depth: int) -> bool:
    if not isinstance(data, dict | list):
        return True
    inner = data.values() if isinstance(data, dict) else data
    return depth > 0 and all(_depth_is_in_bounds(each, depth - 1) for each in inner)
