"""Markdown tables, including those of a schema's fields."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

KINDS: Final = {"integer": "whole number", "string": "text", "boolean": "true or false", "number": "number"}
FORMATS: Final = {"duration": "duration", "date-time": "date and time", "date": "date", "uri": "web address"}
NESTED_MOST: Final = 3


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; bars in cells are escaped."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(cell: object) -> str:
    return str(cell).replace("\n", " ").replace("|", r"\|")


def code(words: Iterable[object]) -> str:
    """Words as inline code, separated by commas."""
    return ", ".join(f"`{word}`" for word in words)


def fields(schema: Mapping[str, Any], named: Mapping[str, Any]) -> str:
    """A table of an object's fields; ``named`` are the schemas that ``$ref`` may name."""
    rows = list(_rows(schema, named, ""))
    return table(("Field", "Value", "Description"), rows) if rows else "No fields."


def _rows(
    schema: Mapping[str, Any], named: Mapping[str, Any], path: str, depth: int = 1
) -> Iterator[Sequence[str]]:
    required = schema.get("required", ())
    for name, item in schema.get("properties", {}).items():
        needed = ", required" if name in required else ""
        yield f"`{path}{name}`", f"{kind(item)}{needed}", item.get("description", "")
        inner, step = _inner(item), "[]." if item.get("type") == "array" else "."
        if inner is not None and depth < NESTED_MOST:
            yield from _rows(named[inner], named, f"{path}{name}{step}", depth + 1)


def _inner(item: Mapping[str, Any]) -> str | None:
    """The name of the schema that a field, or each item of its list, refers to."""
    for place in (item, item.get("items", {}), *item.get("anyOf", ()), *item.get("allOf", ())):
        if "$ref" in place:
            name: str = place["$ref"].rpartition("/")[2]
            return name
    return None


def kind(item: Mapping[str, Any]) -> str:
    """The values that a field accepts, in words."""
    if "enum" in item or "const" in item:
        return code(map(_word, item.get("enum", [item.get("const")])))
    alternatives = item.get("anyOf") or item.get("allOf")
    if alternatives:
        return " or ".join(dict.fromkeys(kind(alternative) for alternative in alternatives))
    of = item.get("type", "object")
    return " or ".join(_of_type(one, item) for one in ([of] if isinstance(of, str) else of) if one != "null")


def _word(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _of_type(of: str, item: Mapping[str, Any]) -> str:
    if of == "array":
        return f"list of: {kind(item.get('items', {}))}"
    if of == "string" and item.get("format") in FORMATS:
        return FORMATS[item["format"]]
    low, high = item.get("minimum"), item.get("maximum")
    bounds = f", {low:g} to {high:g}" if low is not None and high is not None and high < 1e6 else ""
    return f"{KINDS.get(of, of)}{bounds}"
