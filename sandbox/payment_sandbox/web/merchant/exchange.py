"""What surrounds every request of the merchant API: sender, webhooks, headers, journal entry."""

from typing import Any, Final

from flask import Response, g, request

from payment_sandbox.operations.clock import catch_up
from payment_sandbox.projects.journal import BODY_KEPT_BYTES, JournalEntry, masked, unescaped
from payment_sandbox.projects.project import Project
from payment_sandbox.web.after import hold_webhooks, release_webhooks
from payment_sandbox.web.auth import known_project, require_project
from payment_sandbox.web.bodies import BODY_BYTES_MAX
from payment_sandbox.web.merchant.explained import explain
from payment_sandbox.web.merchant.faulty import strike_after, strike_before
from payment_sandbox.web.merchant.reading import name_ignored

REFUSED: Final = 400


def begin() -> Response | None:
    """Find the project; what only reads owes no webhooks."""
    require_project()
    catch_up(g.project)
    g.real_at = g.project.services.real.wall_now()
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
    if response.status_code >= REFUSED:
        explain(response, project)
    if project is not None:
        _keep(project, response, kept)
        if project.events.watchers:
            _tell(project, response.status_code)
    return release_webhooks(response)


def stray(response: Response) -> None:
    """Explain a request that fits no route, and keep it if it is of a known merchant."""
    if not request.path.startswith("/v1"):
        return
    project = known_project()
    explain(response, project)
    if project is not None:
        _keep(project, response, g._get_current_object())


def _keep(project: Project, response: Response, kept: Any) -> None:
    answer = b"" if response.is_streamed else response.get_data()
    project.epoch.journal.add(
        JournalEntry(
            at=project.now(),
            method=request.method,
            path=request.path,
            query=_query(),
            status=kept.get("cut_status", response.status_code),
            request=_request_body(kept.get("body")),
            response=answer[:BODY_KEPT_BYTES],
            ignored=kept.get("ignored", ()),
            rule=kept.get("rule"),
            fault=kept.get("fault"),
            real_at=kept.get("real_at") or project.services.real.wall_now(),
            transaction_id=kept.get("transaction_id"),
            order_id=kept.get("order_id") or (request.view_args or {}).get("order_id"),
        )
    )


def _query() -> str:
    return request.query_string.decode(errors="replace")


def _request_body(data: Any) -> bytes:
    if request.method == "GET" or not request.content_length or request.content_length > BODY_BYTES_MAX:
        return b""
    body = request.get_data()
    return masked(unescaped(body, data) if data is not None else body)


def _tell(project: Project, status: int) -> None:
    project.events.publish("request", method=request.method, path=request.path, status=status)
