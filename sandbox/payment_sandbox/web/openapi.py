"""The OpenAPI 3.1 description of both APIs, generated from the facts of each route."""

import json
import re
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from inspect import getdoc
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from flask import Flask
from marshmallow import Schema

from payment_sandbox.forms.schemas import COMPONENTS, allow_null, component_schemas
from payment_sandbox.kernel.descriptions import Format, Like, OneOf, shown_keys
from payment_sandbox.orders.refusals import Violation
from payment_sandbox.packaged import read_packaged
from payment_sandbox.projects.slots import Slot
from payment_sandbox.version import __version__
from payment_sandbox.web.answers.records import ErrorAnswer
from payment_sandbox.web.call import EXTENSION
from payment_sandbox.web.routes import JSON, DescribedRoute, Facts, RecordList, described_routes
from payment_sandbox.web.site import Site

ERROR_DESCRIPTIONS: Final = {
    400: "Malformed or invalid; violations lists every problem",
    401: "Missing or unknown API key",
    403: "The host name is unknown, or the call comes from another site's page",
    404: "Not found",
    408: "Timed out; now shows the current state",
    409: "Not possible in the current state",
    412: "The ETag in If-Match is out of date",
    413: "The body is larger than 1 MiB",
    415: "The body is not application/json",
    429: "The server has the maximum of projects, or too many attempts with a wrong token failed",
    501: "A part of the server is not installed; `value` is the command that installs it",
    507: "The disk is full; the message says whether something has changed",
}
STORING_METHODS: Final = ("POST", "PUT", "PATCH")
"""The HTTP methods of calls that store something."""
BODILESS_DESCRIPTIONS: Final = {
    303: "Redirects to the next page, given in Location",
    304: "The order has not changed since the read that returned the ETag in If-None-Match",
}
EXPLAIN_HEADER: Final = {
    "headers": {
        "Sandbox-Explain": {
            "description": "The rule that refused the call, and the possible calls; a sandbox-only header",
            "schema": {"type": "string"},
        }
    }
}
SERVER_TAG: Final = ("server", "The health and the description of the server.")
GROUP_TAGS: Final = {
    "api": ("merchant API", "What the real service has: orders, transactions, refunds and QR requests."),
    "pages": ("pages", "The pages of payers."),
    "docs": ("documentation", "The documentation of the sandbox."),
    "health": SERVER_TAG,
    "description": SERVER_TAG,
}
UNDESCRIBED_GROUP: Final = "dashboard"  # without a description: programs use the control API
STRICT_GROUPS: Final = ("control", "watching", "projects")  # refuse unknown keys
GUARD_STATUSES: Final = {"api": (403,), **dict.fromkeys(STRICT_GROUPS, (400, 403))}
GROUPS_WITH_KEY: Final = ("api", "control", "watching")
EXAMPLES_FILE: Final = "web/examples.json"  # recorded by make docs
DROPPED: Final = {"type": "integer", "description": "The number of older items dropped to make room."}
PLAIN_SCHEMAS: Final[Mapping[Any, dict[str, Any]]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    float: {"type": "number"},
    datetime: {"type": "string", "format": "date-time"},
    Any: {},
}
INT32_MAX: Final = 2**31 - 1
TITLE: Final = "Payment orders sandbox"
ABOUT: Final = "The merchant API (/v1/) and the control API (/control/) of the sandbox."
LICENSE: Final = {"name": "MIT", "identifier": "MIT"}
KEY_SCHEME: Final = {
    "type": "http",
    "scheme": "basic",
    "description": "The API key as the user name; any password",
}
SCHEMA_NAMES: Final = {
    "Credential": "StoredCard",
    "ReachedStatus": "StatusReached",
    "TimelineEntry": "TimelineRecord",
}
"""The names of records with other names in the code."""
DESCRIPTIONS: Final[Slot[dict[str, str]]] = Slot(dict)
"""Descriptions, by public URL."""


