"""Routes for webhooks, requests and the fidelity rules."""

from typing import Final

from flask import Response

from payment_sandbox.fidelity.ledger import assumptions, rules
from payment_sandbox.forms import read
from payment_sandbox.operations.redelivery import deliver_unsent, find_delivery, redeliver
from payment_sandbox.orders.refusals import Unknown
from payment_sandbox.web.answers import records, timeline_report
from payment_sandbox.web.answers.control import delivery_record
from payment_sandbox.web.answers.responses import json_answer, list_answer
from payment_sandbox.web.bodies import json_body
from payment_sandbox.web.call import Call
from payment_sandbox.web.control.control_face import BODY_ERRORS, control
from payment_sandbox.web.control.control_forms import JournalQuery, WebhooksQuery
from payment_sandbox.web.routes import declare_list, route
from payment_sandbox.web.shared_forms import ResendForm, UnsentForm

RESEND_FORM: Final = ResendForm()
UNSENT_FORM: Final = UnsentForm()


@route(
    control,
    "GET",
    "/webhooks/",
    answers=declare_list(records.Webhook, "Webhooks"),
    query=WebhooksQuery,
    errors=(400, 401),
    slow=True,
)
def get_webhooks(call: Call) -> Response:
    """List webhooks with their delivery attempts (CTL-21)."""
    dropped = call.project.epoch.store.deliveries_dropped
    return list_answer(timeline_report.webhooks(call.project, call.request.args), dropped)


@route(control, "GET", "/webhooks/<delivery_id>/", answers=records.Webhook, errors=(401, 404))
def get_webhook(call: Call, delivery_id: str) -> Response:
    """Get one webhook with its delivery attempts."""
    return json_answer(delivery_record(find_delivery(call.project, delivery_id), call.project.masking))


@route(
    control,
    "POST",
    "/webhooks/<delivery_id>/redeliver/",
    reads=ResendForm,
    answers=records.Webhook,
    needs_body=False,
    errors=(*BODY_ERRORS, 404),
    example={"after": "PT10M"},
    waits=True,
)
def post_redelivery(call: Call, delivery_id: str) -> Response:
    """Redeliver a webhook, now or later, unchanged or with another address or body (CTL-22)."""
    changed = read(RESEND_FORM, json_body(call, empty_is={}))
    delivery = redeliver(call.project, delivery_id, **changed)
    return json_answer(delivery_record(delivery, call.project.masking))


@route(
    control,
    "POST",
    "/webhooks/deliver/",
    reads=UnsentForm,
    answers=declare_list(records.Webhook, "Webhooks"),
    errors=BODY_ERRORS,
    example={"webhook_url": "https://shop.example/webhook"},
    waits=True,
)
def post_unsent(call: Call) -> Response:
    """Deliver all webhooks that were not sent because no address was set."""
    data = read(UNSENT_FORM, json_body(call))
    masking = call.project.masking
    return list_answer(
        delivery_record(each, masking) for each in deliver_unsent(call.project, data["webhook_url"])
    )


@route(
    control,
    "GET",
    "/journal/",
    answers=records.Journal,
    query=JournalQuery,
    errors=(400, 401),
    slow=True,
)
def get_journal(call: Call) -> Response:
    """List the requests to the merchant API."""
    items = timeline_report.journal(call.project, call.request.args)
    if call.request.args.get("count"):
        return json_answer({"count": sum(1 for _ in items)})
    dropped = call.project.epoch.journal.dropped_count
    if any(name in call.request.args for name in timeline_report.PAGE_PARAMETERS):
        return list_answer(items, dropped)
    return list_answer(
        items, dropped, **timeline_report.other_lists(call.project, call.request.args.get("order_id"))
    )


@route(control, "GET", "/journal/<entry_id>/", answers=records.JournalEntry, errors=(401, 404))
def get_journal_entry(call: Call, entry_id: str) -> Response:
    """Get one request to the merchant API with its response."""
    entry = call.project.epoch.journal.find(entry_id)
    if entry is None:
        raise Unknown(f"the journal has no request {entry_id!r}; it may have been dropped")
    return json_answer(timeline_report.request_record(call.project, entry))


@route(control, "GET", "/fidelity/", answers=records.Fidelity, slow=True)
def get_fidelity(call: Call) -> Response:
    """List every rule with the tests that prove it, and every assumption (SET-70)."""
    return list_answer(rules(), assumptions=assumptions())
