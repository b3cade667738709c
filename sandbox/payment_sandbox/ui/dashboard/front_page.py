"""The first page: the mistakes, and the list of orders with what the service knows and the shop believes."""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from itertools import chain, takewhile
from typing import Any, Final, NamedTuple

from flask import Response

from payment_sandbox.forms import read
from payment_sandbox.judge import cents_at_risk
from payment_sandbox.judge.standing import is_behind, look_of, shop_statuses
from payment_sandbox.operations.by_hand import create_by_hand
from payment_sandbox.operations.find_orders import OrderFilter, find_orders
from payment_sandbox.operations.recipes import SAMPLE_CUSTOMER, SAMPLE_LINES, play, playable_recipes
from payment_sandbox.operations.redelivery import unsent_webhooks
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.orders.webhooks import DeliveryState
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.registry import FIRST_API_KEY, FIRST_PROJECT_ID
from payment_sandbox.ui.dashboard.frame import (
    FORM_FACTS,
    VIEW_FACTS,
    enter,
    show,
    url,
    valid_query,
)
from payment_sandbox.ui.dashboard.reviewing import CurrentReview, current_review
from payment_sandbox.ui.dashboard.snippets import command
from payment_sandbox.web.answers.order_tables import OrderForm
from payment_sandbox.web.answers.overview import order_rows
from payment_sandbox.web.browsers import redirect
from payment_sandbox.web.call import Call
from payment_sandbox.web.routes import stated

ORDER_FORM: Final = OrderForm()
ROWS_SHOWN: Final = 50
MISTAKES_SHOWN: Final = 5
ALL: Final = "all"
SHOWN: Final = {
    ALL: "All",
    "mistakes": "Mistakes",
    "behind": "Shop is behind",
    "unpaid": "Unpaid",
    "paid": "Paid",
    "ended": "Not paid",
}
"""The filters of the list, with their labels."""
ENDED: Final[tuple[str, ...]] = (ALL, "ended")
FILTERS_BY_STATUS: Final[Mapping[str, tuple[str, ...]]] = {
    OrderStatus.NEW: (ALL, "unpaid"),
    OrderStatus.PROCESSING: (ALL, "unpaid"),
    OrderStatus.COMPLETED: (ALL, "paid"),
}
TEST_ORDER: Final = {
    "currency": "EUR",
    "amount": 1295,
    "description": "Two pairs of wool socks",
    "order_lines": list(SAMPLE_LINES),
    "customer": {**SAMPLE_CUSTOMER, "locale": "en-GB", "email_address": "noor@shop.example"},
}


class ListQuery(NamedTuple):
    """The query of the list: a text, a filter, a kind of mistake, and the orders at its ends."""

    text: str = ""
    show: str = ""  # one of SHOWN
    mistake: str = ""  # the name of a group of findings
    before: str = ""  # the last order of the previous page
    top: str = ""  # the first order; newer ones are counted


class ListedOrders(NamedTuple):
    """The orders of the list and how many each filter shows."""

    counts: Mapping[str, int]
    rows: list[Order]
    newer: int
    """The number of orders above the first one that the page shows."""
    has_more: bool


@stated(**VIEW_FACTS)
def get_orders_view(call: Call, project_id: str) -> Response:
    """Show the mistakes and the orders, newest first."""
    project = enter(call, project_id)
    known = current_review(project)
    orders = project.epoch.store.order
    args, remark = valid_query(call.request.args, before=orders, top=orders, show=SHOWN.__contains__)
    query = ListQuery(**{name: args.get(name, "") for name in ListQuery._fields})
    listed = _list_orders(project, known, query)
    return show(
        call,
        "orders",
        project,
        "orders",
        listed=listed,
        rows=[
            project.masking.mask_record(
                {**row, "look": look_of(order), "problem": known.problems.get(order.id, "")}
            )
            for order, row in zip(listed.rows, order_rows(project, listed.rows), strict=True)
        ],
        query=query,
        remark=remark,
        filters={name: label for name, label in SHOWN.items() if listed.counts[name]},
        mistakes=known.mistakes,
        at_risk=cents_at_risk(each for group in known.mistakes for each in group.findings),
        affected={each.name: each.orders for each in known.mistakes[:MISTAKES_SHOWN]},
        recipes=playable_recipes(project.settings.mode),
        **_first_payment_values(project, listed),
    )


