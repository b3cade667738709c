"""Routes for the projects of a server, and for their clocks."""

import json
import logging
from collections.abc import Iterator
from hmac import compare_digest
from typing import Any, Final

from flask import Response

from payment_sandbox.forms import read
from payment_sandbox.operations import move_clock as clocks
from payment_sandbox.operations.advance import AdvanceLimits
from payment_sandbox.operations.agenda import agenda
from payment_sandbox.operations.review import Finding, review
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.registry import Registry
from payment_sandbox.projects.settings import NewProjectForm, SettingsForm, real_seconds
from payment_sandbox.storage import snapshot
from payment_sandbox.storage.codec import DamagedProject, reading
from payment_sandbox.version import __version__
from payment_sandbox.web.answers import records
from payment_sandbox.web.answers.control import (
    advance_limit_record,
    advance_record,
    clock_record,
    listed_record,
    project_record,
    server_record,
)
from payment_sandbox.web.answers.responses import json_answer, list_answer, streamed_answer
from payment_sandbox.web.auth import refuse_cross_site
from payment_sandbox.web.bodies import json_body
from payment_sandbox.web.call import Call
from payment_sandbox.web.control.control_face import BODY_ERRORS, control, refuse_unknown_keys
from payment_sandbox.web.control.control_forms import ClockForm, PruneForm, StateForm
from payment_sandbox.web.error_answers import GENERATED_KEY, answer_for, find_known_keys
from payment_sandbox.web.error_bodies import RequestRefused
from payment_sandbox.web.faces import Face, Middleware
from payment_sandbox.web.routes import FactsBlueprint, declare_list, route
from payment_sandbox.web.shared_forms import AdvanceForm
from payment_sandbox.web.site import OK

log = logging.getLogger(__name__)

projects = FactsBlueprint("projects", __name__, url_prefix="/control")


def require_control_token(call: Call) -> None:
    """Require the control token if one is set."""
    token = call.site.control_token
    scheme, _, sent = call.request.headers.get("Authorization", "").partition(" ")
    is_bearer = scheme.lower() == "bearer"  # schemes are case-insensitive
    if token is not None and not (is_bearer and compare_digest(sent.strip().encode(), token.encode())):
        challenge = {"WWW-Authenticate": 'Bearer realm="payment orders sandbox control"'}
        raise RequestRefused(401, "send 'Authorization: Bearer' with the server's control token", challenge)


PROJECTS_FACE: Final = Face(
    projects,
    (Middleware(refuse_cross_site), Middleware(require_control_token), Middleware(refuse_unknown_keys)),
    answer_for,
)


def refuse_beyond_quota(call: Call) -> None:
    """Refuse a project beyond the server's quota.

    Raises:
        RequestRefused: 429.
    """
    projects_max = call.site.registry.services.quotas.projects
    if projects_max is not None and call.site.registry.count() >= projects_max:
        value = f"this server has the maximum of {projects_max} projects (--max-projects); delete one first"
        raise RequestRefused(429, value)


