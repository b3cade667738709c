"""Forms as JSON Schema: what they refuse is said once, and described from there."""

from collections.abc import Mapping
from inspect import getdoc
from typing import Any, Final

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from marshmallow import RAISE, Schema, fields

from payment_sandbox.forms.base import Form
from payment_sandbox.forms.fields import Items, NumberOrText, OneOrMany, Seconds

COMPONENTS: Final = "#/components/schemas/"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


class ClosingPlugin(MarshmallowPlugin):
    """Says that a shape has no further keys, as apispec does by itself from 6.8.3 on."""

    def schema_helper(self, name: str, *given: Any, **options: Any) -> Any:
        """A schema among the components."""
        described = super().schema_helper(name, *given, **options)  # type: ignore[no-untyped-call]
        if described is not None and _class(options["schema"])().unknown == RAISE:
            described["additionalProperties"] = False
        return described


def plugin() -> MarshmallowPlugin:
    """What describes our forms and shapes in an OpenAPI document."""
    return ClosingPlugin(schema_name_resolver=schema_name)


def prepare(made: MarshmallowPlugin) -> None:
    """Teach a plugin that belongs to a document by now the kinds of values that requests hold."""
    assert made.converter is not None, "the document has initialised its plugins"
    made.map_to_openapi_type(NumberOrText, None, None)  # type: ignore[no-untyped-call]
    for function in (_bounds, _one_or_many, _alternatives):
        made.converter.add_attribute_function(function)  # type: ignore[no-untyped-call]


def schema_name(schema: Any) -> str:
    """Requests and answers are named for what they describe."""
    return _class(schema).__name__.replace("Form", "Request").removesuffix("Shape")


def json_schema(form: type[Form], parts: Mapping[str, type[Form]]) -> dict[str, Any]:
    """A JSON Schema (2020-12) of a form and all it holds; unknown keys are refused.

    ``parts`` are forms of keys whose values the form itself leaves open.
    """
    kinds: dict[str, type[Schema]] = {}

    def named(schema: Any) -> str:
        name = _form_name(schema)
        kinds[name] = _class(schema)
        return name

    made = MarshmallowPlugin(schema_name_resolver=named)
    document = APISpec(title="", version="", openapi_version="3.1.0", plugins=[made])
    prepare(made)
    for kind in (form, *parts.values()):
        document.components.schema(named(kind), schema=kind)
    found: dict[str, Any] = document.to_dict()["components"]["schemas"]
    for name, described in kinds.items():
        _close(described, found[name])
    whole = found.pop(_form_name(form))
    for key, part in parts.items():
        told = {name: fact for name, fact in whole["properties"][key].items() if name == "description"}
        whole["properties"][key] = {**told, "$ref": f"{COMPONENTS}{_form_name(part)}"}
    schema = {"$schema": DIALECT, "title": _form_name(form), **whole, "$defs": dict(sorted(found.items()))}
    return dict(_referring(schema))


def _close(form: type[Schema], schema: dict[str, Any]) -> None:
    """Say what the form as a whole requires."""
    schema["additionalProperties"] = False
    schema["description"] = (getdoc(form) or "").splitlines()[0]
    schema.update(getattr(form, "also_required", {}))


def _referring(node: Any) -> Any:
    """With references into this document instead of an OpenAPI one."""
    if isinstance(node, dict):
        return {key: _referring(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [_referring(item) for item in node]
    return node.replace(COMPONENTS, "#/$defs/") if isinstance(node, str) else node


def _form_name(schema: Any) -> str:
    return _class(schema).__name__.removesuffix("Form")


def _class(schema: Any) -> type[Schema]:
    return schema if isinstance(schema, type) else type(schema)


def _bounds(self: Any, field: "fields.Field[Any]", ret: dict[str, Any], **options: Any) -> dict[str, Any]:
    """How many items a list may hold, and that no time is none."""
    if isinstance(field, Seconds):
        return {"exclusiveMinimum": ret.pop("minimum")}
    if not isinstance(field, Items):
        return {}
    bounds = {"minItems": field.least or None, "maxItems": field.most}
    return {keyword: bound for keyword, bound in bounds.items() if bound is not None}


def _one_or_many(
    self: Any, field: "fields.Field[Any]", ret: dict[str, Any], **options: Any
) -> dict[str, Any]:
    """The keywords of the item hold for an item without a list, too."""
    if not isinstance(field, OneOrMany):
        return {}
    inner = ret["items"]
    return {**inner, "type": [inner["type"], "array"]}


def _alternatives(
    self: Any, field: "fields.Field[Any]", ret: dict[str, Any], **options: Any
) -> dict[str, Any]:
    """What may stand instead of an object."""
    if "allOf" in ret:  # how apispec before 6.7.1 keeps a reference apart from other keywords
        ret.update(ret.pop("allOf")[0])
    instead = getattr(field, "instead", None)
    return {} if instead is None else {"anyOf": [instead, {"$ref": ret.pop("$ref")}]}
