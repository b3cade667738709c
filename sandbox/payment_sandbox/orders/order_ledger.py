"""The money of an order, as its attempts and refunds state it."""

from typing import NamedTuple

from payment_sandbox.orders.amounts import Cents
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refunds import refundable_cents


class OrderLedger(NamedTuple):
    """The money of an order, in cents."""

    authorized: Cents
    received: Cents
    refunded: Cents  # without failed refunds
    voided: Cents
    reserved: Cents  # authorized, and neither captured, voided nor expired
    lapsed: Cents  # authorized and expired


def ledger_of(order: Order) -> OrderLedger:
    """Return the money of an order; only its newest attempt can hold a reservation."""
    received, attempt = order.received_cents, order.last_transaction
    refunded = received - refundable_cents(order)
    held = attempt.authorization if attempt is not None else None
    if held is None:
        return OrderLedger(0, received, refunded, 0, 0, 0)
    lapsed = held.remaining_cents if held.is_over else 0
    reserved = held.remaining_cents - lapsed
    return OrderLedger(held.original_cents, received, refunded, held.voided_cents, reserved, lapsed)
