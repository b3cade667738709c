"""The shapes of orders as the control API shows them."""

from typing import Any, TypedDict

from payment_sandbox.client.answers import Decision, Due, Order, Webhook


class WebhookCounts(TypedDict):
    """How the webhooks of an order stand."""

    pending: int
    delivered: int
    failed: int
    attempts: int


class OrderRow(TypedDict):
    """The few facts of an order in a list."""

    id: str
    merchant_order_id: str | None
    description: str | None
    status: str
    amount: int
    currency: str
    payment_method: str | None
    customer: str | None
    created: str
    modified: str
    flags: list[str]
    webhooks: WebhookCounts


class OrderOverview(TypedDict):
    """Everything about one order; ``actions`` are those that are possible now, by actor."""

    order: Order
    actions: dict[str, Any]
    decisions: list[Decision]
    agenda: list[Due]
    webhooks: list[Webhook]
    refunds: list[OrderRow]
    pages: list[str]
