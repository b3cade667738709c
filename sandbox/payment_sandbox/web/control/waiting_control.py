"""Calls that wait: for conditions, for events, and for the webhooks of a listener."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Final, cast

from flask import Response
from marshmallow import ValidationError, validate
from marshmallow.exceptions import SCHEMA

from payment_sandbox.forms import Form, Text, WebUrl, Whole, checks, read
from payment_sandbox.forms.fields import Flag, Number
from payment_sandbox.kernel.descriptions import Key
from payment_sandbox.kernel.times import timestamp
from payment_sandbox.operations import wait as waiting
from payment_sandbox.operations.move_clock import catch_up
from payment_sandbox.orders.webhooks import ATTEMPT_BODY_BYTES, DURATION_MS_MAX, Reply
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.relay import OfferedAttempt
from payment_sandbox.web.answers import records
from payment_sandbox.web.answers.responses import json_answer
from payment_sandbox.web.auth import refuse_cross_site, require_project
from payment_sandbox.web.bodies import json_body
from payment_sandbox.web.call import Call
from payment_sandbox.web.control.control_face import BODY_ERRORS, read_query
from payment_sandbox.web.control.declaring import OfStatus, command
from payment_sandbox.web.error_answers import answer_for
from payment_sandbox.web.event_stream import NUMBER_DIGITS_MAX, EventStream, last_event_number
from payment_sandbox.web.faces import Face, Middleware
from payment_sandbox.web.routes import FactsBlueprint, route

TIMEOUT_SECONDS: Final = 10.0
WaitSeconds = partial(
    Number, validate=validate.Range(0, 60, error="must be at least 0 and at most 60 seconds")
)

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


@checks(although_invalid=False)
def require_condition(form: Form, data: Mapping[str, Any], sent: Any, **options: Any) -> None:
    """Require a condition, and a status with each order."""
    if sent.keys() - form.load_fields.keys():
        return  # each unknown key is refused with the nearest known one
    problems: dict[str, Any] = {}
    if ("order_id" in data) != ("status" in data):
        problems["status"] = ["must be given together with order_id"]
    if not (data.get("idle") or "webhook" in data or data.keys() >= {"order_id", "status"}):
        problems[SCHEMA] = ["must contain a condition: order_id with status, webhook, or idle"]
    if problems:
        raise ValidationError(problems)


@command(watching, "GET", "/wait/", check=require_condition, errors=(404, 408), waits=True)
def wait(
    project: Project,
    *,
    order_id: Annotated[str, "The id of the order to wait for; requires status."] | None = None,
    status: Annotated[OfStatus, "The status to wait for."] | None = None,
    webhook: Annotated[str, "The id of an order; wait for an answer to one of its webhooks."] | None = None,
    idle: Annotated[bool, "Wait until nothing is due and no webhook is in flight."] = False,
    timeout_seconds: Annotated[
        float, WaitSeconds, Key("timeout"), "The timeout, in real seconds; 10 by default, 60 at most."
    ] = TIMEOUT_SECONDS,
) -> records.WaitResult:
    """Wait until all given conditions hold (CTL-26)."""
    conditions = []
    if order_id is not None and status is not None:
        conditions.append(waiting.await_status(order_id, status))
    if webhook is not None:
        conditions.append(waiting.await_webhook_answer(webhook))
    if idle:
        conditions.append(waiting.await_idle())
    catch_up(project)
    return cast(records.WaitResult, waiting.wait(project, conditions, timeout_seconds))


@command(watching, "GET", "/events/", answers=None, media_type="text/event-stream", streams=True)
def events(
    call: Call,
    *,
    after: Annotated[
        int,
        partial(Whole, low=0, high=10**NUMBER_DIGITS_MAX - 1),
        "Also stream the events after this number, as with the header Last-Event-ID.",
    ]
    | None = None,
) -> Any:
    """Stream all events of the project, as server-sent events (CTL-27)."""
    call.project.storage.watch(call.project)
    stream = call.stream = EventStream(call.project.events, last_event_number(call.request))
    return Response(stream.chunks(), mimetype="text/event-stream", headers={"Cache-Control": "no-store"})


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
    listener, forward_to = request.get("listener", ""), request.get("forward_to")
    if request.get("leaves"):
        project.relay.disconnect(listener)
        project.change_settings(
            {"forward_to": None}, unless=lambda: project.settings.forward_to != forward_to
        )
        return None
    if not project.relay.connect(listener):
        return None
    if forward_to is not None and forward_to != project.settings.forward_to:
        project.change_settings(
            {"forward_to": forward_to}, unless=lambda: project.relay.is_disconnected(listener)
        )
    project.end_listener_wait()
    project.storage.take_over(project)
    return project.relay.take(timeout_seconds, lambda: project.events.is_ended)


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
    return json_answer({"recorded": call.project.relay.answer(data["id"], _build_reply(data))})


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
    return {
        "id": str(offer.label),
        "webhook": f"{offer.label.webhook}/{offer.label.copy}",
        "number": offer.label.number,
        "by_hand": offer.label.by_hand > 0,
        "at": timestamp(offer.at),
        "order_id": offer.order.order_id,
        "status": offer.order.status,
        "url": offer.request.url,
        "headers": offer.request.headers,
        "body": offer.request.body.decode(),
    }
