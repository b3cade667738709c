"""The calls on the server as a whole: its health and its projects."""

from hmac import compare_digest
from typing import Any

from flask import Blueprint, Response, request

from payment_sandbox.projects.registry import Registry
from payment_sandbox.projects.settings import NewProjectForm
from payment_sandbox.version import __version__
from payment_sandbox.web.answers.control import project_record
from payment_sandbox.web.answers.later import Later
from payment_sandbox.web.answers.responses import json_answer, list_answer
from payment_sandbox.web.auth import registry
from payment_sandbox.web.bodies import json_body
from payment_sandbox.web.carried import application
from payment_sandbox.web.control.strict import refuse_unknown
from payment_sandbox.web.errors import RequestRefused
from payment_sandbox.web.guard import refuse_strangers
from payment_sandbox.web.routes import route

health = Blueprint("health", __name__)
projects = Blueprint("projects", __name__, url_prefix="/control")


@route(health, "GET", "/health/", answers=Later("HealthShape"), errors=())
def get_health() -> Response:
    """Check that the server is ready, with everything requested at startup in place (CTL-05)."""
    return json_answer({"status": "ok", "version": __version__})


projects.before_request(refuse_strangers)


@projects.before_request
def require_control_token() -> None:
    """Require the control token if one is set."""
    token = application().control_token
    scheme, _, sent = request.headers.get("Authorization", "").partition(" ")
    is_bearer = scheme.lower() == "bearer"  # schemes have no case
    if token is not None and not (is_bearer and compare_digest(sent.strip().encode(), token.encode())):
        challenge = {"WWW-Authenticate": 'Bearer realm="payment orders sandbox control"'}
        raise RequestRefused(401, "send 'Authorization: Bearer' with the server's control token", challenge)


projects.before_request(refuse_unknown)


@route(
    projects,
    "POST",
    "/projects/",
    reads=NewProjectForm,
    answers=Later("NewProjectShape"),
    status=201,
    needs_body=False,
    errors=(400, 401, 413, 415),
    example={"mode": "live", "seed": 7},
    slow=True,
)
def post_project() -> Response:
    """Create a project; only this response contains its API key (CTL-06)."""
    all_projects: Registry = registry()
    settings: Any = json_body(empty_is={})
    made, api_key = all_projects.create(settings)
    return json_answer({"api_key": api_key, **project_record(made)}, 201)


@route(projects, "GET", "/projects/", answers=Later("ProjectsShape"))
def get_projects() -> Response:
    """List the projects, without their API keys."""
    return list_answer([project_record(found) for found in registry().all()])
