"""The page of an order with its history and possible actions."""

from collections.abc import Sequence
from functools import partial
from typing import Final, cast

from flask import Response

from payment_sandbox.judge import Finding, group_findings, listed_id, review_order
from payment_sandbox.judge.history import SERVICE, SHOP, beliefs, fold, history, story
from payment_sandbox.judge.standing import (
    amounts,
    bar_segments,
    look_of,
    praise,
    second_status,
    shop_statuses,
)
from payment_sandbox.operations.act import act
from payment_sandbox.operations.attempts import offered_methods
from payment_sandbox.operations.by_hand import act_as_merchant
from payment_sandbox.orders.actions import ACTIONS, BANK, CUSTOMER, SCREENING, Action
from payment_sandbox.orders.amounts import AMOUNT_CENTS_MAX, parse_euros
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.journal import MERCHANT_ACTOR
from payment_sandbox.ui.dashboard.frame import (
    FORM_FACTS,
    VIEW_FACTS,
    enter,
    form_page,
    show,
    url,
)
from payment_sandbox.ui.dashboard.snippets import format_body
from payment_sandbox.web.answers.overview import order_overview, order_row
from payment_sandbox.web.answers.page_urls import order_page_path
from payment_sandbox.web.browsers import redirect
from payment_sandbox.web.call import Call
from payment_sandbox.web.control import COMMANDS
from payment_sandbox.web.routes import stated

ROWS_MAX: Final = 200
ROWS_SHOWN_MAX: Final = 5000  # in the full history
PARTY_NAMES: Final = {
    CUSTOMER: "Customer",
    SHOP: "Your shop",
    SERVICE: "Service",
    BANK: "Bank",
    SCREENING: "Screening",
}
CUSTOMER_PAGE_ACTIONS: Final = {"customer visit", "customer pay", "customer choose"}
ACTION_LABELS: Final = {
    "customer pay": "Customer pays",
    "customer cancel": "Customer cancels",
    "customer fail": "Payment fails",
    "bank credit": "Money arrives",
    "screening approve": "Screening passes",
    "screening decline": "Screening declines",
    "screening error": "Screening fails",
    "processor settle": "Processor settles",
    "processor fail": "Processor refuses",
}
LINKED_KINDS: Final = ("request", "response", "webhook", "webhook-response")
ACTION_DETAILS: Final = ("card", "payment_method", "issuer_id", "reason")


@stated(**VIEW_FACTS)
def get_order_view(call: Call, project_id: str, order_id: str) -> Response:
    """Show the page of an order."""
    project = enter(call, project_id)
    order = project.find_order(order_id)
    if order.refund_of_order_id is not None:
        return redirect(url(project, f"orders/{order.refund_of_order_id}/"))
    epoch, overview = project.epoch, order_overview(project, order)
    findings, entries = review_order(epoch, order), history(epoch, order.id)
    shop_status = shop_statuses(epoch).get(order.id)
    by_actor = cast("dict[str, list[str]]", overview["actions"])
    possible = [f"{actor} {name}" for actor in ACTIONS for name in by_actor[actor]]
    timeline_entries = list(story(epoch, order.id, entries, findings))
    is_whole = call.request.args.get("rows") == "all"
    rows_max = ROWS_SHOWN_MAX if is_whole else ROWS_MAX
    return show(
        call,
        "order",
        project,
        "orders",
        order=overview["order"],
        row=order_row(project, order, shop_status),
        verdict=_verdict(epoch, order, findings, shop_status),
        beliefs=beliefs(entries, order),
        overview=overview,
        possible=possible,
        simulated_actions=[action for action in possible if action in ACTION_LABELS],
        look=look_of(order),
        labels=ACTION_LABELS,
        offered=offered_methods(project.settings, order),
        page_path=order_page_path(project, order) if set(possible) & CUSTOMER_PAGE_ACTIONS else None,
        format_body=format_body,
        story=list(fold(timeline_entries))[-rows_max:],
        timeline_entries=timeline_entries[-rows_max:],
        omitted=max(0, len(timeline_entries) - rows_max),
        full_url=None if is_whole else url(project, f"orders/{order.id}/", rows="all"),
        linked_kinds=LINKED_KINDS,
        parties=PARTY_NAMES,
    )


def _verdict(
    epoch: Epoch, order: Order, findings: Sequence[Finding], shop_status: str | None
) -> dict[str, object]:
    groups = group_findings(findings, partial(listed_id, epoch))
    mistakes = [group for group in groups if group.first.is_open]
    return {
        "mistakes": mistakes,
        "hints": [group for group in groups if not group.first.is_open],
        "praise": "" if mistakes else praise(epoch, order, shop_status),
        "money": list(amounts(order, epoch.now())),
        "bar": list(bar_segments(order)),
        "second_status": second_status(order),
    }


@stated(**FORM_FACTS)
def post_order_action(call: Call, project_id: str, order_id: str) -> Response:
    """Act as the customer, the bank, the screening, the processor or the merchant."""
    project = enter(call, project_id)
    actor, _, name = call.request.form.get("action", "").partition(" ")
    amount_cents = parse_cents(call, "amount")
    call.hold_webhooks()
    if actor == MERCHANT_ACTOR:
        act_as_merchant(project, order_id, name, amount_cents)
    else:
        given = {field: call.request.form[field] for field in ACTION_DETAILS if call.request.form.get(field)}
        data = COMMANDS["act"].read({"actor": actor, "action": name, **given})
        act(project, order_id, Action(amount_cents=amount_cents, **data))
    order = project.find_order(order_id)
    return redirect(form_page(call) or url(project, f"orders/{order.refund_of_order_id or order.id}/"))


def parse_cents(call: Call, field: str) -> int | None:
    """Parse an amount in euros, such as 12.95; None if the field is empty.

    Raises:
        Invalid: not an amount.
    """
    typed = call.request.form.get(field, "").strip().removeprefix("€")
    if not typed:
        return None
    try:
        cents = parse_euros(typed)
    except ValueError:
        raise Invalid([Violation(field, "must be an amount in euros, such as 12.95")]) from None
    if not 0 < cents <= AMOUNT_CENTS_MAX:
        raise Invalid([Violation(field, "must be an amount in euros, at least 0.01")])
    return cents
