"""The marshmallow schemas of records, derived from their types, for OpenAPI and the tests.

A record is a ``TypedDict`` or a ``NamedTuple``.
"""

import types
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from marshmallow import Schema, fields

from payment_sandbox.kernel.descriptions import INTERNAL, Format, Like, OneOf
from payment_sandbox.web.answers.tables import number

DROPPED_DESCRIPTION: Final = "The number of older items dropped to make room."
PLAIN_FIELDS: "Final[dict[Any, type[fields.Field[Any]]]]" = {
    str: fields.String,
    int: fields.Integer,
    bool: fields.Boolean,
    float: fields.Float,
    Any: fields.Raw,
}


class RecordList(NamedTuple):
    """A list of records in a response of the control API."""

    record: Any
    name: str


def declare_list(record: Any, name: str) -> RecordList:
    """Declare a list of records as the response of a route; ``name`` is its name in OpenAPI."""
    return RecordList(record, name)


@cache
def shape_of(answer: Any) -> type[Schema]:
    """Return the schema of a record or a list of records; a schema is returned unchanged."""
    if isinstance(answer, RecordList):
        return _build_schema(
            answer.name,
            f"A list: {answer.record.__doc__}",
            {
                "items": _require(fields.List(_nested_field(answer.record))),
                "dropped": _require(number(DROPPED_DESCRIPTION)),
            },
        )
    if not _is_record(answer):
        shape: type[Schema] = answer
        return shape
    hints = get_type_hints(answer, include_extras=True)
    if is_typeddict(answer):
        described_fields = {
            name: _field(hint, name in answer.__required_keys__) for name, hint in hints.items()
        }
    else:
        described_fields = dict(_tuple_fields(answer, hints))
    return _build_schema(answer.__name__, answer.__doc__ or "", described_fields)


def _is_record(kind: Any) -> bool:
    return is_typeddict(kind) or hasattr(kind, "_fields")


def _tuple_fields(answer: Any, hints: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a ``NamedTuple``; a field that defaults to None is optional."""
    for name, hint in hints.items():
        if INTERNAL in get_args(hint):
            continue
        is_required = answer._field_defaults.get(name, ...) is not None
        field = _field(hint, is_required)
        field.allow_none = field.allow_none and is_required
        yield name, field


def _build_schema(name: str, about: str, described_fields: dict[str, Any]) -> type[Schema]:
    schema: Any = Schema.from_dict(described_fields, name=f"{name}Shape")
    schema.__doc__ = about.partition("\n\n")[0]
    return schema  # type: ignore[no-any-return]


def _require(field: Any) -> Any:
    field.required = True
    return field


def _nested_field(record: Any) -> Any:
    return fields.Nested(shape_of(record))


def _field(hint: Any, is_required: bool = True) -> Any:
    if get_origin(hint) is NotRequired:
        hint = get_args(hint)[0]
    hint, metadata, like = _split_annotated(hint)
    variants = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    kinds = [arm for arm in variants if arm is not type(None)]
    field: Any = fields.Raw() if len(kinds) > 1 else _field_of_type(kinds[0])
    if like is not None:
        field = fields.Nested(like())
    field.metadata.update(metadata)
    field.required = is_required
    if len(kinds) < len(variants):
        field.allow_none = True
    return field


def _split_annotated(hint: Any) -> tuple[Any, dict[str, Any], Any]:
    """Split a hint into its type, the metadata of its field, and the getter of its schema."""
    metadata: dict[str, Any] = {}
    like = None
    if get_origin(hint) is Annotated:
        hint, *notes = get_args(hint)
        for note in notes:
            if isinstance(note, str):
                metadata["description"] = note
            elif isinstance(note, Format):
                metadata["format"] = note.name
            elif isinstance(note, OneOf):
                metadata["enum"] = list(note.values())
            elif isinstance(note, Like):
                like = note.shape
    return hint, metadata, like


def _field_of_type(kind: Any) -> Any:
    origin, variants = get_origin(kind), get_args(kind)
    if origin is Annotated:  # a variant of a union with None
        return _field(kind)
    if origin is Literal:
        field: Any = PLAIN_FIELDS[type(variants[0])]()
        field.metadata["enum"] = list(variants)
        return field
    if origin in (list, tuple, Sequence):
        return fields.List(_field(variants[0], is_required=False))
    if origin in (dict, Mapping):
        values = {} if variants[1] is Any else {"values": _field(variants[1], is_required=False)}
        return fields.Dict(keys=fields.String(), **values) if values else fields.Dict()
    if kind is datetime:
        return fields.String(metadata={"format": "date-time"})
    return _nested_field(kind) if _is_record(kind) else PLAIN_FIELDS[kind]()
