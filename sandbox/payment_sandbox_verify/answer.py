"""An answer from the service under verification."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from payment_sandbox.web.bodies import depth

Json = dict[str, Any]
"""A JSON object."""


class CannotTell(Exception):
    """A step could not be played; the message is the reason."""


class NotAnswered(CannotTell):
    """A call got no answer, so the rest of its scene is not played."""


class NotVerified(Exception):
    """The service cannot be verified at all; the message is the reason."""


class _Missing:
    """The type of ``MISSING``, the value of an absent field."""

    def __repr__(self) -> str:
        return "missing"


MISSING: Final = _Missing()
UNAUTHORIZED: Final = 401
SUCCESS_STATUSES: Final = range(200, 300)
REFUSED_STATUSES: Final = range(400, 500)
DEPTH_MAX: Final = 100
PATH_SEGMENT: Final = re.compile(r"\[(-?\d+)\]|([^.\[\]]+)")


class ServiceAnswer(NamedTuple):
    """One call and its answer; ``data`` is the parsed body, or None if the body is not JSON.

    ``is_repeated`` means that an earlier attempt got no answer, but may have been carried out.
    """

    method: str
    path: str
    status: int
    headers: Mapping[str, str]
    data: Any
    content: bytes = b""
    is_repeated: bool = False

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return self.status in SUCCESS_STATUSES

    @property
    def summary(self) -> str:
        """The status and error type as text."""
        error = self.at("error.type")
        return f"{self.status}{'' if error is MISSING else f' {error}'}"

    def at(self, path: str) -> Any:
        """Return the value at a path such as ``transactions[0].status``, or ``MISSING``."""
        return value_at(self.data, path)

    def list_at(self, path: str) -> list[Any]:
        """Return the list at a path, or an empty list."""
        value = self.at(path)
        return value if isinstance(value, list) else []


NO_ANSWER: Final = ServiceAnswer("", "", 0, {}, None)


def value_at(data: Any, path: str) -> Any:
    """Return the value at a path in a JSON document, or ``MISSING``."""
    value = data
    for index, key in PATH_SEGMENT.findall(path):
        try:
            value = value[int(index)] if index else value[key]
        except (KeyError, IndexError, TypeError):
            return MISSING
    return value


def _parse_number(text: str) -> float | int:
    """Parse a number; JSON does not tell 1.0 from 1."""
    number = float(text)
    return int(number) if number.is_integer() else number


def media_type_of(header: str) -> str:
    """Return the media type in a ``Content-Type``, without its parameters."""
    return header.partition(";")[0].strip().lower()


def parse_json(content: bytes) -> Any:
    """Parse a JSON body; return None if it is malformed or nested too deeply."""
    try:
        data = json.loads(content, parse_float=_parse_number)
        return None if depth(data) > DEPTH_MAX else data
    except (ValueError, RecursionError):
        return None
