"""Many open pages of one project share what was rendered a moment ago, so that they do not slow the API."""

from typing import Final

from flask import Response, request

from payment_sandbox.projects.project import Project
from payment_sandbox.web.auth import registry
from payment_sandbox.web.browsers import HTML
from payment_sandbox.web.carried import application
from payment_sandbox.web.dashboard.frame import REFRESH_MS_PER_WATCHER, dashboard
from payment_sandbox.web.dashboard.signing_in import COOKIE, may_see

LIVE: Final = "Sandbox-Live"
"""The header with which an open page renews itself; whoever opens a page gets a fresh one."""

SHARED: Final = "sandbox.shared_page"  # in the environment of a request that got one
OK: Final = 200
CROWD_MIN: Final = 9
SHARE_OF_REFRESH: Final = 0.25
PAGES_MAX: Final = 64


@dashboard.before_request
def share_page() -> Response | None:
    """Answer with a page that was rendered a moment ago."""
    project = _crowded_project()
    if project is None:
        return None
    found = application().live_pages.get(_key())
    if found is None or _now(project) - found[0] > _fresh_for(project):
        return None
    request.environ[SHARED] = True
    return Response(found[1], content_type=HTML)


@dashboard.after_request
def keep_page(response: Response) -> Response:
    """Keep a page for those who ask next."""
    project = _crowded_project()
    if (
        project is None
        or SHARED in request.environ
        or response.status_code != OK
        or response.mimetype != "text/html"
    ):
        return response
    pages = application().live_pages
    if len(pages) >= PAGES_MAX:
        pages.clear()
    pages[_key()] = (_now(project), response.get_data())
    return response


def _crowded_project() -> Project | None:
    """The project whose page renews itself, if many pages of it are open."""
    if request.method != "GET" or LIVE not in request.headers:
        return None
    project = registry().find_by_id((request.view_args or {}).get("project_id", ""))
    if project is None or project.events.watchers < CROWD_MIN or not may_see(project):
        return None
    return project


def _key() -> str:
    return f"{request.full_path} {request.cookies.get(COOKIE, '')}"


def _now(project: Project) -> float:
    return project.services.real.monotonic_seconds()


def _fresh_for(project: Project) -> float:
    return SHARE_OF_REFRESH * REFRESH_MS_PER_WATCHER * project.events.watchers / 1000
