"""Hypothesis strategies for random sequences of operations."""

from typing import Any

from hypothesis import strategies as st

from payment_sandbox.operations import authorizations
from payment_sandbox.orders.actions import ACTIONS, Action
from payment_sandbox.orders.lines import LineQuantity
from payment_sandbox.orders.order import Order
from payment_sandbox.projects.project import Project

MODES = st.sampled_from(["manual", "manual", "delayed"])
LINES = [
    {"amount": 500, "quantity": 3, "currency": "EUR", "type": "physical", "merchant_order_line_id": "a"},
    {"amount": 250, "quantity": 2, "currency": "EUR", "type": "physical", "merchant_order_line_id": "b"},
]
AMOUNTS = st.integers(1, 2100)
QUANTITIES = st.lists(
    st.builds(LineQuantity, st.sampled_from(["a", "b", "a", "b", "c"]), st.integers(1, 4)),
    min_size=1,
    max_size=3,
)
ACTS = [Action(actor, name) for actor, names in ACTIONS.items() for name in names]
TAKES = st.one_of(
    st.just(authorizations.capture_remainder()),
    st.builds(lambda amount: authorizations.capture_amount(amount, None), AMOUNTS),
    st.builds(lambda lines: authorizations.capture_lines(lines, None), QUANTITIES),
    st.builds(lambda amount: authorizations.void_amount(amount, None), AMOUNTS),
    st.builds(lambda lines: authorizations.void_lines(lines, None), QUANTITIES),
)


def snapshot(project: Project) -> Any:
    """Return the state that a refused call must not change."""
    return (
        {order.id: (order, order.version) for order in orders_of(project)},
        [(due.at, due.sequence) for due in project.epoch.timeline],
        [(delivery.id, len(delivery.attempts)) for delivery in project.epoch.store.deliveries()],
        project.epoch.state,
        project.epoch.timeline.now,
    )


def orders_of(project: Project) -> list[Order]:
    """Return all orders and refunds."""
    return [project.find_order(order_id) for order_id in project.epoch.store.order_ids()]
