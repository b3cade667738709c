"""The calls on the server as a whole: its health and its projects."""

import json
from hmac import compare_digest
from typing import Any, Final

from flask import Blueprint, Response, request

from payment_sandbox.forms import read
from payment_sandbox.operations import clock as clocks
from payment_sandbox.operations.advance import AdvanceLimits
from payment_sandbox.operations.agenda import agenda
from payment_sandbox.projects.registry import Registry
from payment_sandbox.projects.settings import NewProjectForm, SettingsForm, real_seconds
from payment_sandbox.storage import snapshot
from payment_sandbox.version import __version__
from payment_sandbox.web.answers import records
from payment_sandbox.web.answers.control import (
    advance_record,
    clock_record,
    project_record,
    server_record,
    stopped_record,
)
from payment_sandbox.web.answers.responses import json_answer, list_answer, streamed_answer
from payment_sandbox.web.answers.shapes import listed
from payment_sandbox.web.auth import project, refuse_strangers, registry
from payment_sandbox.web.bodies import json_body
from payment_sandbox.web.carried import OK, application
from payment_sandbox.web.control.blueprint import BODY_ERRORS, control, refuse_unknown
from payment_sandbox.web.control.forms import ClockForm, PruneForm, StateForm
from payment_sandbox.web.errors import GENERATED_KEY, RequestRefused, known_keys
from payment_sandbox.web.routes import route
from payment_sandbox.web.shared_forms import AdvanceForm
from payment_sandbox.web.statistics import Statistics, metrics

NO_METRICS: Final = (
    "metrics need the package prometheus-client, which is not installed where this server runs: "
    "pip install 'payment-orders-sandbox[metrics]'"
)
health = Blueprint("health", __name__)
projects = Blueprint("projects", __name__, url_prefix="/control")


@route(health, "GET", "/health/", answers=records.Health, errors=())
def get_health() -> Response:
    """Check that the server is ready, with everything requested at startup in place (CTL-05)."""
    status = application().status()
    return json_answer({"status": status, "version": __version__}, 200 if status == OK else 503)


@route(health, "GET", "/metrics", media_type="text/plain", errors=(501,), slow=True)
def get_metrics() -> Response:
    """Get what the server has done since it began, in the text format of Prometheus."""
    around = application().around
    commits = around.shared.commits if around.shared is not None else 0
    try:
        text = metrics(around.statistics or Statistics(), registry(), commits)
    except ModuleNotFoundError:
        raise RequestRefused(501, NO_METRICS) from None
    return Response(text, mimetype="text/plain")


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


def refuse_beyond_quota() -> None:
    """Refuse a project beyond the server's quota.

    Raises:
        RequestRefused: 429.
    """
    most = registry().services.quotas.projects
    if most is not None and registry().count() >= most:
        value = f"this server takes {most} projects (--max-projects), and has them; delete one first"
        raise RequestRefused(429, value)


def refuse_known_keys(settings: Any) -> None:
    """Refuse settings with the API key of another project, which only the registry knows.

    Raises:
        RequestRefused: 400.
    """
    if any(GENERATED_KEY.fullmatch(key) for key in known_keys(json.dumps(settings))):
        raise RequestRefused(
            400, "the settings must not have an API key, because they are kept and shown as they are"
        )


@route(
    projects,
    "POST",
    "/projects/",
    reads=NewProjectForm,
    answers=records.NewProject,
    status=201,
    needs_body=False,
    errors=(400, 401, 413, 415, 429),
    example={"mode": "live", "seed": 7},
    slow=True,
)
def post_project() -> Response:
    """Create a project; only this response contains its API key (CTL-06)."""
    refuse_beyond_quota()
    all_projects: Registry = registry()
    settings: Any = json_body(empty_is={})
    refuse_known_keys(settings)
    made, api_key = all_projects.create(settings)
    return json_answer({"api_key": api_key, **project_record(made)}, 201)


@route(projects, "GET", "/projects/", answers=listed(records.Project, "Projects"))
def get_projects() -> Response:
    """List the projects, without their API keys."""
    return list_answer([project_record(each) for each in registry().all()])


