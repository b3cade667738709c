"""What a merchant can do with an order now, for responses that explain a refusal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from payment_sandbox.methods import BY_NAME
from payment_sandbox.operations.cancel import why_not_cancellable
from payment_sandbox.operations.update import ALWAYS, is_sum_open
from payment_sandbox.orders.amounts import Cents
from payment_sandbox.orders.authorization import Style
from payment_sandbox.orders.lines import OrderLine
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refunds import refundable_cents, refundable_quantities
from payment_sandbox.orders.transaction import Transaction

KEYS: Final = ", ".join(ALWAYS)


def possible_now(order: Order) -> list[str]:
    """List what the merchant API would accept, with limits in cents."""
    found = list(_takes(order.last_transaction)) if order.last_transaction is not None else []
    found += _refunds(order)
    if why_not_cancellable(order) is None:
        found.append("cancel")
    found.append(f"update {KEYS}{', amount, order_lines' if is_sum_open(order) else ''}")
    return found


def _takes(attempt: Transaction) -> Iterator[str]:
    authorization = attempt.authorization
    if authorization is None or authorization.is_over or not authorization.remaining_cents:
        return
    left_cents = authorization.remaining_cents
    fits = _fits(authorization.lines, authorization.remaining_quantities(), left_cents)
    if attempt.is_capturable:
        style = authorization.capture_style
        yield f"capture in full ({left_cents})"
        if style in (None, Style.AMOUNT):
            yield f"capture by amount up to {left_cents}"
        if style in (None, Style.LINES) and fits:
            yield "capture by order lines"
    yield f"void by amount up to {left_cents}"
    if fits:
        yield "void by order lines"


def _refunds(order: Order) -> Iterator[str]:
    left_cents = refundable_cents(order)
    if left_cents <= 0 or order.is_refund or order.paying_transaction is None:
        return
    if not BY_NAME[order.paying_transaction.method].capabilities.refunds_by_lines:
        yield f"refund up to {left_cents}"
    elif _fits(order.order_lines, refundable_quantities(order), left_cents):
        yield "refund by order lines"


def _fits(lines: Sequence[OrderLine], left: Mapping[int, int], left_cents: Cents) -> bool:
    """Whether at least one item of a line can still be taken."""
    return any(
        quantity > 0 and 0 < lines[index].amount_cents <= left_cents for index, quantity in left.items()
    )