def _filters_by_order(project: Project, known: CurrentReview) -> dict[str, tuple[str, ...]]:
    read = shop_statuses(project.epoch)
    return {
        order.id: (
            *FILTERS_BY_STATUS.get(order.status, ENDED),
            *(("mistakes",) if order.id in known.problems else ()),
            *(("behind",) if is_behind(order, read.get(order.id)) else ()),
        )
        for order in project.epoch.store.orders_newest_first()
        if not order.is_refund
    }


def _list_orders(project: Project, known: CurrentReview, query: ListQuery) -> ListedOrders:
    """Count the orders by filter, and select those of the page."""
    filters = _filters_by_order(project, known)
    newer = frozenset(takewhile(query.top.__ne__, filters)) if query.top else frozenset[str]()
    listed = {order_id for order_id, names in filters.items() if (query.show or ALL) in names}
    for group in known.groups:
        if group.name == query.mistake:
            listed &= set(group.orders)
    criteria = OrderFilter(text=query.text, before=query.before or None)
    matching = [order for order in find_orders(project.epoch, criteria) if order.id in listed]
    rows = [order for order in matching if order.id not in newer]
    counts = Counter(chain.from_iterable(filters.values()))
    return ListedOrders(counts, rows[:ROWS_SHOWN], len(matching) - len(rows), len(rows) > ROWS_SHOWN)


def _first_payment_values(project: Project, listed: ListedOrders) -> dict[str, object]:
    """Return the introduction, which ends once the shop has answered the webhooks of the first payment."""
    paid = listed.counts["paid"]
    deliveries = project.epoch.store.deliveries()
    is_answered = any(delivery.outcome == DeliveryState.DELIVERED for delivery in deliveries)
    if paid > 1 or (paid and is_answered):
        return {"steps": []}
    return {
        "steps": [
            FirstStep("Create an order", bool(listed.counts[ALL])),
            FirstStep("Pay it on its page", bool(paid)),
            FirstStep("Answer its first webhook", is_answered),
        ],
        "unsent": len(unsent_webhooks(project.epoch)),
        "first_call": command(project, "/v1/orders/", FIRST_BODY),
        "key": FIRST_API_KEY if project.project_id == FIRST_PROJECT_ID else "",
    }


@stated(**VIEW_FACTS)
def get_mistakes_view(call: Call, project_id: str) -> Response:
    """Show the mistakes of the integration."""
    project = enter(call, project_id)
    known = current_review(project)
    return show(
        call,
        "mistakes",
        project,
        "mistakes",
        groups=known.groups,
        evidence_of=lambda finding: list(
            zip(finding.requests, finding.preceded_by + finding.shown_by, strict=False)
        ),
    )


@stated(**FORM_FACTS)
def post_test_order(call: Call, project_id: str) -> Response:
    """Create a test order."""
    project = enter(call, project_id)
    call.hold_webhooks()
    order = create_manual_order(project, TEST_ORDER)
    return redirect(url(project, f"orders/{order.id}/"))


@stated(**FORM_FACTS)
def post_order_in_a_state(call: Call, project_id: str) -> Response:
    """Create a test order in a chosen state."""
    project = enter(call, project_id)
    order = play(project, call.request.form.get("recipe", ""), partial(create_manual_order, project))
    return redirect(url(project, f"orders/{order.id}/"))


def create_manual_order(project: Project, body: Mapping[str, Any]) -> Order:
    """Create an order as a merchant would in the back office."""
    return create_by_hand(project, {**read(ORDER_FORM, body), "client": {}})


FIRST_BODY: Final = {"currency": "EUR", "amount": 1295, "description": "Socks"}


class FirstStep(NamedTuple):
    """A step of the introduction, and whether it is done."""

    label: str
    is_done: bool
