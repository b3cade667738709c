"""Orders, their history and their review; the journal does not record these reads."""

from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import Annotated, Any, Final, cast

from marshmallow import ValidationError

from payment_sandbox.forms import Cents, Choice, Form, Problem, Text, checks
from payment_sandbox.forms.base import did_you_mean, nearest_word
from payment_sandbox.judge import (
    describe_mistakes,
    group_findings,
    listed_id,
    review,
    start_of,
)
from payment_sandbox.judge.history import TimelineEntry, history
from payment_sandbox.kernel.descriptions import to_plain_data
from payment_sandbox.kernel.times import timestamp
from payment_sandbox.operations.act import act as act_on_order
from payment_sandbox.operations.act import act_on_attempt
from payment_sandbox.operations.bank_qr import scan as scan_code
from payment_sandbox.operations.find_orders import OrderFilter, find_orders
from payment_sandbox.orders.actions import ACTIONS, Action, ActionName, Actor
from payment_sandbox.orders.cards import AUTHORIZATION_METHODS, CARDS, Credential
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.projects.journal import VIA_CONTROL, LoggedRequest, PerformedAction
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.registry import FIRST_API_KEY
from payment_sandbox.projects.unmatched import unmatched_rules
from payment_sandbox.web.answers import records, timeline_report
from payment_sandbox.web.answers.overview import (
    group_record,
    order_overview,
    order_rows,
)
from payment_sandbox.web.answers.page_urls import qr_page_url
from payment_sandbox.web.call import Call
from payment_sandbox.web.control.declaring import Before, Limit, Listed, OfStatus, command, newest_page


@command("control", "GET", "/orders/")
def orders(
    project: Project,
    *,
    status: Annotated[OfStatus, "Only orders with this status."] | None = None,
    method: Annotated[str, "Only orders with an attempt by this payment method."] | None = None,
    text: Annotated[
        str, "Only orders with this text in an id, number, description, method, name or email address."
    ]
    | None = None,
    limit: Limit | None = None,
    before: Before | None = None,
) -> Listed[records.OrderRow]:
    """List orders, newest first."""
    found = find_orders(project.epoch, OrderFilter(status, method, text, before))
    return Listed(order_rows(project, islice(found, limit)))


@command("control", "GET", "/orders/<order_id>/")
def overview(project: Project, order_id: str) -> records.OrderOverview:
    """Get one order with its possible actions, scheduled events, webhooks and refunds."""
    return order_overview(project, project.find_order(order_id))


@command("control", "GET", "/timeline/", errors=(404,))
def timeline(
    project: Project,
    order_id: Annotated[str, "Only entries about this order and its refunds."] | None = None,
    *,
    limit: Limit | None = None,
) -> Listed[TimelineEntry]:
    """List the history of the project, causes before effects."""
    entries = history(project.epoch, order_id)
    shown = entries[-limit:] if limit is not None else entries
    return Listed(map(to_plain_data, shown), project.epoch.journal.dropped_count)


@command("control", "GET", "/report/", errors=(404,), unwraps="text")
def report(
    call: Call,
    order_id: Annotated[str, "Only this order and its refunds; all orders by default."] | None = None,
) -> records.Report:
    """Get the timeline and the review findings as text, for the report of a failed test."""
    is_guarded = call.site.control_token is not None  # teams on one server must not see each other's calls
    refused = [each for at, each in list(call.site.refused) if at >= call.project.loaded_at]
    other_calls = [] if is_guarded else [*refused, *_calls_with_first_key(call)]
    return {"text": timeline_report.report(call.project.epoch, order_id, other_calls)}


def _calls_with_first_key(call: Call) -> list[str]:
    """List the calls made with the first project's key, if none was made with this project's key."""
    own, first = call.project, call.site.registry.find(FIRST_API_KEY)
    if first in (None, own) or own.epoch.journal.of(LoggedRequest):
        return []
    return [
        f"{entry.method} {entry.path} -> {entry.status}: with {FIRST_API_KEY}, the key of the first project"
        for entry in first.epoch.journal.entries(lambda entry: start_of(entry) >= own.loaded_at)
    ]


@command("control", "GET", "/actions/", lists="PerformedActions")
def actions(
    project: Project,
    order_id: Annotated[str, "Only actions on this order."] | None = None,
    *,
    limit: Limit | None = None,
    before: Before | None = None,
) -> Listed[PerformedAction]:
    """List the actions by customers, banks, screenings and processors, newest last."""
    only = frozenset((order_id,)) if order_id is not None else None
    performed = list(project.epoch.journal.actions(only))
    return Listed(map(to_plain_data, newest_page(performed, limit, before)))


