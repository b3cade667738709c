"""JSON Schema generated from the forms, the only source of these rules."""

from collections.abc import Iterable, Iterator, Mapping
from inspect import getdoc
from typing import Any, Final

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from marshmallow import RAISE, Schema, fields

from payment_sandbox.forms.base import Form
from payment_sandbox.forms.fields import Items, NumberOrText, OneOrMany, Seconds

COMPONENTS: Final = "#/components/schemas/"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


class StrictSchemaPlugin(MarshmallowPlugin):
    """A plugin that forbids additional keys, and allows null for absent values."""

    closed: frozenset[type[Schema]] = frozenset()

    def schema_helper(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Return the schema for the components section."""
        described = super().schema_helper(name, *arguments, **options)  # type: ignore[no-untyped-call]
        if described is None:  # the component of a record
            return None
        kind = _class_of(options["schema"])
        if kind in self.closed or kind().unknown == RAISE:
            described["additionalProperties"] = False
        if issubclass(kind, Form) and kind.null_is_absent:
            for schema in described["properties"].values():
                schema.update(allow_null(schema))
        return described


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


def create_plugin(closed: Iterable[type[Schema]] = ()) -> MarshmallowPlugin:
    """Create the plugin that describes forms and shapes in an OpenAPI document.

    The ``closed`` forms, and the forms nested in them, allow no additional keys.
    """
    strict_plugin = StrictSchemaPlugin(schema_name_resolver=schema_name)
    strict_plugin.closed = frozenset(part for form in closed if form().fields for part in _nested_forms(form))
    return strict_plugin


def _nested_forms(form: type[Schema]) -> Iterator[type[Schema]]:
    yield form
    for field in form().fields.values():
        inner = field.inner if isinstance(field, fields.List) else field
        if isinstance(inner, fields.Nested):
            yield from _nested_forms(_class_of(inner.schema))


def register_field_types(plugin: MarshmallowPlugin) -> None:
    """Register the field types of forms with a plugin, after the document was created."""
    assert plugin.converter is not None, "the document must have initialised its plugins"
    plugin.map_to_openapi_type(NumberOrText, None, None)  # type: ignore[no-untyped-call]
    for function in (_add_bounds, _allow_single_item, _add_alternative, _allow_null_reference):
        plugin.converter.add_attribute_function(function)  # type: ignore[no-untyped-call]


def schema_name(schema: Any) -> str:
    """Return the component name: ``OrderForm`` becomes ``OrderRequest``, ``OrderShape`` becomes ``Order``."""
    return _class_of(schema).__name__.replace("Form", "Request").removesuffix("Shape")


def json_schema(form: type[Form], parts: Mapping[str, type[Form]]) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a form and its nested forms, without additional keys.

    If this form leaves the value of a key open, ``parts`` has the form of that value, by key.
    """
    kinds: dict[str, type[Schema]] = {}

    def remember_name(schema: Any) -> str:
        name = _form_name(schema)
        kinds[name] = _class_of(schema)
        return name

    plain = MarshmallowPlugin(schema_name_resolver=remember_name)
    document = APISpec(title="", version="", openapi_version="3.1.0", plugins=[plain])
    register_field_types(plain)
    for kind in (form, *parts.values()):
        document.components.schema(remember_name(kind), schema=kind)
    schemas: dict[str, Any] = document.to_dict()["components"]["schemas"]
    for name, described in kinds.items():
        _forbid_other_keys(described, schemas[name])
    whole = schemas.pop(_form_name(form))
    for key, part in parts.items():
        about = {name: fact for name, fact in whole["properties"][key].items() if name == "description"}
        whole["properties"][key] = {**about, "$ref": f"{COMPONENTS}{_form_name(part)}"}
    schema = {"$schema": DIALECT, "title": _form_name(form), **whole, "$defs": dict(sorted(schemas.items()))}
    return dict(_with_local_references(schema))


def _forbid_other_keys(form: type[Schema], schema: dict[str, Any]) -> None:
    """Add the keywords that apply to the whole form."""
    schema["additionalProperties"] = False
    schema["description"] = (getdoc(form) or "").splitlines()[0]
    schema.update(getattr(form, "also_required", {}))


def _with_local_references(node: Any) -> Any:
    """Replace references to OpenAPI components with local references."""
    if isinstance(node, dict):
        return {key: _with_local_references(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [_with_local_references(item) for item in node]
    return node.replace(COMPONENTS, "#/$defs/") if isinstance(node, str) else node


def _form_name(schema: Any) -> str:
    return _class_of(schema).__name__.removesuffix("Form")


def _class_of(schema: Any) -> type[Schema]:
    return schema if isinstance(schema, type) else type(schema)


def _add_bounds(self: Any, field: "fields.Field[Any]", ret: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Add the length limits of a list, or the exclusive minimum of seconds."""
    if isinstance(field, Seconds):
        return {"exclusiveMinimum": ret.pop("minimum")}
    if not isinstance(field, Items):
        return {}
    bounds = {"minItems": field.least or None, "maxItems": field.most}
    return {keyword: bound for keyword, bound in bounds.items() if bound is not None}


def _allow_single_item(
    self: Any, field: "fields.Field[Any]", ret: dict[str, Any], **options: Any
) -> dict[str, Any]:
    """Allow a single item without a list, with the keywords of list items."""
    if not isinstance(field, OneOrMany):
        return {}
    inner = ret["items"]
    return {**inner, "type": [inner["type"], "array"]}


def _allow_null_reference(
    self: Any, field: "fields.Field[Any]", ret: dict[str, Any], **options: Any
) -> dict[str, Any]:
    """Allow null in addition to other values; apispec before 6.8 would allow only null."""
    if ret.get("type") != ["null"]:
        return {}
    del ret["type"]
    return {"anyOf": [{"$ref": ret.pop("$ref")}, {"type": "null"}]} if "$ref" in ret else {}


def _add_alternative(
    self: Any, field: "fields.Field[Any]", ret: dict[str, Any], **options: Any
) -> dict[str, Any]:
    """Add the alternative to an object."""
    if "allOf" in ret:  # apispec before 6.8 separates a reference from other keywords this way
        ret.update(ret.pop("allOf")[0])
    alternative_schema = getattr(field, "alternative_schema", None)
    return {} if alternative_schema is None else {"anyOf": [alternative_schema, {"$ref": ret.pop("$ref")}]}
