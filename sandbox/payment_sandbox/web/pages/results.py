"""The outcome of an order, for the result page."""

from typing import Final

from payment_sandbox.methods import BY_NAME
from payment_sandbox.orders.refunds import refundable_cents
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.web.pages.payer_page import PayerPage

ENDINGS: Final = {
    OrderStatus.COMPLETED: "paid",
    OrderStatus.ACCEPTED: "authorized",
    OrderStatus.CANCELLED: "cancelled",
    OrderStatus.EXPIRED: "expired",
    OrderStatus.ERROR: "failed",
}
ICONS: Final = {"paid": "paid", "authorized": "paid", "invoice": "paid", "refunded": "paid", "open": "open"}
INVOICE: Final = "invoice"  # the kind of page


def ending(page: PayerPage) -> str:
    """The prefix of the phrases for an outcome; ``open`` for an order that has not ended."""
    order = page.order
    found = ENDINGS.get(OrderStatus(order.status), "open")
    if found not in ("paid", "authorized"):
        return found
    if order.refunds and refundable_cents(order) <= 0:
        return "refunded"
    newest = order.last_transaction
    if newest is not None and BY_NAME[newest.method].capabilities.page == INVOICE:
        return "invoice"
    return "authorized" if newest is not None and newest.is_capturable else found


def icon(how: str) -> str:
    """The icon of an outcome."""
    return ICONS.get(how, "failed")


def reason(page: PayerPage) -> str | None:
    """Why the order was not paid, as far as anybody said."""
    newest = page.order.last_transaction
    if newest is not None and newest.reason is not None:
        return newest.reason
    return page.order.reason
