"""Markdown tables, including tables of a schema's fields."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

TYPE_NAMES: Final = {
    "integer": "whole number",
    "string": "text",
    "boolean": "true or false",
    "number": "number",
}
FORMAT_NAMES: Final = {"duration": "duration", "date-time": "date and time", "date": "date", "uri": "URL"}
NESTING_MAX: Final = 3


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Format a table; vertical bars in cells are escaped."""
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join("| " + " | ".join(_escape_cell(cell) for cell in line) + " |" for line in lines)


def _escape_cell(cell: object) -> str:
    return str(cell).replace("\n", " ").replace("|", r"\|")


def code(words: Iterable[object]) -> str:
    """Format words as inline code, separated by commas."""
    return ", ".join(f"`{word}`" for word in words)


def fields(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    """Format a table of an object's fields; ``schemas`` are the targets of ``$ref``."""
    rows = list(_field_rows(schema, schemas, ""))
    return table(("Field", "Value", "Description"), rows) if rows else "No fields."


def _field_rows(
    schema: Mapping[str, Any], schemas: Mapping[str, Any], path: str, depth: int = 1
) -> Iterator[Sequence[str]]:
    required = schema.get("required", ())
    for name, item in schema.get("properties", {}).items():
        needed = ", required" if name in required else ""
        yield f"`{path}{name}`", f"{describe_values(item)}{needed}", item.get("description", "")
        nested, step = _nested_schema(item), "[]." if item.get("type") == "array" else "."
        if nested is not None and depth < NESTING_MAX:
            yield from _field_rows(schemas[nested], schemas, f"{path}{name}{step}", depth + 1)


def _nested_schema(item: Mapping[str, Any]) -> str | None:
    """Return the name of the schema that a field or its items refer to; None if there is no reference."""
    items = item.get("items", {})
    for part in (item, items, *items.get("anyOf", ()), *item.get("anyOf", ()), *item.get("allOf", ())):
        if "$ref" in part:
            name: str = part["$ref"].rpartition("/")[2]
            return name
    return None


def describe_values(item: Mapping[str, Any]) -> str:
    """Describe the accepted values of a field."""
    if "enum" in item or "const" in item:
        return code(map(_format_value, item.get("enum", [item.get("const")])))
    alternatives = item.get("anyOf") or item.get("allOf")
    if alternatives:
        return " or ".join(filter(None, dict.fromkeys(map(describe_values, alternatives))))  # not null
    type_name = item.get("type", "object")
    return " or ".join(
        _describe_type(one, item)
        for one in ([type_name] if isinstance(type_name, str) else type_name)
        if one != "null"
    )


def _format_value(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _describe_type(type_name: str, item: Mapping[str, Any]) -> str:
    if type_name == "array":
        return f"list of: {describe_values(item.get('items', {}))}"
    if type_name == "string" and item.get("format") in FORMAT_NAMES:
        return FORMAT_NAMES[item["format"]]
    low, high = item.get("minimum"), item.get("maximum")
    bounds = f", {low:g} to {high:g}" if low is not None and high is not None and high < 1e6 else ""
    return f"{TYPE_NAMES.get(type_name, type_name)}{bounds}"
