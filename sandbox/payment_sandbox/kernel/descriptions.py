"""What the types of records say about their fields besides Python's types: formats, values and shapes.

They stand in ``Annotated``, with a text that describes the field.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple


class Format(NamedTuple):
    """The format of a text."""

    name: str


class OneOf(NamedTuple):
    """The values that a field can have; looked up when the API is described, because that loads a lot."""

    values: Callable[[], Iterable[str]]


INTERNAL: Final = object()
"""Marks a field that no answer shows."""


class Like(NamedTuple):
    """A field whose shape has another definition, as that of a merchant's record."""

    shape: Callable[[], Any]
