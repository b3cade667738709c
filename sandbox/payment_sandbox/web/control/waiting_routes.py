"""Routes that wait: long polls for conditions, event streams, and the listener's calls."""

from collections.abc import Mapping
from typing import Any, Final

from flask import Response
from marshmallow import validate

from payment_sandbox.delivery.receivers import OfferedAttempt, listener_of
from payment_sandbox.forms import Form, Text, WebUrl, Whole, read
from payment_sandbox.forms.fields import Flag, Number
from payment_sandbox.kernel.times import timestamp
from payment_sandbox.operations import wait as waiting
from payment_sandbox.operations.move_clock import catch_up
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.orders.webhooks import ATTEMPT_BODY_BYTES, DURATION_MS_MAX, Reply
from payment_sandbox.projects.project import Project
from payment_sandbox.web.answers import records
from payment_sandbox.web.answers.responses import json_answer
from payment_sandbox.web.auth import refuse_cross_site, require_project
from payment_sandbox.web.bodies import json_body
from payment_sandbox.web.call import Call
from payment_sandbox.web.control.control_face import BODY_ERRORS, read_query
from payment_sandbox.web.control.control_forms import EventsQuery, WaitQuery
from payment_sandbox.web.error_answers import answer_for
from payment_sandbox.web.event_stream import EventStream, last_event_number
from payment_sandbox.web.faces import Face, Middleware
from payment_sandbox.web.routes import FactsBlueprint, route

TIMEOUT_SECONDS_DEFAULT: Final = 10.0
TIMEOUT_SECONDS_MAX: Final = 60.0

watching = FactsBlueprint("watching", __name__, url_prefix="/control")
WATCHING: Final = Face(
    watching,
    (
        Middleware(refuse_cross_site),
        Middleware(require_project),
        Middleware(read_query),
    ),
    answer_for,
)


@route(
    watching,
    "GET",
    "/wait/",
    answers=records.WaitResult,
    query=WaitQuery,
    errors=(400, 401, 404, 408),
    waits=True,
)
def get_wait(call: Call) -> Response:
    """Wait until all given conditions hold (CTL-26)."""
    query = call.request.args.to_dict()
    timeout_seconds = float(query.get("timeout", TIMEOUT_SECONDS_DEFAULT))
    conditions = _conditions(query)
    _refuse_invalid_wait(query, conditions, timeout_seconds)
    catch_up(call.project)
    return json_answer(waiting.wait(call.project, conditions, timeout_seconds))


