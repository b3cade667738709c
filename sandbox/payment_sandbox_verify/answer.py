"""An answer from the service under verification."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from payment_sandbox.kernel.patterns import UUID
from payment_sandbox.web.bodies import is_nested_deeper

Json = dict[str, Any]
"""A JSON object."""


class _Missing:
    """The type of ``MISSING``, the value of an absent field."""

    def __repr__(self) -> str:
        return "missing"


MISSING: Final = _Missing()
SUCCESS_STATUSES: Final = range(200, 300)
DEPTH_MAX: Final = 100
SERVICE_SPECIFIC: Final = re.compile(  # must match in linear time, because strings may be long
    r"\b\w+://\S*|\d{4}-\d\d-\d\d[T ][\d:.]+\S*|\"[0-9a-f-]{8,}[^\s\"]*\"|token-?\w*"
)
PATH_SEGMENT: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


class ServiceAnswer(NamedTuple):
    """One call and its answer; ``data`` is the parsed body, or None if the body is not JSON."""

    method: str
    path: str
    request_body: Any
    status: int
    headers: Mapping[str, str]
    data: Any
    content: bytes = b""
    call_key: tuple[Any, ...] = ()
    """The key of the call; two services' answers to the same call by the same probe have equal keys."""

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return self.status in SUCCESS_STATUSES

    @property
    def summary(self) -> str:
        """The status and error type as text."""
        error = self.at("error.type")
        return f"{self.status}{'' if error is MISSING else f' {error}'}"

    @property
    def call(self) -> str:
        """The method and path, as text."""
        return f"{self.method} {self.path}"

    def at(self, path: str) -> Any:
        """Return the value at a path such as ``transactions[0].status``, or ``MISSING``."""
        return value_at(self.data, path)

    def list_at(self, path: str) -> list[Any]:
        """Return the list at a path, or an empty list."""
        value = self.at(path)
        return value if isinstance(value, list) else []


def value_at(data: Any, path: str) -> Any:
    """Return the value at a path in a JSON document, or ``MISSING``."""
    value = data
    for index, key in PATH_SEGMENT.findall(path):
        try:
            value = value[int(index)] if index else value[key]
        except (KeyError, IndexError, TypeError):
            return MISSING
    return value


def none_if_missing(value: Any) -> Any:
    """Replace ``MISSING`` with None."""
    return None if value is MISSING else value


def anonymize(text: str) -> str:
    """Remove identifiers, URLs and times, which differ between services, from a string."""
    return SERVICE_SPECIFIC.sub("", UUID.sub("", text))


def parse_json(content: bytes) -> Any:
    """Parse a JSON body; return None if it is malformed or nested too deeply."""
    try:
        data = json.loads(content)
        return None if is_nested_deeper(content, data, DEPTH_MAX) else data
    except (ValueError, RecursionError):
        return None
