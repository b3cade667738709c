"""The outcome of an order, for the result page."""

from typing import Final

from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.web.pages.payer_page import PayerPage

ENDINGS: Final = {
    OrderStatus.COMPLETED: "paid",
    OrderStatus.ACCEPTED: "paid",
    OrderStatus.CANCELLED: "cancelled",
    OrderStatus.EXPIRED: "expired",
    OrderStatus.ERROR: "failed",
}


def ending(page: PayerPage) -> str:
    """The prefix of the phrases for an outcome; ``open`` for an order that has not ended."""
    return ENDINGS.get(OrderStatus(page.order.status), "open")
