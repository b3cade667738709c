"""NAME=VALUE on the command line: each value is typed by the field that reads it."""

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Annotated, Any, Final

import click
from marshmallow import fields

from payment_sandbox.forms import Form, Items
from payment_sandbox.forms.fields import OneOrMany

NULL: Final = "null"
Assignments = Annotated[tuple[str, ...], "[NAME=VALUE]..."]


def read_assignments(pairs: Iterable[str], form: Form, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values by name; a name with dots sets a part of an object, whose other parts stay."""
    values: dict[str, Any] = {}
    inner: Any
    reader: Any
    for pair in pairs:
        name, sign, text = pair.partition("=")
        if not sign or not name:
            raise click.UsageError(f"{pair!r} is not name=value")
        *parents, last = name.split(".")
        inner, reader = values, form
        if parents:
            values.setdefault(parents[0], deepcopy(before.get(parents[0]) or {}))
        for parent in parents:
            inner, reader = inner.setdefault(parent, {}), _reader_of(reader, parent)
            if not isinstance(inner, dict):
                raise click.UsageError(f"{pair!r} sets a part of {parent}, which is not an object")
        inner[last] = _read_value(_reader_of(reader, last), text)
    return values


def _reader_of(reader: Any, key: str) -> Any:
    """Return the field that reads a key in what a form or a field reads; None if nothing is declared."""
    form = reader.schema if isinstance(reader, fields.Nested) else reader
    return form.fields.get(key) if isinstance(form, Form) else getattr(form, "value_field", None)


def _read_value(field: Any, text: str) -> Any:
    """Parse a value for its field, without a check: the server refuses what the field does not read."""
    if text != NULL and isinstance(field, fields.String):
        return text
    if text != NULL and isinstance(field, Items) and not text.startswith(("[", "{")):
        items = [_read_value(field.inner, part) for part in text.split(",") if part]
        return items[0] if isinstance(field, OneOrMany) and len(items) == 1 else items
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
