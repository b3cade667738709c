"""Cancelling an order, as long as no money moved."""

from sandbox.operations.steps import move_both
from sandbox.orders.order import Order
from sandbox.orders.refusals import OrderNotCancellable
from sandbox.orders.statuses import OrderStatus, Trigger, can_move
from sandbox.projects.edit import Edit
from sandbox.projects.project import IfMatch, Project


def cancel(project: Project, order_id: str, if_match: IfMatch | None) -> Order:
    """Cancel an order; an authorization without captures is voided in full (SET-50).

    Raises:
        OrderNotCancellable: money moved, or the order is over.
    """
    with project.edit() as edit:
        project.require_match(order_id, if_match)
        order = edit.order(order_id)
        _refuse_moved_money(order)
        attempt = order.last_transaction
        if order.status in (OrderStatus.NEW, OrderStatus.PROCESSING):
            _cancel_open(edit, order)
        elif attempt is not None and attempt.authorization is not None and not attempt.authorization.is_over:
            attempt.authorization = attempt.authorization.void_rest(now=edit.now)
            move_both(edit, order, attempt, Trigger.CANCEL)
        else:
            raise OrderNotCancellable(f"order {order_id} is {order.status}: there is nothing to cancel")
    return order


def _refuse_moved_money(order: Order) -> None:
    if order.is_refund:
        raise OrderNotCancellable(f"{order.id} is a refund, and refunds cannot be cancelled")
    credited_cents = sum(attempt.credited_cents for attempt in order.transactions)
    if order.captured_cents or credited_cents:
        raise OrderNotCancellable(
            f"order {order.id} is {order.status} and {order.captured_cents or credited_cents} cents of it "
            "have moved: refund them instead"
        )


def _cancel_open(edit: Edit, order: Order) -> None:
    attempt = order.last_transaction
    if attempt is not None and can_move(attempt, Trigger.CANCEL):
        edit.move_transaction(attempt, Trigger.CANCEL)
        attempt.reason = "Cancelled by the merchant"
    edit.move_order(order, Trigger.CANCEL)
