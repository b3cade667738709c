"""The records in responses of the control API."""

from typing import Any, cast

from payment_sandbox.kernel.descriptions import to_plain_data
from payment_sandbox.kernel.masking import Masking
from payment_sandbox.kernel.times import timestamp
from payment_sandbox.orders.webhooks import Delivery, WebhookAttempt
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.journal import LoggedRequest
from payment_sandbox.projects.project import Project
from payment_sandbox.web.answers import records
from payment_sandbox.web.bodies import parse
from payment_sandbox.web.error_bodies import RequestRefused


def clock_record(epoch: Epoch) -> records.Clock:
    """Serialize the clock (CTL-12)."""
    clock = epoch.state.clock
    return {"now": timestamp(epoch.now()), "mode": clock.mode, "rate": clock.rate}


def project_record(project: Project) -> records.Project:
    """Serialize a project, without its API key (CTL-29)."""
    epoch = project.epoch
    return {
        "project_id": project.project_id,
        "merchant_id": project.merchant_id,
        "settings": epoch.state.settings.document,
        "clock": clock_record(epoch),
        "scenario": epoch.state.scenario.name,
    }


def delivery_record(delivery: Delivery, masking: Masking) -> records.Webhook:
    """Serialize a webhook with all its attempts (CTL-21)."""
    return {
        "id": delivery.id,
        "order_id": delivery.order_id,
        "url": masking.mask_text(delivery.url),
        "state": delivery.state,
        "lost": delivery.is_lost,
        "status": delivery.status,
        "attempts": [_attempt_record(attempt) for attempt in delivery.attempts],
    }


def delivery_summary(delivery: Delivery, masking: Masking) -> records.Webhook:
    """Serialize a webhook with its attempts, without headers and bodies."""
    record = delivery_record(delivery, masking)
    for attempt in record["attempts"]:
        del attempt["request"], attempt["traceback"]
        if attempt["response"] is not None:
            attempt["response"] = {"status": attempt["response"]["status"]}
    return record


def _attempt_record(attempt: WebhookAttempt) -> records.Attempt:
    reply, sent = attempt.reply, attempt.request
    return {
        "number": attempt.number,
        "at": timestamp(attempt.at),
        "real_at": timestamp(attempt.real_at),
        "request": {"url": sent.url, "headers": dict(sent.headers), "body": sent.body.decode()},
        "response": {"status": reply.status, "body": reply.body} if reply.status is not None else None,
        "error": reply.error,
        "warning": reply.warning,
        "fault": reply.fault,
        "traceback": reply.traceback,
        "duration_ms": round(reply.duration_ms, 3),
    }


def _parse_body(body: bytes) -> Any:
    """Parse a body as JSON; return other content as text, and an empty body as None."""
    if not body:
        return None
    try:
        return parse(body)
    except RequestRefused:
        return body.decode(errors="replace")


def journal_record(project: Project, entry: LoggedRequest) -> records.JournalEntry:
    """Serialize a request and its response (CTL-25), with the decision for the created attempt."""
    return {
        **journal_summary(entry),
        "request": _parse_body(entry.request),
        "response": _parse_body(entry.response),
        "headers": {"request": dict(entry.request_headers), "response": dict(entry.response_headers)},
        "decision": project.epoch.journal.explanation(entry.transaction_id),
    }


def journal_summary(entry: LoggedRequest) -> records.JournalEntry:
    """Serialize a request and its response, without headers and bodies."""
    fault = entry.fault.document if entry.fault is not None else None
    return cast(records.JournalEntry, {**to_plain_data(entry), "fault": fault})