@route(
    projects,
    "POST",
    "/projects/prune/",
    reads=PruneForm,
    answers=records.Pruned,
    errors=(400, 401, 413, 415),
    example={"unused_for": "P7D"},
    slow=True,
)
def post_prune() -> Response:
    """Delete the projects that nobody has called for some time, except the first one."""
    data = read(PruneForm(), json_body())
    return json_answer({"deleted": registry().prune(real_seconds(data["unused_for"]))})


@route(projects, "GET", "/servers/", answers=listed(records.Server, "Servers"), slow=True)
def get_servers() -> Response:
    """List the servers that are one sandbox; often this one alone."""
    shared = application().around.shared
    if shared is not None:
        return list_answer([server_record(each) for each in shared.servers()])
    own = {"url": application().public_url, "version": __version__, "status": OK}
    return list_answer([{**own, "projects": len(registry().loaded())}])


@route(control, "GET", "/project/", answers=records.Project)
def get_project() -> Response:
    """Get the project."""
    return json_answer(project_record(project()))


@route(
    control,
    "PATCH",
    "/project/",
    reads=SettingsForm,
    answers=records.Project,
    errors=BODY_ERRORS,
    example={"mode": "live"},
)
def patch_project() -> Response:
    """Change some settings (CTL-01, CTL-07)."""
    project().change_settings(json_body())
    return json_answer(project_record(project()))


@route(control, "DELETE", "/project/", answers=records.Deleted)
def delete_project() -> Response:
    """Delete the project; its API key stops working."""
    registry().delete(project())
    return json_answer({"deleted": project().project_id})


@route(control, "POST", "/reset/", answers=records.Project)
def post_reset() -> Response:
    """Reset the project to its initial state (CTL-09)."""
    project().reset()
    return json_answer(project_record(project()))


@route(control, "GET", "/state/", answers=records.Snapshot, slow=True)
def get_state() -> Response:
    """Take a snapshot of the whole project (CTL-10)."""
    return streamed_answer(snapshot.snapshot_parts(project()))


@route(
    control,
    "PUT",
    "/state/",
    reads=StateForm,
    answers=records.Project,
    errors=(*BODY_ERRORS, 409),
    slow=True,
)
def put_state() -> Response:
    """Restore a snapshot of this or another project (CTL-10, CTL-11)."""
    snapshot.restore(project(), json_body(is_snapshot=True))
    return json_answer(project_record(project()))


CLOCK = ClockForm()
ADVANCE = AdvanceForm()


@route(control, "GET", "/clock/", answers=records.Clock)
def get_clock() -> Response:
    """Get the clock."""
    return json_answer(clock_record(project()))


@route(
    control,
    "PATCH",
    "/clock/",
    reads=ClockForm,
    answers=records.MovedClock,
    errors=(*BODY_ERRORS, 409),
    example={"mode": "running", "rate": 3600},
    waits=True,
)
def patch_clock() -> Response:
    """Freeze the clock, run it at a rate, or move it forward (CTL-12)."""
    done = clocks.change_clock(project(), **read(CLOCK, json_body()))
    return json_answer({**clock_record(project()), **stopped_record(done)})


@route(
    control,
    "POST",
    "/clock/advance/",
    reads=AdvanceForm,
    answers=records.Advance,
    errors=(*BODY_ERRORS, 409),
    example={"by": "PT30M"},
    waits=True,
)
def post_advance() -> Response:
    """Advance the clock, event by event (CTL-13)."""
    aim = read(ADVANCE, json_body())
    asked = {"events_max": aim.pop("max_events", None), "timeout_seconds": aim.pop("timeout", None)}
    limits = AdvanceLimits(**{name: limit for name, limit in asked.items() if limit is not None})
    return json_answer(advance_record(clocks.advance_clock(project(), aim, limits)))


@route(control, "GET", "/agenda/", answers=listed(records.Due, "Agenda"), slow=True)
def get_agenda() -> Response:
    """List the scheduled events, and those that failed (CTL-17)."""
    return list_answer(agenda(project().epoch))
