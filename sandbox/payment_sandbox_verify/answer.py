"""An answer of the service under verification."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from payment_sandbox.kernel.patterns import UUID
from payment_sandbox.web.bodies import nests_deeper

Json = dict[str, Any]
"""A JSON object."""


class _Missing:
    """What a field that is not there has for a value."""

    def __repr__(self) -> str:
        return "missing"


MISSING: Final = _Missing()
SUCCESS: Final = range(200, 300)
DEPTH_MAX: Final = 100
EACH_ITS_OWN: Final = re.compile(  # in linear time: a text may be long
    r"\b\w+://\S*|\d{4}-\d\d-\d\d[T ][\d:.]+\S*|\"[0-9a-f-]{8,}[^\s\"]*\"|token-?\w*"
)
STEP: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


class ServiceAnswer(NamedTuple):
    """One call and its answer; ``data`` is the parsed body, None if it is no JSON."""

    method: str
    path: str
    sent: Any
    status: int
    headers: Mapping[str, str]
    data: Any
    content: bytes = b""
    asked: tuple[Any, ...] = ()
    """Which question it answers: equal for the answers of two services to the same call of the same probe."""

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

    def listed(self, place: str) -> list[Any]:
        """The list at a place; an empty one if there is none."""
        value = self.at(place)
        return value if isinstance(value, list) else []


def value_at(data: Any, place: str) -> Any:
    """The value at a place in a JSON document; ``MISSING`` if there is none."""
    value = data
    for index, key in STEP.findall(place):
        try:
            value = value[int(index)] if index else value[key]
        except (KeyError, IndexError, TypeError):
            return MISSING
    return value


def plain(value: Any) -> Any:
    """A value, or None where there is none."""
    return None if value is MISSING else value


def anonymous(text: str) -> str:
    """A text without what is another at each service: identifiers, addresses, times."""
    return EACH_ITS_OWN.sub("", UUID.sub("", text))


def parsed(content: bytes) -> Any:
    """The JSON in a body; None if it is none, or goes too deep."""
    try:
        data = json.loads(content)
        return None if nests_deeper(content, data, DEPTH_MAX) else data
    except (ValueError, RecursionError):
        return None
