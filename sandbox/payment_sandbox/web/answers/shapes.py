"""The JSON Schemas of records, derived from their types, for OpenAPI.

A record is a ``TypedDict`` or a ``NamedTuple``.
"""

import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
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

from apispec import APISpec

from payment_sandbox.forms.schemas import COMPONENTS, allow_null
from payment_sandbox.kernel.descriptions import INTERNAL, Format, Like, OneOf

DROPPED: Final = {"type": "integer", "description": "The number of older items dropped to make room."}
TYPES: Final[Mapping[Any, str]] = {str: "string", int: "integer", bool: "boolean", float: "number"}


class RecordList(NamedTuple):
    """A list of records in a response of the control API."""

    record: Any
    name: str


def declare_list(record: Any, name: str) -> RecordList:
    """Declare a list of records as the response of a route; ``name`` is its name in OpenAPI."""
    return RecordList(record, name)


class RecordSchemas:
    """Adds the schemas of records to an OpenAPI document; ``resolve`` refers to a marshmallow schema."""

    def __init__(self, document: APISpec, resolve: Callable[[Any], Any]) -> None:
        self._document = document
        self._resolve = resolve
        self._references: dict[Any, dict[str, Any]] = {}

    def schema_of(self, answer: Any) -> Any:
        """Return a reference to a record or a list of records; a marshmallow schema is returned unchanged."""
        if not isinstance(answer, RecordList) and not _is_record(answer):
            return answer
        if answer not in self._references:
            self._references[answer] = self._add(answer)
        return self._references[answer]

    def _add(self, answer: Any) -> dict[str, Any]:
        if isinstance(answer, RecordList):
            items = {"type": "array", "items": self.schema_of(answer.record)}
            return self._add_schema(answer.name, {"items": items, "dropped": DROPPED}, {"dropped", "items"})
        hints = get_type_hints(answer, include_extras=True)
        shown = {name: hint for name, hint in hints.items() if INTERNAL not in get_args(hint)}
        properties = {name: self._describe(hint) for name, hint in shown.items()}
        required = answer.__required_keys__ if is_typeddict(answer) else _required_fields(answer, properties)
        return self._add_schema(answer.__name__, properties, required)

    def _add_schema(self, name: str, properties: dict[str, Any], required: Iterable[str]) -> dict[str, Any]:
        schema = {"type": "object", "properties": properties, "required": sorted(required)}
        if not schema["required"]:
            del schema["required"]
        self._document.components.schema(name, {**schema, "additionalProperties": False})
        return {"$ref": f"{COMPONENTS}{name}"}

    def _describe(self, hint: Any) -> dict[str, Any]:
        """Describe a value with its annotations."""
        if get_origin(hint) is NotRequired:
            hint = get_args(hint)[0]
        hint, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        if notes and isinstance(notes[0], Like):
            return dict(self._resolve(notes[0].shape()))
        variants = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
        kinds = [variant for variant in variants if variant is not type(None)]
        schema = self._describe_type(kinds[0]) if len(kinds) == 1 else {}
        for note in notes:
            schema |= _describe_note(note)
        return allow_null(schema) if len(kinds) < len(variants) else schema

    def _describe_type(self, kind: Any) -> dict[str, Any]:
        origin, variants = get_origin(kind), get_args(kind)
        if origin is Annotated:  # a variant of a union with None
            return self._describe(kind)
        if origin is Literal:
            return {"type": TYPES[type(variants[0])], "enum": list(variants)}
        if origin in (list, tuple, Sequence):
            return {"type": "array", "items": self._describe(variants[0])}
        if origin in (dict, Mapping):
            return {"type": "object", "additionalProperties": self._describe(variants[1])}
        if kind is datetime:
            return {"type": "string", "format": "date-time"}
        if kind is Any:
            return {}
        return dict(self.schema_of(kind)) if _is_record(kind) else {"type": TYPES[kind]}


def _describe_note(note: Any) -> dict[str, Any]:
    if isinstance(note, Format):
        return {"format": note.name}
    return {"enum": list(note.values())} if isinstance(note, OneOf) else {"description": note}


def _is_record(kind: Any) -> bool:
    return is_typeddict(kind) or hasattr(kind, "_fields")


def _required_fields(answer: Any, properties: dict[str, Any]) -> Iterator[str]:
    """Yield the required fields of a ``NamedTuple``; one that defaults to None may be absent, not null."""
    for name, schema in properties.items():
        if answer._field_defaults.get(name, ...) is not None:
            yield name
        elif isinstance(schema.get("type"), list):
            schema["type"] = schema["type"][0]
