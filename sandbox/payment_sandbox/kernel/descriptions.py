"""Annotations of record fields beyond their Python types: formats, allowed values and shapes.

Use them in ``Annotated``, next to the string that describes the field.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Final, NamedTuple, get_args, get_type_hints

from payment_sandbox.kernel.times import timestamp


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
    """The name of a parameter or field in the API, if its name in Python says more, such as its unit."""

    name: str


@cache
def shown_keys(record: Any) -> Mapping[str, str]:
    """Return the names in the API of a record's fields, without internal fields."""
    notes = {name: get_args(hint)[1:] for name, hint in get_type_hints(record, include_extras=True).items()}
    return {
        name: next((note.name for note in known if isinstance(note, Key)), name)
        for name, known in notes.items()
        if INTERNAL not in known
    }


def to_plain_data(record: Any) -> dict[str, Any]:
    """Convert a record to plain data, for responses and events."""
    values = {key: getattr(record, name) for name, key in shown_keys(record.__class__).items()}
    return {key: timestamp(each) if isinstance(each, datetime) else each for key, each in values.items()}
