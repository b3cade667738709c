"""The description of both APIs, OpenAPI 3.1, made from the routes and the forms that validate."""

import json
import re
from inspect import getdoc
from typing import Any, Final

from apispec import APISpec
from flask import Flask
from werkzeug.routing import Rule

from payment_sandbox.forms.schemas import plugin, prepare
from payment_sandbox.version import __version__
from payment_sandbox.web.described import DESCRIBED, Described
from payment_sandbox.web.errors import error_body
from payment_sandbox.web.merchant.shapes import ErrorAnswerShape

ERRORS: Final = {
    400: "Malformed, or it breaks rules: all violations are listed",
    401: "No API key, or one that nobody has",
    403: "Called under a foreign name, or by a page of another site",
    404: "Unknown here",
    408: "The time is over, and something else is true",
    409: "A rule refuses it in this state",
    412: "If-Match does not hold",
    413: "Over 1 MiB",
    415: "Not application/json",
}
EXPLAINED: Final = {
    "headers": {
        "Sandbox-Explain": {
            "description": "The rule that refuses it, and what is possible now; the sandbox adds it",
            "schema": {"type": "string"},
        }
    }
}
TAGS: Final = {"api": "merchant API", "pages": "pages", "docs": "documentation", "health": "server"}


def described(app: Flask) -> str:
    """The whole description as JSON text, made once it is asked for."""
    kept: str | None = app.extensions.get("openapi")
    if kept is None:
        kept = app.extensions["openapi"] = document(app)
    return kept


def document(app: Flask) -> str:
    """The whole description as JSON text."""
    forms = plugin()
    spec = APISpec(
        title="Payment orders sandbox",
        version=__version__,
        openapi_version="3.1.0",
        plugins=[forms],
        info={"description": "The merchant API (/v1/) and the control API (/control/) of the sandbox."},
    )
    prepare(forms)
    spec.components.security_scheme(
        "apiKey", {"type": "http", "scheme": "basic", "description": "The API key as user name"}
    )
    for rule in sorted(app.url_map.iter_rules(), key=lambda rule: rule.rule):
        described = DESCRIBED.get(rule.endpoint)
        if described is not None:
            path = re.sub(r"<([a-z_]+)>", r"{\1}", rule.rule)
            spec.path(path=path, operations=_operations(app, rule, described))
    return json.dumps(spec.to_dict())


def _operations(app: Flask, rule: Rule, described: Described) -> dict[str, Any]:
    summary = (getdoc(app.view_functions[rule.endpoint]) or "").splitlines()[0]
    room = rule.endpoint.partition(".")[0]
    operation: dict[str, Any] = {
        "operationId": rule.endpoint.replace(".", "_"),
        "summary": summary,
        "tags": [TAGS.get(room, "control API")],
        "security": [{"apiKey": []}] if room in ("api", "control", "watching") else [],
        "parameters": _parameters(rule, described),
        "responses": {str(described.status): _answer(described, summary)},
    }
    guarded = (400, 403) if rule.rule.startswith("/control/") else ()
    for status in (*described.errors, *guarded):
        operation["responses"][str(status)] = _error(status) | (EXPLAINED if room == "api" else {})
    if described.request is not None:
        content = {"schema": described.request, "example": described.example}
        operation["requestBody"] = {
            "required": described.needs_body,
            "content": {"application/json": content},
        }
    method = next(name for name in sorted(rule.methods or ()) if name != "HEAD")
    return {method.lower(): operation}


def _answer(described: Described, summary: str) -> dict[str, Any]:
    schema: Any = described.response or {"type": "object"}
    if described.is_list:
        schema = {"type": "array", "items": schema}
    if described.media_type != "application/json":
        schema = {}
    return {"description": summary, "content": {described.media_type: {"schema": schema}}}


def _error(status: int) -> dict[str, Any]:
    example = error_body(status, "ValidationError" if status == 400 else "Refused", ERRORS[status])
    content = {"schema": ErrorAnswerShape, "example": example}
    return {"description": ERRORS[status], "content": {"application/json": content}}


def _parameters(rule: Rule, described: Described) -> list[dict[str, Any]]:
    text = {"type": "string"}
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": text} for name in sorted(rule.arguments)
    ]
    for name in described.query:
        schema = {"type": "array", "items": text} if name.endswith("[]") else text
        parameters.append({"name": name, "in": "query", "schema": schema})
    if described.if_match:
        parameters.append({"name": "If-Match", "in": "header", "schema": text})
    return parameters