class RecordSchemas:
    """The schemas of an OpenAPI document, by name: those of records, of forms, and of shapes."""

    def __init__(self, closed: Iterable[type[Schema]]) -> None:
        """Let the ``closed`` forms allow no additional keys."""
        self.forms = component_schemas(closed)
        self._references: dict[Any, dict[str, Any]] = {}

    def schema_of(self, answer: Any) -> dict[str, Any]:
        """Return a reference to a record, a list of records, a form or a shape."""
        if not isinstance(answer, RecordList) and not _is_record(answer):
            return self.forms.refer(answer)
        if answer not in self._references:
            self._references[answer] = self._add(answer)
        return self._references[answer]

    def _add(self, answer: Any) -> dict[str, Any]:
        if isinstance(answer, RecordList):
            items = {"type": "array", "items": self.schema_of(answer.record)}
            return self._add_schema(answer.name, {"items": items, "dropped": DROPPED}, {"dropped", "items"})
        hints = get_type_hints(answer, include_extras=True)
        properties = {key: self._describe(hints[name]) for name, key in shown_keys(answer).items()}
        required = set(answer.__required_keys__ if is_typeddict(answer) else properties)
        if answer is Violation:  # an error omits what is None
            for name in required & Violation._field_defaults.keys():
                properties[name]["type"] = properties[name]["type"][0]
            required -= Violation._field_defaults.keys()
        return self._add_schema(SCHEMA_NAMES.get(answer.__name__, answer.__name__), properties, required)

    def _add_schema(self, name: str, properties: dict[str, Any], required: Iterable[str]) -> dict[str, Any]:
        schema = {"type": "object", "properties": properties, "required": sorted(required)}
        if not schema["required"]:
            del schema["required"]
        assert name not in self.forms.schemas, f"two records are named {name}"
        self.forms.schemas[name] = {**schema, "additionalProperties": False}
        return {"$ref": f"{COMPONENTS}{name}"}

    def _describe(self, hint: Any) -> dict[str, Any]:
        """Describe a value with its annotations."""
        if get_origin(hint) is NotRequired:
            hint = get_args(hint)[0]
        kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        if notes and isinstance(notes[0], Like):
            return self.forms.refer(notes[0].shape())
        schema = self._describe_type(kind)
        for note in notes:
            if isinstance(note, Format):
                schema["format"] = note.name
            elif isinstance(note, OneOf):
                schema["enum"] = list(note.values())
            elif isinstance(note, str):
                schema["description"] = note
        return schema

    def _describe_type(self, kind: Any) -> dict[str, Any]:
        origin, variants = get_origin(kind), get_args(kind)
        if origin in (Union, types.UnionType):
            kinds = [variant for variant in variants if variant is not type(None)]
            schema = self._describe(kinds[0]) if len(kinds) == 1 else {}
            return allow_null(schema) if len(kinds) < len(variants) else schema
        if origin is Literal:
            return {**PLAIN_SCHEMAS[type(variants[0])], "enum": list(variants)}
        if origin in (list, tuple, Sequence):
            return {"type": "array", "items": self._describe(variants[0])}
        if origin in (dict, Mapping):
            return {"type": "object", "additionalProperties": self._describe(variants[1])}
        return dict(self.schema_of(kind)) if _is_record(kind) else dict(PLAIN_SCHEMAS[kind])


def _is_record(kind: Any) -> bool:
    return is_typeddict(kind) or hasattr(kind, "_fields")


def openapi_text(app: Flask) -> str:
    """Return the whole description of an application as JSON text, built on first use."""
    site: Site = app.extensions[EXTENSION]
    descriptions = site.slots.of(DESCRIPTIONS)
    if site.public_url not in descriptions:
        descriptions[site.public_url] = build_description(app, site.public_url)
    return descriptions[site.public_url]


