"""The long-running calls: waiting for conditions, and streaming events."""

from collections.abc import Mapping
from typing import Final

from flask import Blueprint, Response, request

from payment_sandbox.operations import wait as waiting
from payment_sandbox.operations.clock import catch_up
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.web.answers.later import Later
from payment_sandbox.web.answers.responses import json_answer
from payment_sandbox.web.auth import project, select_project
from payment_sandbox.web.control.forms import EventsQuery, WaitQuery
from payment_sandbox.web.control.strict import refuse_unknown
from payment_sandbox.web.event_stream import STREAM, EventStream, after_of
from payment_sandbox.web.guard import refuse_strangers
from payment_sandbox.web.routes import route

TIMEOUT_SECONDS_DEFAULT: Final = 10.0
TIMEOUT_SECONDS_MAX: Final = 60.0

watching = Blueprint("watching", __name__, url_prefix="/control")
watching.before_request(refuse_strangers)
watching.before_request(select_project)
watching.before_request(refuse_unknown)


@route(
    watching,
    "GET",
    "/wait/",
    answers=Later("WaitedShape"),
    query=WaitQuery,
    errors=(400, 401, 404, 408),
    waits=True,
)
def get_wait() -> Response:
    """Wait until all given conditions hold (CTL-26)."""
    query = request.args.to_dict()
    timeout_seconds = float(query.get("timeout", TIMEOUT_SECONDS_DEFAULT))
    conditions = _conditions(query)
    _refuse(query, conditions, timeout_seconds)
    catch_up(project())
    return json_answer(waiting.wait(project(), conditions, timeout_seconds))


def _refuse(query: Mapping[str, str], conditions: list[waiting.Condition], timeout_seconds: float) -> None:
    violations = (
        []
        if conditions
        else [Violation("", "names no condition; use order_id with status, webhook, or idle")]
    )
    if ("order_id" in query) != ("status" in query):
        violations.append(Violation("status", "must be given together with order_id"))
    if timeout_seconds > TIMEOUT_SECONDS_MAX:
        violations.append(Violation("timeout", "must be at most 60 seconds"))
    if violations:
        raise Invalid(violations)


@route(
    watching,
    "GET",
    "/events/",
    media_type="text/event-stream",
    query=EventsQuery,
    errors=(400, 401),
    streams=True,
)
def get_events() -> Response:
    """Stream all events of the project, as server-sent events (CTL-27)."""
    stream = request.environ[STREAM] = EventStream(project().events, after_of(request))
    return Response(stream.pieces(), mimetype="text/event-stream", headers={"Cache-Control": "no-store"})


def _conditions(query: dict[str, str]) -> list[waiting.Condition]:
    found = []
    if "order_id" in query and "status" in query:
        found.append(waiting.order_status(query["order_id"], query["status"]))
    if "webhook" in query:
        found.append(waiting.webhook_answered(query["webhook"]))
    if "idle" in query:
        found.append(waiting.idle())
    return found
