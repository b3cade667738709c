"""Annotations of record fields beyond their Python types: formats, allowed values and shapes.

Use them in ``Annotated``, next to the string that describes the field.
"""

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Final, NamedTuple


class Format(NamedTuple):
    """The format of a string, such as ``date-time``."""

    name: str


Moment = Annotated[str, Format("date-time")]
"""An ISO 8601 time with microseconds and offset."""


class OneOf(NamedTuple):
    """The allowed values of a field; computed only for the API description, because that loads many files."""

    values: Callable[[], Iterable[str]]


INTERNAL: Final = object()
"""Marks a field that responses omit."""


class Like(NamedTuple):
    """A field whose shape is defined elsewhere, such as a merchant's record."""

    shape: Callable[[], Any]


class Key(NamedTuple):
    """The name of a parameter in requests, if its name in Python says more, such as its unit."""

    name: str