def _refuse_invalid_wait(
    query: Mapping[str, str], conditions: list[waiting.Condition], timeout_seconds: float
) -> None:
    violations = (
        []
        if conditions
        else [Violation("", "must contain a condition: order_id with status, webhook, or idle")]
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
def get_events(call: Call) -> Response:
    """Stream all events of the project, as server-sent events (CTL-27)."""
    call.project.epoch.store.watch()
    stream = call.stream = EventStream(call.project.events, last_event_number(call.request))
    return Response(stream.chunks(), mimetype="text/event-stream", headers={"Cache-Control": "no-store"})


def _conditions(query: dict[str, str]) -> list[waiting.Condition]:
    conditions = []
    if "order_id" in query and "status" in query:
        conditions.append(waiting.await_status(query["order_id"], query["status"]))
    if "webhook" in query:
        conditions.append(waiting.await_webhook_answer(query["webhook"]))
    if "idle" in query:
        conditions.append(waiting.await_idle())
    return conditions


LISTEN_SECONDS_DEFAULT: Final = 20.0
LISTEN_SECONDS_MAX: Final = 60
TEXT_LENGTH_MAX: Final = 500


class NextForm(Form):
    """A listener's request for webhooks."""

    timeout = Number(about="The time to wait for a webhook, in real seconds; 20 by default, 60 at most.")
    listener = Text(about="A unique name of this listener; a newer listener replaces it.")
    forward_to = WebUrl(about="The shop's URL; becomes the setting of that name.")
    leaves = Flag(
        about="Whether the listener signs off: it gets no more webhooks, and the setting is reset to null."
    )


class AnswerForm(Form):
    """The shop's answer to an attempt, or the reason for its absence."""

    id = Text(required=True, about="The id of the attempt.")
    status = Whole(low=100, high=599, allow_none=True, about="The status of the shop's response, if any.")
    body = Text(about="The first 4 KiB of the shop's response.")
    error = Text(allow_none=True, about="The reason for a missing response.")
    warning = Text(allow_none=True, about="A warning about an unusual response.")
    duration_ms = Number(
        validate=validate.Range(0, DURATION_MS_MAX, error=f"must be between 0 and {DURATION_MS_MAX}"),
        about="The response time of the shop, in milliseconds.",
    )


NEXT_FORM: Final = NextForm()
ANSWER_FORM: Final = AnswerForm()


@route(
    watching,
    "POST",
    "/listener/next/",
    reads=NextForm,
    answers=records.Offers,
    needs_body=False,
    errors=BODY_ERRORS,
    example={"timeout": 1, "listener": "my laptop", "forward_to": "http://localhost:3000/webhook"},
    waits=True,
)
def post_next(call: Call) -> Response:
    """Wait for the next webhooks to deliver, for listeners such as the command ``listen``.

    A later call ends this call; attempts without a reported answer are offered again.
    """
    request = read(NEXT_FORM, json_body(call, empty_is={}))
    catch_up(call.project)
    offers = _wait_for_offers(call.project, request)
    return json_answer(
        {"items": [_offer_record(offer) for offer in offers or ()], "replaced": offers is None}
    )


def _wait_for_offers(project: Project, request: Mapping[str, Any]) -> list[OfferedAttempt] | None:
    """Wait for attempts to offer to a listener; None if the listener has signed off or been replaced."""
    timeout_seconds = min(max(request.get("timeout", LISTEN_SECONDS_DEFAULT), 0.0), LISTEN_SECONDS_MAX)
    name, forward_to = request.get("listener", ""), request.get("forward_to")
    listener = listener_of(project)
    if request.get("leaves"):
        listener.disconnect(name)
        project.change_settings(
            {"forward_to": None}, unless=lambda: project.settings.forward_to != forward_to
        )
        return None
    if not listener.connect(name):
        return None
    if forward_to is not None and forward_to != project.settings.forward_to:
        project.change_settings({"forward_to": forward_to}, unless=lambda: listener.is_disconnected(name))
    project.epoch.outbox.send_unsent()
    project.epoch.store.follow(takes_over=True)
    return listener.take(timeout_seconds, lambda: project.events.is_ended)


@route(
    watching,
    "POST",
    "/listener/answers/",
    reads=AnswerForm,
    answers=records.RecordingResult,
    errors=BODY_ERRORS,
    example={"id": "...", "status": 204, "duration_ms": 12.5},
    waits=True,
)
def post_answer(call: Call) -> Response:
    """Report the shop's answer to an attempt, which counts as if the sandbox had received it.

    If the answer is not recorded, the same attempt is offered again; the listener then repeats the answer.
    """
    data: dict[str, Any] = read(ANSWER_FORM, json_body(call))
    return json_answer({"recorded": listener_of(call.project).answer(data["id"], _build_reply(data))})


def _build_reply(data: dict[str, Any]) -> Reply:
    return Reply(
        data.get("duration_ms", 0.0),
        data.get("status"),
        data.get("body", "").encode()[:ATTEMPT_BODY_BYTES].decode(errors="ignore"),
        _missing_response_reason(data),
        (data.get("warning") or "")[:TEXT_LENGTH_MAX] or None,
    )


def _missing_response_reason(data: dict[str, Any]) -> str | None:
    """Return the reason for a missing response; None if there is a response."""
    if data.get("status") is not None:
        return None
    return (data.get("error") or "")[:TEXT_LENGTH_MAX] or "the listener gave no reason"


def _offer_record(offer: OfferedAttempt) -> dict[str, Any]:
    label, attempt = offer.label, offer.attempt
    return {
        "id": str(label),
        "webhook": f"{label.webhook}/{label.copy}",
        "number": label.number,
        "by_hand": label.by_hand > 0,
        "at": timestamp(attempt.at),
        "order_id": attempt.delivery.order_id,
        "status": attempt.delivery.status,
        "url": attempt.request.url,
        "headers": attempt.request.headers,
        "body": attempt.request.body.decode(),
        "timeout_seconds": attempt.timeout_seconds,
    }
