"""The calls that list webhooks, requests and the fidelity rules."""

from typing import Any

from flask import Response, request

from payment_sandbox.fidelity.ledger import assumptions, rules
from payment_sandbox.operations.redeliver_webhook import redeliver
from payment_sandbox.web.answers.control import delivery_record
from payment_sandbox.web.answers.later import Later
from payment_sandbox.web.answers.responses import json_answer, list_answer
from payment_sandbox.web.auth import project
from payment_sandbox.web.control import history_filters
from payment_sandbox.web.control.blueprint import control
from payment_sandbox.web.control.forms import JournalQuery, WebhooksQuery
from payment_sandbox.web.routes import route


@route(
    control,
    "GET",
    "/webhooks/",
    answers=Later("WebhooksShape"),
    query=WebhooksQuery,
    errors=(400, 401),
    slow=True,
)
def get_webhooks() -> Response:
    """List webhooks with their delivery attempts (CTL-21)."""
    order_id, state = request.args.get("order_id"), request.args.get("state")
    dropped = project().epoch.store.deliveries_dropped
    return list_answer(history_filters.webhooks(project(), order_id, state), dropped)


@route(
    control,
    "POST",
    "/webhooks/<delivery_id>/redeliver/",
    answers=Later("DeliveryShape"),
    errors=(401, 404),
    waits=True,
)
def post_redelivery(delivery_id: str) -> Response:
    """Deliver a webhook again, now (CTL-22)."""
    return json_answer(delivery_record(redeliver(project(), delivery_id), project().masking))


@route(
    control,
    "GET",
    "/journal/",
    answers=Later("JournalShape"),
    query=JournalQuery,
    errors=(400, 401),
    slow=True,
)
def get_journal() -> Response:
    """List the requests to the merchant API."""
    items = history_filters.journal(project(), request.args)
    if request.args.get("count"):
        return json_answer({"count": sum(1 for _ in items)})
    dropped = project().epoch.journal.dropped
    return list_answer(items, dropped, **history_filters.besides(project(), request.args.get("order_id")))


@route(control, "GET", "/fidelity/", answers=Later("FidelityShape"), slow=True)
def get_fidelity() -> Response:
    """List every rule with the tests that prove it, and every assumption (SET-70)."""
    shown: list[dict[str, Any]] = [rule._asdict() for rule in rules()]
    return list_answer(shown, assumptions=[assumption._asdict() for assumption in assumptions()])