@command("control", "GET", "/review/")
def reviewed(project: Project) -> records.ReviewResult:
    """List the mistakes in the integration's requests and webhook responses."""
    findings = review(project.epoch)
    unmatched = unmatched_rules(project.epoch)
    host = project.services.public_url
    text = describe_mistakes(each._replace(page=f"{host}{each.page}") for each in findings)
    return {
        "items": [cast(Any, finding._asdict()) for finding in findings],
        "dropped": 0,
        "groups": [
            group_record(group) for group in group_findings(findings, partial(listed_id, project.epoch))
        ],
        "unmatched": unmatched,
        "text": "\n".join(filter(None, [text, *unmatched])),
    }


@command("control", "GET", "/cards/", lists="StoredCards")
def cards(project: Project) -> Listed[Credential]:
    """List the stored cards, oldest first."""
    return Listed(map(to_plain_data, project.epoch.store.credentials()))


@command("control", "GET", "/bankqr/")
def qr_requests(project: Project) -> Listed[records.QrRow]:
    """List the QR requests, oldest first."""
    return Listed(_qr_record(project, request) for request in project.epoch.store.qr_requests())


def _qr_record(owner: Project, request: QrRequest) -> records.QrRow:
    return {
        "id": request.id,
        "created": timestamp(request.created),
        "expires_at": timestamp(request.expires_at),
        "amount": request.amount_cents,
        "amount_changeable": request.amount_changeable,
        "one_off": request.one_off,
        "scans": request.scans,
        "description": request.description,
        "merchant_order_id": request.merchant_order_id,
        "page": qr_page_url(owner, request),
    }


ACTIONS_IN_WORDS: Final = "; ".join(f"{actor}: {', '.join(names)}" for actor, names in ACTIONS.items())


@checks(although_invalid=False)
def check_action_of_actor(form: Form, data: Mapping[str, Any], sent: Any, **options: Any) -> None:
    """Refuse an action that the actor cannot perform."""
    possible = ACTIONS[data["actor"]]
    if data["action"] not in possible:
        nearest = nearest_word(data["action"], possible)
        expected = f"must be one of: {', '.join(possible)}, for the actor {data['actor']}"
        raise ValidationError(Problem(f"{expected}{did_you_mean(nearest)}", possible, nearest), "action")


@command(
    "control",
    "POST",
    "/orders/<order_id>/act/",
    check=check_action_of_actor,
    acts=True,
    errors=(409,),
    example={"actor": "customer", "action": "pay", "card": "frictionless"},
)
def act(
    project: Project,
    order_id: str,
    actor: Annotated[Actor, "The acting party."],
    action: Annotated[ActionName, Text, f"The action, by actor: {ACTIONS_IN_WORDS}."],
    *,
    payment_method: Annotated[str, "For choose: the payment method."] | None = None,
    issuer_id: Annotated[str, "For bank-redirect-nl: the bank."] | None = None,
    card: Annotated[str, partial(Choice, tuple(CARDS)), "For a card payment: the test card."] | None = None,
    authorization: Annotated[
        str, partial(Choice, AUTHORIZATION_METHODS), "For wallet-google: the authorization method."
    ]
    | None = None,
    amount: Annotated[
        int,
        Cents,
        "For the bank's credit action: cents; by default the missing amount, or the whole amount again.",
    ]
    | None = None,
    transaction_id: Annotated[
        str, "The transaction; by default the newest or, for the bank, the newest that can receive money."
    ]
    | None = None,
    reason: Annotated[str, "The reason for a failure or decline."] | None = None,
) -> Order:
    """Act on an order as the customer, the bank or another actor (CTL-20)."""
    performed = Action(
        actor,
        action,
        payment_method=payment_method,
        issuer_id=issuer_id,
        card=card,
        authorization=authorization,
        amount_cents=amount,
        reason=project.masking.mask_text(reason or "") or None,
    )
    if transaction_id is None:
        return act_on_order(project, order_id, performed)
    return act_on_attempt(project, order_id, transaction_id, performed, VIA_CONTROL)


@command(
    "control",
    "POST",
    "/bankqr/<qr_id>/scan/",
    acts=True,
    status=201,
    errors=(409,),
    example={"issuer_id": "SBXANL2A"},
)
def scan(
    project: Project,
    qr_id: str,
    amount: Annotated[int, Cents, "The amount that the payer enters, in cents, if they may change it."]
    | None = None,
    issuer_id: Annotated[str, "The payer's bank."] | None = None,
) -> Order:
    """Scan a QR code as a payer."""
    return scan_code(project, qr_id, amount, issuer_id)
