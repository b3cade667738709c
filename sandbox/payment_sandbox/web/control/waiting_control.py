"""Calls that wait: for conditions, for events, and for the webhooks of a listener."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Final, cast

from marshmallow import ValidationError, validate
from marshmallow.exceptions import SCHEMA

from payment_sandbox.delivery.receivers import OfferedAttempt, listener_of
from payment_sandbox.forms import Form, Text, WebUrl, Whole, checks
from payment_sandbox.forms.fields import Number
from payment_sandbox.kernel.descriptions import Key
from payment_sandbox.kernel.times import timestamp
from payment_sandbox.operations import wait as waiting
from payment_sandbox.operations.advance import catch_up
from payment_sandbox.orders.webhooks import ATTEMPT_BODY_BYTES, DURATION_MS_MAX, Reply
from payment_sandbox.projects.project import Project
from payment_sandbox.web.answers import records
from payment_sandbox.web.answers.responses import stream_answer
from payment_sandbox.web.call import Call
from payment_sandbox.web.control.declaring import OfStatus, command
from payment_sandbox.web.event_stream import NUMBER_DIGITS_MAX, EventStream, last_event_number

TIMEOUT_SECONDS: Final = 10.0
WaitSeconds = partial(
    Number, validate=validate.Range(0, 60, error="must be at least 0 and at most 60 seconds")
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


@command("watching", "GET", "/wait/", check=require_condition, errors=(404, 408))
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


@command("watching", "GET", "/events/", answers=None, media_type="text/event-stream", streams=True)
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
    return stream_answer(call, EventStream(call.project.events, last_event_number(call.request)))


LISTEN_SECONDS_DEFAULT: Final = 20.0
LISTEN_SECONDS_MAX: Final = 60
TEXT_LENGTH_MAX: Final = 500


@command(
    "watching",
    "POST",
    "/listener/next/",
    example={"timeout": 1, "listener": "my laptop", "forward_to": "http://localhost:3000/webhook"},
)
def next_offers(
    project: Project,
    *,
    timeout_seconds: Annotated[
        float,
        Number,
        Key("timeout"),
        "The time to wait for a webhook, in real seconds; 20 by default, 60 at most.",
    ] = LISTEN_SECONDS_DEFAULT,
    listener: Annotated[str, "A unique name of this listener; a newer listener replaces it."] = "",
    forward_to: Annotated[str, WebUrl, "The shop's URL, for which all webhooks wait from now on."]
    | None = None,
    leaves: Annotated[bool, "Whether the listener signs off: the server sends the webhooks again."] = False,
) -> records.Offers:
    """Wait for the next webhooks to deliver, for listeners such as the command ``listen``.

    A later call ends this call; attempts without a reported answer are offered again.
    """
    catch_up(project)
    own, offers = listener_of(project), None
    if leaves:
        own.disconnect(listener)
        project.forward_webhooks(None, unless=lambda: project.settings.forward_to != forward_to)
    elif own.connect(listener):
        if forward_to is not None and forward_to != project.settings.forward_to:
            project.forward_webhooks(forward_to, unless=lambda: listener in own.replaced)
        project.send_unsent()
        until_seconds = min(max(timeout_seconds, 0.0), LISTEN_SECONDS_MAX)
        offers = own.take(until_seconds, lambda: project.events.is_ended)
    return {"items": [_offer_record(offer) for offer in offers or ()], "replaced": offers is None}


Duration = partial(
    Number, validate=validate.Range(0, DURATION_MS_MAX, error=f"must be between 0 and {DURATION_MS_MAX}")
)


@command(
    "watching",
    "POST",
    "/listener/answers/",
    unwraps="recorded",
    example={"id": "...", "status": 204, "duration_ms": 12.5},
)
def report_answer(
    project: Project,
    attempt_id: Annotated[str, Key("id"), "The id of the attempt."],
    *,
    status: Annotated[
        int, partial(Whole, low=100, high=599, allow_none=True), "The status of the shop's response, if any."
    ]
    | None = None,
    body: Annotated[str, "The first 4 KiB of the shop's response."] = "",
    error: Annotated[str, partial(Text, allow_none=True), "The reason for a missing response."] | None = None,
    warning: Annotated[str, partial(Text, allow_none=True), "A warning about an unusual response."]
    | None = None,
    duration_ms: Annotated[float, Duration, "The response time of the shop, in milliseconds."] = 0.0,
) -> records.RecordingResult:
    """Report the shop's answer to an attempt, which counts as if the sandbox had received it.

    If the answer is not recorded, the same attempt is offered again; the listener then repeats the answer.
    """
    missing = (error or "")[:TEXT_LENGTH_MAX] or "the listener gave no reason"
    reply = Reply(
        duration_ms,
        status,
        body.encode()[:ATTEMPT_BODY_BYTES].decode(errors="ignore"),
        missing if status is None else None,
        (warning or "")[:TEXT_LENGTH_MAX] or None,
    )
    return {"recorded": listener_of(project).answer(attempt_id, reply)}


def _offer_record(offer: OfferedAttempt) -> records.Offer:
    attempt = offer.attempt
    return {
        "id": offer.label,
        "webhook": f"{offer.webhook}/{offer.copy}",
        "number": attempt.delivery.next_number,
        "by_hand": attempt.queued.forced,
        "at": timestamp(attempt.at),
        "order_id": attempt.delivery.order_id,
        "status": attempt.delivery.status,
        "url": attempt.request.url,
        "headers": attempt.request.headers,
        "body": attempt.request.body.decode(),
        "timeout_seconds": attempt.timeout_seconds,
    }
