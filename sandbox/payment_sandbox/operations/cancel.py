"""Cancellation of orders before any money has moved."""

from payment_sandbox.operations.apply_steps import move_both
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import OrderNotCancellable
from payment_sandbox.orders.statuses import Trigger, can_move
from payment_sandbox.projects.edit import Edit
from payment_sandbox.projects.epoch import IfMatch
from payment_sandbox.projects.project import Project


def cancel(project: Project, order_id: str, if_match: IfMatch | None) -> Order:
    """Cancel an order; an authorization without captures is voided in full (SET-50).

    Raises:
        OrderNotCancellable: money has moved, or the order has ended.
    """
    with project.edit() as edit:
        order = edit.order_if_match(order_id, if_match)
        reason = uncancellable_reason(order)
        if reason is not None:
            raise OrderNotCancellable(reason)
        if order.is_open:
            _cancel_open(edit, order)
        else:
            _void(edit, order)
    return order


def uncancellable_reason(order: Order) -> str | None:
    """Return the reason to refuse a cancellation; None if the order is cancellable."""
    if order.is_refund:
        return f"{order.id} is a refund, and refunds cannot be cancelled"
    if order.paid_cents:
        return (
            f"order {order.id} is {order.status} and {order.received_cents} cents have moved: refund them "
            "instead"
        )
    attempt = order.last_transaction
    authorization = attempt.authorization if attempt is not None else None
    is_held = authorization is not None and not authorization.is_over and authorization.remaining_cents
    if order.is_open or is_held:
        return None
    return f"order {order.id} is {order.status}: there is nothing to cancel"


def _void(edit: Edit, order: Order) -> None:
    attempt = order.last_transaction
    assert attempt is not None, "the order must be cancellable"
    assert attempt.authorization is not None, "the order must be cancellable"
    attempt.authorization = attempt.authorization.void_remainder(now=edit.now)
    move_both(edit, order, attempt, Trigger.CANCEL)


def _cancel_open(edit: Edit, order: Order) -> None:
    attempt = order.last_transaction
    if attempt is not None and can_move(attempt, Trigger.CANCEL):
        edit.move_transaction(attempt, Trigger.CANCEL)
        attempt.reason = "Cancelled by the merchant"
    edit.move_order(order, Trigger.CANCEL)
