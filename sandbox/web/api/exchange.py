"""What surrounds every request of the merchant API: sender, webhooks, headers, journal entry."""

from flask import Response, g, request

from sandbox.projects.journal import JournalEntry, masked
from sandbox.projects.project import Project
from sandbox.web.after import hold_webhooks, release_webhooks
from sandbox.web.api.faulty import strike_after, strike_before
from sandbox.web.api.reading import name_ignored
from sandbox.web.auth import require_project


def begin() -> Response | None:
    """Find the project; what only reads owes no webhooks."""
    require_project()
    if request.method != "GET":
        hold_webhooks()
    return strike_before(g.project)


def finish(response: Response) -> Response:
    """Name what was dropped, keep the exchange, let the webhooks go."""
    kept = g._get_current_object()  # g is read often below, and its proxy costs
    if "fault" in kept:
        response = strike_after(response)
    name_ignored(response, kept.get("ignored", ()), kept.get("warnings", ()))
    project: Project | None = kept.get("project")
    if project is not None:
        project.journal.add(
            JournalEntry(
                at=project.now(),
                method=request.method,
                path=request.path,
                query=request.query_string.decode(errors="replace"),
                status=response.status_code,
                request=masked(request.get_data()) if "body" in kept else b"",
                response=b"" if response.is_streamed else response.get_data(),
                ignored=kept.get("ignored", ()),
                rule=kept.get("rule"),
                fault=kept.get("fault"),
                order_id=kept.get("order_id") or (request.view_args or {}).get("order_id"),
            )
        )
        if project.feed.watchers:
            _tell(project, response.status_code)
    return release_webhooks(response)


def _tell(project: Project, status: int) -> None:
    project.feed.publish("request", method=request.method, path=request.path, status=status)
