"""The fields of a form, and the texts in a document, by their paths."""

from collections.abc import Iterator, Mapping
from typing import Any

from marshmallow import Schema, fields


def fields_of(form: Schema, path: str = "") -> Iterator[str]:
    """Yield the paths of all fields of a form, at any level, such as ``customer.phone_numbers[]``."""
    for name, each in form.load_fields.items():
        yield from _below(f"{path}{'.' if path else ''}{each.data_key or name}", each)


def _below(path: str, each: Any) -> Iterator[str]:
    yield path
    if isinstance(each, fields.List):
        yield from _below(f"{path}[]", each.inner)
    elif isinstance(each, fields.Nested):
        yield from fields_of(each.schema, path)
    elif isinstance(each, fields.Dict):
        yield f"{path}.any"


def with_field(body: Any, path: str, value: Any) -> Any:
    """Return a copy of a body with this value; missing objects on the path are created."""
    name, _, rest = path.partition(".")
    if not path:
        return value
    if name.endswith("[]"):
        items = body.get(name[:-2]) if isinstance(body, Mapping) else None
        first = items[0] if isinstance(items, list) and items else {}
        return {**_object(body), name[:-2]: [with_field(first, rest, value) if rest else value]}
    inner = _object(body).get(name, {})
    return {**_object(body), name: with_field(inner, rest, value) if rest else value}


def _object(body: Any) -> dict[str, Any]:
    return dict(body) if isinstance(body, Mapping) else {}


def leaves(document: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths of all texts in a document."""
    if isinstance(document, Mapping):
        for name, inner in document.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(document, list):
        for index, inner in enumerate(document):
            yield from leaves(inner, (*path, index))
    elif isinstance(document, str):
        yield path


def replaced(document: Any, path: tuple[str | int, ...], value: str) -> Any:
    """Return a copy of a document with another text at the path."""
    if not path:
        return value
    if isinstance(document, list):
        return [
            replaced(inner, path[1:], value) if index == path[0] else inner
            for index, inner in enumerate(document)
        ]
    return {
        name: replaced(inner, path[1:], value) if name == path[0] else inner
        for name, inner in document.items()
    }
