"""What a merchant can do with an order now; for the answer that explains a refusal."""

from collections.abc import Iterator
from typing import Final

from sandbox.operations.cancel import why_not_cancellable
from sandbox.operations.update import ALWAYS, is_sum_open
from sandbox.orders.order import Order
from sandbox.orders.refunds import refundable_cents
from sandbox.orders.transaction import Transaction

KEYS: Final = ", ".join(ALWAYS)


def possible_now(order: Order) -> list[str]:
    """Each thing that the merchant API would not refuse, with its bounds in cents."""
    found = list(_takes(order.last_transaction)) if order.last_transaction is not None else []
    left_cents = refundable_cents(order)
    if left_cents > 0 and not order.is_refund:
        found.append(f"refund up to {left_cents}")
    if why_not_cancellable(order) is None:
        found.append("cancel")
    found.append(f"update {KEYS}{', amount, order_lines' if is_sum_open(order) else ''}")
    return found


def _takes(attempt: Transaction) -> Iterator[str]:
    authorization = attempt.authorization
    if authorization is None or authorization.is_over or not authorization.remaining_cents:
        return
    left = f"up to {authorization.remaining_cents}"
    if attempt.is_capturable:
        style = authorization.capture_style
        yield f"capture {left}{f' {style}' if style is not None else ''}"
    yield f"void {left}"
