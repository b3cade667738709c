"""Routes for the projects of a server, and for their clocks."""

import json
import logging
from collections.abc import Iterator
from hmac import compare_digest
from typing import Any, Final

from flask import Response

from payment_sandbox.forms import read
from payment_sandbox.operations.review import Finding, review
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.registry import Registry
from payment_sandbox.projects.settings import NewProjectForm, SettingsForm, real_seconds
from payment_sandbox.storage.codec import DamagedProject, reading
from payment_sandbox.version import __version__
from payment_sandbox.web.answers import records
from payment_sandbox.web.answers.control import listed_record, project_record, server_record
from payment_sandbox.web.answers.responses import json_answer, list_answer
from payment_sandbox.web.auth import refuse_cross_site
from payment_sandbox.web.bodies import json_body
from payment_sandbox.web.call import Call
from payment_sandbox.web.control.control_face import BODY_ERRORS, admit_snapshot, control, read_query
from payment_sandbox.web.control.control_forms import PruneForm, StateForm
from payment_sandbox.web.error_answers import GENERATED_KEY, answer_for, find_known_keys
from payment_sandbox.web.error_bodies import RequestRefused
from payment_sandbox.web.faces import Face, Middleware
from payment_sandbox.web.routes import FactsBlueprint, declare_list, route
from payment_sandbox.web.site import OK
from payment_sandbox.web.snapshot_bodies import restore_body, snapshot_answer

TOKEN_ERRORS: Final = (401, 429)
TOO_MANY_GUESSES: Final = "too many attempts with a wrong control token or key came from your address"

log = logging.getLogger(__name__)

projects = FactsBlueprint("projects", __name__, url_prefix="/control")


def require_control_token(call: Call) -> None:
    """Require the control token if one is set.

    Raises:
        RequestRefused: 401 if it is missing or wrong, 429 after too many guesses from the address.
    """
    token, failures = call.site.control_token, call.site.sign_in_failures
    if token is None:
        return
    scheme, _, sent = call.request.headers.get("Authorization", "").partition(" ")
    is_bearer, address = scheme.lower() == "bearer", call.request.remote_addr or ""  # in any letter case
    if is_bearer and (wait_seconds := failures.admit(address)):
        raise RequestRefused(429, TOO_MANY_GUESSES, {"Retry-After": str(wait_seconds)})
    if not is_bearer or not compare_digest(sent.strip().encode(), token.encode()):
        challenge = {"WWW-Authenticate": 'Bearer realm="payment orders sandbox control"'}
        raise RequestRefused(401, "send 'Authorization: Bearer' with the server's control token", challenge)
    failures.forgive(address)


PROJECTS_FACE: Final = Face(
    projects,
    (Middleware(refuse_cross_site), Middleware(require_control_token), Middleware(read_query)),
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
    answers=records.ProjectWithKey,
    status=201,
    needs_body=False,
    errors=(*BODY_ERRORS, 429),
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


@route(
    projects,
    "GET",
    "/projects/",
    answers=declare_list(records.ListedProject, "Projects"),
    errors=TOKEN_ERRORS,
)
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
    errors=TOKEN_ERRORS,
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
    errors=(*BODY_ERRORS, 429),
    example={"unused_for": "P7D"},
    slow=True,
)
def post_prune(call: Call) -> Response:
    """Delete the projects idle for a given time, except the default project."""
    data = read(PruneForm(), json_body(call))
    return json_answer({"deleted": call.site.registry.prune(real_seconds(data["unused_for"]))})


@route(
    projects,
    "GET",
    "/servers/",
    answers=declare_list(records.Server, "Servers"),
    errors=TOKEN_ERRORS,
    slow=True,
)
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


@route(control, "POST", "/reset/", answers=records.Project, errors=(400, 401), slow=True)
def post_reset(call: Call) -> Response:
    """Reset the project to its initial state (CTL-09)."""
    call.site.registry.reset(call.project)
    return json_answer(project_record(call.project))


@route(control, "GET", "/state/", answers=records.Snapshot, errors=(401, 413), slow=True)
def get_state(call: Call) -> Response:
    """Take a snapshot of the whole project (CTL-10)."""
    return snapshot_answer(call.project)


@route(
    control,
    "PUT",
    "/state/",
    reads=StateForm,
    answers=records.Project,
    errors=(*BODY_ERRORS, 409),
    slow=True,
    admit=admit_snapshot,
)
def put_state(call: Call) -> Response:
    """Restore a snapshot of this or another project (CTL-10, CTL-11)."""
    restore_body(call)
    return json_answer(project_record(call.project))