def refuse_known_keys(registry: Registry, settings: Any) -> None:
    """Refuse settings that contain another project's API key.

    Raises:
        RequestRefused: 400.
    """
    if any(GENERATED_KEY.fullmatch(key) for key in find_known_keys(registry, json.dumps(settings))):
        raise RequestRefused(
            400, "the settings must not contain an API key, because they are stored and shown unmasked"
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
def post_project(call: Call) -> Response:
    """Create a project; only this response contains its API key (CTL-06)."""
    refuse_beyond_quota(call)
    all_projects: Registry = call.site.registry
    settings: Any = json_body(call, empty_is={})
    refuse_known_keys(all_projects, settings)
    project, api_key = all_projects.create(settings)
    return json_answer({"api_key": api_key, **project_record(project)}, 201)


@route(projects, "GET", "/projects/", answers=declare_list(records.ListedProject, "Projects"))
def get_projects(call: Call) -> Response:
    """List the projects, without their API keys."""
    return list_answer(map(listed_record, call.site.registry.listed()))


def _reviews(registry: Registry) -> Iterator[tuple[Project, list[Finding]]]:
    """Review all projects; the server's log names those that cannot be reviewed."""
    for project in registry.all():
        try:
            with reading(project.project_id):
                findings = review(project.epoch)
        except DamagedProject as damaged:
            log.warning("%s", damaged.report)
        else:
            yield project, findings


@route(
    projects,
    "GET",
    "/projects/review/",
    answers=declare_list(records.ProjectFindings, "AllFindings"),
    slow=True,
)
def get_reviews(call: Call) -> Response:
    """List the mistakes in all projects; projects without findings are omitted."""
    reviews = _reviews(call.site.registry)
    return list_answer(
        {
            "project_id": each.project_id,
            "name": each.settings.name,
            "findings": [finding._asdict() for finding in findings],
        }
        for each, findings in reviews
        if findings
    )


@route(
    projects,
    "POST",
    "/projects/prune/",
    reads=PruneForm,
    answers=records.DeletedProjects,
    errors=(400, 401, 413, 415),
    example={"unused_for": "P7D"},
    slow=True,
)
def post_prune(call: Call) -> Response:
    """Delete the projects idle for a given time, except the default project."""
    data = read(PruneForm(), json_body(call))
    return json_answer({"deleted": call.site.registry.prune(real_seconds(data["unused_for"]))})


@route(projects, "GET", "/servers/", answers=declare_list(records.Server, "Servers"), slow=True)
def get_servers(call: Call) -> Response:
    """List the servers of the cluster; a single server lists itself."""
    shared = call.site.server_context.shared
    if shared is not None:
        return list_answer([server_record(each) for each in shared.servers()])
    own = {"url": call.site.public_url, "version": __version__, "status": OK}
    return list_answer([{**own, "projects": len(call.site.registry.loaded_projects())}])


@route(control, "GET", "/project/", answers=records.Project)
def get_project(call: Call) -> Response:
    """Get the project."""
    return json_answer(project_record(call.project))


@route(
    control,
    "PATCH",
    "/project/",
    reads=SettingsForm,
    answers=records.Project,
    errors=BODY_ERRORS,
    example={"mode": "live"},
)
def patch_project(call: Call) -> Response:
    """Change some settings (CTL-01, CTL-07)."""
    call.project.change_settings(json_body(call))
    return json_answer(project_record(call.project))


@route(control, "DELETE", "/project/", answers=records.DeletedProject)
def delete_project(call: Call) -> Response:
    """Delete the project; its API key stops working."""
    call.site.registry.delete(call.project)
    return json_answer({"deleted": call.project.project_id})


@route(control, "POST", "/reset/", answers=records.Project)
def post_reset(call: Call) -> Response:
    """Reset the project to its initial state (CTL-09)."""
    call.project.reset()
    return json_answer(project_record(call.project))


@route(control, "GET", "/state/", answers=records.Snapshot, slow=True)
def get_state(call: Call) -> Response:
    """Take a snapshot of the whole project (CTL-10)."""
    return streamed_answer(snapshot.snapshot_parts(call.project))


@route(
    control,
    "PUT",
    "/state/",
    reads=StateForm,
    answers=records.Project,
    errors=(*BODY_ERRORS, 409),
    slow=True,
)
def put_state(call: Call) -> Response:
    """Restore a snapshot of this or another project (CTL-10, CTL-11)."""
    snapshot.restore(call.project, json_body(call, is_snapshot=True))
    return json_answer(project_record(call.project))


CLOCK_FORM = ClockForm()
ADVANCE_FORM = AdvanceForm()


@route(control, "GET", "/clock/", answers=records.Clock)
def get_clock(call: Call) -> Response:
    """Get the clock."""
    return json_answer(clock_record(call.project))


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
def patch_clock(call: Call) -> Response:
    """Freeze the clock, run it at a rate, or move it forward (CTL-12)."""
    result = clocks.change_clock(call.project, **read(CLOCK_FORM, json_body(call)))
    return json_answer({**clock_record(call.project), **advance_limit_record(result)})


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
def post_advance(call: Call) -> Response:
    """Advance the clock, event by event (CTL-13)."""
    target = read(ADVANCE_FORM, json_body(call))
    events_max, timeout_seconds = target.pop("max_events", None), target.pop("timeout", None)
    given_limits = {"events_max": events_max, "timeout_seconds": timeout_seconds}
    limits = AdvanceLimits(**{name: limit for name, limit in given_limits.items() if limit is not None})
    return json_answer(advance_record(clocks.advance_clock(call.project, target, limits)))


@route(control, "GET", "/agenda/", answers=declare_list(records.AgendaItem, "Agenda"), slow=True)
def get_agenda(call: Call) -> Response:
    """List the scheduled events, including failed ones (CTL-17)."""
    return list_answer(agenda(call.project.epoch))
