"""Writes the types of the merchant's records from their tables: python -m tests.typed_records."""

from pathlib import Path
from typing import Any

from marshmallow import Schema, fields

from payment_sandbox.web.answers import merchant_records
from payment_sandbox.web.answers.order_tables import ORDER

FILE = Path(merchant_records.__file__)
HEAD = '''"""The types of the merchant API's records, for typed clients; generated from their tables.

``python -m tests.typed_records`` writes this file, and a test compares it with the tables.
"""

from typing import Any, NotRequired, TypedDict

'''
TYPES = {fields.Integer: "int", fields.Boolean: "bool", fields.Float: "float", fields.String: "str"}


def written() -> str:
    """Return the expected text of the file."""
    classes: dict[str, str] = {}
    _record(ORDER.shape, classes)
    return (HEAD + "\n".join(classes.values())).rstrip() + "\n"


def _record(shape: type[Schema], classes: dict[str, str]) -> str:
    name = shape.__name__.removesuffix("Shape").removesuffix("Form")
    rows = [(key, _type(field, classes), field.required) for key, field in shape().fields.items()]
    lines = [f"    {key}: {kind if is_always else f'NotRequired[{kind}]'}\n" for key, kind, is_always in rows]
    about = (shape.__doc__ or "").splitlines()[0]
    classes[name] = f'\nclass {name}(TypedDict):\n    """{about}"""\n\n{"".join(lines)}'
    return name


def _type(field: Any, classes: dict[str, str]) -> str:
    kind = _plain(field, classes)
    return f"{kind} | None" if field.allow_none and kind != "Any" else kind


def _plain(field: Any, classes: dict[str, str]) -> str:
    if isinstance(field, fields.List):
        return f"list[{_type(field.inner, classes)}]"
    if isinstance(field, fields.Nested):
        return _record(type(field.schema), classes)
    if isinstance(field, fields.Dict):
        return "dict[str, Any]"
    return next((name for kind, name in TYPES.items() if isinstance(field, kind)), "Any")


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
