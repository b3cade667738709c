"""Webhooks, the requests of the shop, and the fidelity rules."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Final, cast

from marshmallow import validate

from payment_sandbox.fidelity.ledger import assumptions, rules
from payment_sandbox.forms import Choice, Text, WebUrl, Whole
from payment_sandbox.kernel.descriptions import to_plain_data
from payment_sandbox.kernel.times import timestamp
from payment_sandbox.operations import redelivery
from payment_sandbox.orders.refusals import Unknown
from payment_sandbox.orders.webhooks import LOST, Delivery, DeliveryState
from payment_sandbox.projects.journal import (
    RETURN,
    EpochJournal,
    LoggedFailure,
    LoggedRequest,
    PerformedAction,
    ReachedStatus,
)
from payment_sandbox.projects.project import Project
from payment_sandbox.web.answers import records
from payment_sandbox.web.answers.control import (
    delivery_record,
    delivery_summary,
    journal_record,
    journal_summary,
)
from payment_sandbox.web.answers.page_urls import is_same_path
from payment_sandbox.web.control.declaring import (
    Before,
    HttpOnly,
    Limit,
    Listed,
    Period,
    Summary,
    command,
    newest_page,
)

BODY_LENGTH_MAX: Final = 16_384
STATES: Final = (*(state.value for state in DeliveryState), LOST)
NOT_IN_JOURNAL: Final = "is not in the journal; the request may have been dropped"


@command("control", "GET", "/webhooks/")
def webhooks(
    project: Project,
    order_id: Annotated[str, "Only webhooks of this order."] | None = None,
    state: Annotated[
        str,
        partial(Choice, STATES),
        "Only webhooks in this state; lost ones also count as delivered; only this lists unsent ones.",
    ]
    | None = None,
    *,
    limit: Limit | None = None,
    before: Before | None = None,
    summary: Summary = False,
) -> Listed[records.Webhook]:
    """List webhooks with their delivery attempts (CTL-21)."""
    store, serialize = project.epoch.store, delivery_summary if summary else delivery_record
    deliveries: Sequence[Delivery]
    if state == DeliveryState.UNSENT:
        unsent = redelivery.unsent_webhooks(project.epoch)
        deliveries = [each for each in unsent if order_id in (None, each.order_id)]
    else:
        deliveries = store.deliveries() if order_id is None else store.deliveries_of(order_id)
    shown = newest_page(deliveries, limit, before, lambda each: state in (None, each.state, each.outcome))
    return Listed((serialize(each, project.masking) for each in shown), store.deliveries_dropped)


@command("control", "GET", "/webhooks/<delivery_id>/")
def webhook(project: Project, delivery_id: str) -> records.Webhook:
    """Get one webhook with its delivery attempts."""
    return delivery_record(redelivery.find_delivery(project, delivery_id), project.masking)


@command("control", "POST", "/webhooks/<delivery_id>/redeliver/", example={"after": "PT10M"})
def redeliver(
    project: Project,
    delivery_id: str,
    *,
    url: Annotated[str, WebUrl, "Another address; the state of the webhook stays."] | None = None,
    body: Annotated[
        str,
        partial(
            Text, validate=validate.Length(max=BODY_LENGTH_MAX, error="must have at most {max} characters")
        ),
        "Another body; the state of the webhook stays.",
    ]
    | None = None,
    after: Annotated[Period, "Resend after this period of sandbox time, such as PT10M."] | None = None,
) -> records.Webhook:
    """Redeliver a webhook, now or later, unchanged or with another address or body (CTL-22)."""
    delivery = redelivery.redeliver(project, delivery_id, url=url, body=body, after=after)
    return delivery_record(delivery, project.masking)


@command(
    "control",
    "POST",
    "/webhooks/deliver/",
    lists="Webhooks",
    example={"webhook_url": "https://shop.example/webhook"},
)
def deliver_unsent(
    project: Project, webhook_url: Annotated[str, WebUrl, "The address of the shop."]
) -> Listed[records.Webhook]:
    """Deliver all webhooks that were not sent because no address was set."""
    sent = redelivery.deliver_unsent(project, webhook_url)
    return Listed(delivery_record(each, project.masking) for each in sent)


@command("control", "GET", "/journal/", unwraps="items")
def journal(
    project: Project,
    *,
    method: Annotated[str, "Only requests with this HTTP method."] | None = None,
    path: Annotated[str, "Only requests to this path; a trailing slash makes no difference."] | None = None,
    status: Annotated[
        int, partial(Whole, low=0, high=999_999_999), "Only requests answered with this status."
    ]
    | None = None,
    order_id: Annotated[str, "Only requests about this order."] | None = None,
    limit: Limit | None = None,
    before: Before | None = None,
    summary: Summary | None = None,
    count: Annotated[bool, HttpOnly(), "Return only the number of requests."] = False,
) -> records.Journal:
    """List the requests to the merchant API (CTL-25)."""

    def matches(entry: LoggedRequest) -> bool:
        return (
            (method is None or method.upper() == entry.method)
            and (path is None or is_same_path(entry.path, path))
            and status in (None, entry.status)
            and order_id in (None, entry.order_id)
        )

    log = project.epoch.journal
    shown = newest_page(log.of(LoggedRequest), limit, before, matches, NOT_IN_JOURNAL)
    if count:
        return {"count": len(shown)}
    serialize = journal_summary if summary else partial(journal_record, project)
    is_page = any(each is not None for each in (limit, before, summary))
    others = {} if is_page else _other_lists(log, order_id)
    return cast(records.Journal, {"items": map(serialize, shown), "dropped": log.dropped_count, **others})


def _other_lists(log: EpochJournal, order_id: str | None) -> Mapping[str, object]:
    orders = None if order_id is None else (order_id,)
    return {
        "returns": [
            {"order_id": each.order_id, "at": timestamp(each.at), "real_at": timestamp(each.real_at)}
            for each in log.of(PerformedAction, orders)
            if each.action == RETURN
        ],
        "statuses": list(map(to_plain_data, log.of(ReachedStatus, orders))),
        "failures": list(map(to_plain_data, log.of(LoggedFailure, orders))),
    }


@command("control", "GET", "/journal/<entry_id>/")
def journal_entry(project: Project, entry_id: str) -> records.JournalEntry:
    """Get one request to the merchant API with its response."""
    entry = project.epoch.journal.find(entry_id)
    if entry is None:
        raise Unknown(f"the journal has no request {entry_id!r}; it may have been dropped")
    return journal_record(project, entry)


@command("control", "GET", "/fidelity/")
def fidelity(project: Project) -> records.Fidelity:
    """List every rule with the tests that prove it, and every assumption (SET-70)."""
    return {"items": rules(), "dropped": 0, "assumptions": assumptions()}