def build_description(app: Flask, public_url: str) -> str:
    """Build the whole description as JSON text; ``make docs`` records its examples."""
    routes = [each for each in described_routes(app) if each.facts.group != UNDESCRIBED_GROUP]
    records = RecordSchemas(
        each.facts.reads
        for each in routes
        if each.facts.reads is not None and each.facts.group in STRICT_GROUPS
    )
    paths: dict[str, dict[str, Any]] = {}
    examples = json.loads(read_packaged(EXAMPLES_FILE))
    tags: dict[str, str] = {}
    for each in routes:
        tags.update([_tag(each.facts)])
        path = re.sub(r"<([a-z_]+)>", r"{\1}", each.path)
        example = examples.get(each.name, {})
        paths.setdefault(path, {})[each.method.lower()] = _operation(each, example, records)
    return json.dumps(
        {
            "openapi": "3.1.0",
            "info": {"title": TITLE, "version": __version__, "description": ABOUT, "license": LICENSE},
            "servers": [{"url": public_url, "description": "This sandbox"}],
            "tags": [{"name": name, "description": about} for name, about in sorted(tags.items())],
            "paths": paths,
            "components": {
                "schemas": _with_wide_integers(records.forms.schemas),
                "securitySchemes": {"apiKey": KEY_SCHEME},
            },
        }
    )


def _with_wide_integers(schema: Any) -> Any:
    """Name the format of integers that need more than 32 bits, which generators of typed clients assume."""
    if isinstance(schema, list):
        return [_with_wide_integers(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    wide = {name: _with_wide_integers(value) for name, value in schema.items()}
    if "integer" in (wide.get("type") or ()) and wide.get("maximum", INT32_MAX + 1) > INT32_MAX:
        wide["format"] = "int64"
    return wide


def _operation(route: DescribedRoute, example: Mapping[str, Any], records: RecordSchemas) -> dict[str, Any]:
    summary, _, details = (getdoc(route.view) or "").partition("\n")
    facts, group = route.facts, route.facts.group
    operation: dict[str, Any] = {
        "operationId": route.name.replace(".", "_"),
        "summary": summary,
        **({"description": details.strip()} if details.strip() else {}),
        "tags": [_tag(facts)[0]],
        "security": [{"apiKey": []}] if group in GROUPS_WITH_KEY else [],
        "parameters": list(_parameters(route)),
        "responses": {str(facts.status): _answer(facts, summary, example, records)},
    }
    for status in facts.without_body:
        operation["responses"][str(status)] = {"description": BODILESS_DESCRIPTIONS[status]}
    explained = EXPLAIN_HEADER if group == "api" else {}
    full = (507,) if group in GUARD_STATUSES and route.method in STORING_METHODS else ()
    for status in (*facts.errors, *GUARD_STATUSES.get(group, ()), *full):
        refusal = example.get("refusals", {}).get(str(status))
        operation["responses"][str(status)] = _error(status, refusal, records) | explained
    if facts.reads is not None:
        body = facts.example if facts.example is not None else example.get("body")
        content: dict[str, Any] = {"schema": records.schema_of(facts.reads)}
        if body is not None:
            content["example"] = body
        operation["requestBody"] = {"required": facts.needs_body, "content": {JSON: content}}
    return operation


def _tag(facts: Facts) -> tuple[str, str]:
    return facts.tag or GROUP_TAGS[facts.group]


def _answer(facts: Facts, summary: str, example: Mapping[str, Any], records: RecordSchemas) -> dict[str, Any]:
    schema: Any = {} if facts.answers is None else records.schema_of(facts.answers)
    if facts.is_list:
        schema = {"type": "array", "items": schema}
    content = {"schema": schema, "example": example["answer"]} if example else {"schema": schema}
    return {"description": summary, "content": {facts.media_type: content}}


def _error(status: int, refusal: Mapping[str, Any] | None, records: RecordSchemas) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": records.schema_of(ErrorAnswer)}
    if refusal is not None:
        content["example"] = refusal["answer"]
        if refusal["body"] is not None:
            content["x-request"] = refusal["body"]
    return {"description": ERROR_DESCRIPTIONS[status], "content": {JSON: content}}


def _parameters(route: DescribedRoute) -> Iterator[dict[str, Any]]:
    text, facts = {"type": "string"}, route.facts
    for name in sorted(route.arguments):
        yield {"name": name, "in": "path", "required": True, "schema": text}
    schemas = component_schemas()
    for name, field in facts.query().fields.items() if facts.query is not None else ():
        schema = schemas.describe(field)
        about = schema.pop("description", "")
        yield {"name": name, "in": "query", "schema": schema, "description": about}
    if facts.if_match:
        about = "The order's ETag from your last read; 412 if the order has changed since."
        yield {"name": "If-Match", "in": "header", "schema": text, "description": about}
