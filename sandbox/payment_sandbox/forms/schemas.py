"""JSON Schema generated from the forms, the only source of these rules."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import getdoc
from typing import Any, Final

from marshmallow import RAISE, Schema, fields, missing, validate

from payment_sandbox.forms.base import Form
from payment_sandbox.forms.fields import Items, OneOrMany, Seconds

COMPONENTS: Final = "#/components/schemas/"
DEFINITIONS: Final = "#/$defs/"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
TYPES: Final[Mapping[type["fields.Field[Any]"], str | None]] = {
    fields.Raw: None,
    fields.String: "string",
    fields.Integer: "integer",
    fields.Float: "number",
    fields.Boolean: "boolean",
    fields.Dict: "object",
    fields.List: "array",
    fields.Nested: None,
}
"""The types of values by field; the first matching field counts."""


class FormSchemas:
    """The JSON Schemas of forms, and of the forms nested in them, by name."""

    def __init__(
        self, name_of: Callable[[type[Schema]], str], finish: Callable[[type[Schema], dict[str, Any]], None]
    ) -> None:
        """Refer to OpenAPI components; ``finish`` adds the keywords that apply to a whole form."""
        self.schemas: dict[str, dict[str, Any]] = {}
        self.prefix = COMPONENTS
        self._name_of = name_of
        self._finish = finish

    def refer(self, form: type[Schema]) -> dict[str, Any]:
        """Add the schema of a form, and return a reference to it."""
        name = self._name_of(form)
        if name not in self.schemas:
            known = form().fields
            properties = {key: self.describe(field) for key, field in known.items()}
            schema: dict[str, Any] = {"type": "object", "properties": properties}
            required = sorted(key for key, field in known.items() if field.required)
            self.schemas[name] = {**schema, "required": required} if required else schema
            self._finish(form, self.schemas[name])
        return {"$ref": f"{self.prefix}{name}"}

    def describe(self, field: "fields.Field[Any]") -> dict[str, Any]:
        """Return the schema of a field's value."""
        kind = next(kind for known, kind in TYPES.items() if isinstance(field, known))
        schema = {**({"type": kind} if kind is not None else {}), **self._describe_content(field)}
        if field.load_default is not missing and not callable(field.load_default):
            schema["default"] = field.load_default
        schema |= {**dict(_limits(field)), **field.metadata}
        if isinstance(field, OneOrMany):
            schema |= {**schema["items"], "type": [schema["items"]["type"], "array"]}
        if hasattr(field, "alternative_schema"):
            schema["anyOf"] = [field.alternative_schema, {"$ref": schema.pop("$ref")}]
        return allow_null(schema) if field.allow_none else schema

    def _describe_content(self, field: "fields.Field[Any]") -> dict[str, Any]:
        """Return the keywords for the values inside an object or a list."""
        if isinstance(field, fields.Nested):
            return self.refer(type(field.schema))
        if isinstance(field, fields.List):
            return {"items": self.describe(field.inner)}
        if isinstance(field, fields.Dict):
            return {"additionalProperties": self.describe(field.value_field) if field.value_field else {}}
        return {}


def _limits(field: "fields.Field[Any]") -> Iterator[tuple[str, Any]]:
    """Yield the keywords of the limits of a number, a text or a list."""
    limits: list[tuple[str, Any]] = []
    for validator in field.validators:
        if isinstance(validator, validate.Range):
            low = "exclusiveMinimum" if isinstance(field, Seconds) else "minimum"
            limits += [(low, validator.min), ("maximum", validator.max)]
        elif isinstance(validator, validate.Length):
            limits += [("minLength", validator.min), ("maxLength", validator.max)]
    if isinstance(field, Items):
        limits += [("minItems", field.least or None), ("maxItems", field.most)]
    yield from ((keyword, limit) for keyword, limit in limits if limit is not None)


def allow_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema that also allows null."""
    if "$ref" in schema:
        return {"anyOf": [dict(schema), {"type": "null"}]}
    nullable = dict(schema)
    if "type" in schema:
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        nullable["type"] = [*types, "null"]
    if "enum" in schema:
        nullable["enum"] = [*schema["enum"], None]
    return nullable


def _allow_nulls(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema that also allows null, and null as an item of a list."""
    items = {"items": allow_null(schema["items"])} if "items" in schema else {}
    return allow_null({**schema, **items})


def component_schemas(closed: Iterable[type[Schema]] = ()) -> FormSchemas:
    """Return the schemas of forms and shapes for an OpenAPI document.

    The ``closed`` forms, and the forms nested in them, allow no additional keys.
    """
    closed_forms = frozenset(part for form in closed if form().fields for part in _nested_forms(form))

    def finish(form: type[Schema], schema: dict[str, Any]) -> None:
        if form in closed_forms or form().unknown == RAISE:
            schema["additionalProperties"] = False
        elif not form().fields:
            schema["additionalProperties"] = True  # a document: keys about which nothing is said
        if issubclass(form, Form) and form.null_is_absent:
            schema["properties"] = {key: _allow_nulls(value) for key, value in schema["properties"].items()}

    return FormSchemas(_component_name, finish)


def _nested_forms(form: type[Schema]) -> Iterator[type[Schema]]:
    yield form
    for field in form().fields.values():
        inner = field.inner if isinstance(field, fields.List) else field
        if isinstance(inner, fields.Nested):
            yield from _nested_forms(type(inner.schema))


def _component_name(form: type[Schema]) -> str:
    """Return the component name: ``OrderForm`` becomes ``OrderRequest``, ``OrderShape`` becomes ``Order``."""
    return form.__name__.replace("Form", "Request").removesuffix("Shape")


def json_schema(form: type[Form], parts: Mapping[str, type[Form]]) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a form and its nested forms, without additional keys.

    If this form leaves the value of a key open, ``parts`` has the form of that value, by key.
    """
    known = FormSchemas(_form_name, _forbid_other_keys)
    known.prefix = DEFINITIONS
    known.refer(form)
    whole = known.schemas.pop(_form_name(form))
    for key, part in parts.items():
        about = {name: fact for name, fact in whole["properties"][key].items() if name == "description"}
        whole["properties"][key] = {**about, **known.refer(part)}
    return {
        "$schema": DIALECT,
        "title": _form_name(form),
        **whole,
        "$defs": dict(sorted(known.schemas.items())),
    }


def _forbid_other_keys(form: type[Schema], schema: dict[str, Any]) -> None:
    schema["additionalProperties"] = False
    schema["description"] = (getdoc(form) or "").splitlines()[0]
    schema.update(getattr(form, "also_required", {}))


def _form_name(form: type[Schema]) -> str:
    return form.__name__.removesuffix("Form")
