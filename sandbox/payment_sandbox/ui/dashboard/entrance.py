"""The entry pages: the root, the list of projects, and the sign-in."""

from datetime import timedelta

from flask import Response, render_template

from payment_sandbox.kernel.masking import mask
from payment_sandbox.kernel.patterns import UUID
from payment_sandbox.kernel.times import describe_period
from payment_sandbox.orders.refusals import Invalid, Unknown
from payment_sandbox.projects.project import Project
from payment_sandbox.ui.dashboard import signing_in
from payment_sandbox.ui.dashboard.frame import (
    FORM_FACTS,
    VIEW_FACTS,
    enter,
    own_path,
    refuse_wrong_form,
    url,
)
from payment_sandbox.ui.dashboard.reviewing import current_review
from payment_sandbox.web.answers.responses import json_answer
from payment_sandbox.web.browsers import HTML, is_browser, redirect
from payment_sandbox.web.call import Call
from payment_sandbox.web.control import create_project
from payment_sandbox.web.error_bodies import RequestRefused
from payment_sandbox.web.routes import stated

UNAUTHORIZED = 401
TOO_MANY_REQUESTS = 429
SIGN_IN_NAME = "sign-in"
NEW_PROJECT = "new-project"
PROJECTS_SHOWN_MAX = 200
PROJECTS_REVIEWED_MAX = 20
ORDERS_REVIEWED_MAX = 200
ROOT_LINKS = {
    "dashboard": "/dashboard/",
    "documentation": "/docs/",
    "openapi": "/openapi.json",
    "health": "/health/",
}


@stated(**VIEW_FACTS)
def get_root(call: Call) -> Response:
    """Redirect browsers to the dashboard; return links as JSON to other clients."""
    if not is_browser(call.request):
        return json_answer({name: f"{call.site.public_url}{path}" for name, path in ROOT_LINKS.items()})
    return redirect(f"{call.site.base_path}/dashboard/")


@stated(**VIEW_FACTS)
def get_dashboard(call: Call) -> Response:
    """Redirect to the only project, or list the projects."""
    projects = signing_in.visible_projects(call)
    if len(projects) == 1 and "all" not in call.request.args:
        return redirect(f"{call.site.base_path}/dashboard/{projects[0].project_id}/orders/")
    if not projects and not signing_in.is_open(call):
        return redirect(f"{call.site.base_path}/dashboard/{SIGN_IN_NAME}/")
    return _projects_page(call)


@stated(**FORM_FACTS)
def post_project(call: Call) -> Response:
    """Create a project, and show its API key this once."""
    if not signing_in.may_create(call):
        raise RequestRefused(403, "sign in with the control token to create projects")
    refuse_wrong_form(call, NEW_PROJECT)
    given = {name: call.request.form.get(name, "").strip() for name in ("name", "mode")}
    try:
        project, api_key = create_project(call, {name: value for name, value in given.items() if value})
    except Invalid as invalid:
        problems = [each.message for each in invalid.violations]
        return _projects_page(call, 400, problems=problems, typed_name=mask(given["name"]))
    return _projects_page(call, 201, created=project, api_key=api_key)


def _projects_page(call: Call, status: int = 200, **more: object) -> Response:
    projects = signing_in.visible_projects(call)
    shown = projects[: -PROJECTS_SHOWN_MAX - 1 : -1]
    body = render_template(
        "dashboard/projects.html",
        rows=[_project_row(project, at) for at, project in enumerate(shown)],
        omitted=max(0, len(projects) - PROJECTS_SHOWN_MAX),
        is_open=signing_in.is_open(call),
        may_create=signing_in.may_create(call),
        token=signing_in.form_token(call, NEW_PROJECT),
        **more,
    )
    return Response(body, status=status, content_type=HTML)


def _project_row(project: Project, at: int) -> dict[str, object]:
    """Describe a project; only new and small ones are reviewed."""
    idle = timedelta(seconds=project.unused_seconds())
    is_reviewed = at < PROJECTS_REVIEWED_MAX and project.epoch.orders_created <= ORDERS_REVIEWED_MAX
    return {
        "project": project,
        "used": f"{describe_period(idle)} ago" if idle >= timedelta(minutes=1) else "just now",
        "mistakes": len(current_review(project).mistakes) if is_reviewed else None,
    }


@stated(**VIEW_FACTS)
def get_sign_in(call: Call) -> Response:
    """Show the form for an API key or the control token."""
    return _sign_in_page(call)


@stated(**FORM_FACTS)
def post_sign_in(call: Call) -> Response:
    """Sign in to a project with its API key, or to all projects with the control token."""
    address, failures = call.request.remote_addr or "", call.site.sign_in_failures
    if wait_seconds := failures.admit(address):
        response = _sign_in_page(call, TOO_MANY_REQUESTS)
        response.headers["Retry-After"] = str(wait_seconds)
        return response
    grant = signing_in.grant_for(call, call.request.form.get("secret", "").strip())
    if grant is None:
        return _sign_in_page(call, UNAUTHORIZED)
    failures.forgive(address)
    to = f"{call.site.base_path}/dashboard/"
    project = call.site.registry.find_by_id(grant)
    if project is not None:
        to = url(project, "orders/")
    return signing_in.sign_in(call, redirect(own_path(call, call.request.form.get("next", "")) or to), grant)


@stated(**FORM_FACTS)
def post_sign_out(call: Call) -> Response:
    """Sign out."""
    return signing_in.sign_out(call, redirect(f"{call.site.base_path}/dashboard/"))


@stated(**VIEW_FACTS)
def get_project_page(call: Call, project_id: str) -> Response:
    """Redirect to the orders of a project."""
    if UUID.fullmatch(project_id) is None:
        raise Unknown("there is no such project")
    return redirect(f"{call.site.base_path}/dashboard/{project_id}/orders/")


@stated(**VIEW_FACTS)
def get_unknown_page(call: Call, project_id: str, path: str) -> Response:
    """Refuse an unknown page of a project with an error page of the dashboard."""
    enter(call, project_id)
    raise Unknown(f"there is no page {path!r}")


def _sign_in_page(call: Call, status: int = 200) -> Response:
    body = render_template(
        "dashboard/sign_in.html",
        next=own_path(call, call.request.values.get("next", "")),
        is_wrong=status == UNAUTHORIZED,
        is_too_early=status == TOO_MANY_REQUESTS,
    )
    return Response(body, status=status, content_type=HTML)
