"""Annotations of record fields beyond their Python types: formats, allowed values and shapes.

Use them in ``Annotated``, next to the string that describes the field.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple


class Format(NamedTuple):
    """The format of a string, such as ``date-time``."""

    name: str


class OneOf(NamedTuple):
    """The allowed values of a field; computed only for the API description, because that loads many files."""

    values: Callable[[], Iterable[str]]


INTERNAL: Final = object()
"""Marks a field that responses omit."""


class Like(NamedTuple):
    """A field whose shape is defined elsewhere, such as a merchant's record."""

    shape: Callable[[], Any]
