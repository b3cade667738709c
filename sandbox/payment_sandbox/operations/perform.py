"""What comes due, and whether it still means something when it does."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from payment_sandbox.methods import behaviour_of
from payment_sandbox.operations.act import act_on_attempt
from payment_sandbox.operations.authorizations import follow_ledger
from payment_sandbox.operations.steps import move_both, page_is_over
from payment_sandbox.orders.authorization import Authorization
from payment_sandbox.orders.commands import (
    AttemptDelivery,
    CaptureDelayed,
    Command,
    ExpireAttempt,
    ExpireAuthorization,
    ExpirePage,
    Perform,
)
from payment_sandbox.orders.deliveries import DeliveryState
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.statuses import TransactionStatus, Trigger
from payment_sandbox.orders.transaction import Transaction
from payment_sandbox.projects.edit import Edit
from payment_sandbox.projects.outbox import Errand
from payment_sandbox.projects.project import Project


def _attempt(project: Project, command: Any) -> Transaction | None:
    order = project.store.order(command.order_id)
    return order.transaction(command.transaction_id) if order is not None else None


def _open_authorization(project: Project, command: Any, at: datetime) -> Authorization | None:
    attempt = _attempt(project, command)
    authorization = attempt.authorization if attempt is not None else None
    if authorization is None or authorization.is_over or authorization.expires_at != at:
        return None
    return authorization if authorization.remaining_cents else None


def _page_expires(project: Project, command: ExpirePage, at: datetime) -> bool:
    order = project.store.order(command.order_id)
    if order is None or not order.is_open:
        return False
    attempt = order.last_transaction
    # Money may be on its way: then the order ends with that attempt, not with its page (A21).
    return attempt is None or attempt.status != TransactionStatus.PENDING


def _expire_page(project: Project, command: ExpirePage, at: datetime) -> None:
    with project.edit(at) as edit:
        order = edit.order(command.order_id)
        attempt = order.last_transaction
        if attempt is not None and attempt.is_open:
            edit.move_transaction(attempt, Trigger.EXPIRE)
        edit.move_order(order, Trigger.EXPIRE)


def _attempt_expires(project: Project, command: ExpireAttempt, at: datetime) -> bool:
    attempt = _attempt(project, command)
    return attempt is not None and attempt.is_open and attempt.expires_at == at


def _expire_attempt(project: Project, command: ExpireAttempt, at: datetime) -> None:
    with project.edit(at) as edit:
        order = edit.order(command.order_id)
        attempt = order.transaction(command.transaction_id)
        assert attempt is not None, "it applies"
        edit.move_transaction(attempt, Trigger.EXPIRE)
        if not order.is_hosted or (attempt is order.last_transaction and page_is_over(order, at)):
            edit.move_order(order, Trigger.EXPIRE)


def _authorized(edit: Edit, command: Any) -> tuple[Order, Transaction, Authorization]:
    order = edit.order(command.order_id)
    attempt = order.transaction(command.transaction_id)
    assert attempt is not None, "it applies"
    assert attempt.authorization is not None, "it applies"
    return order, attempt, attempt.authorization


def _authorization_expires(project: Project, command: ExpireAuthorization, at: datetime) -> bool:
    return _open_authorization(project, command, at) is not None


def _expire_authorization(project: Project, command: ExpireAuthorization, at: datetime) -> None:
    """Unused: expired; used in part: completed; never capturable again (SET-41, SET-42)."""
    with project.edit(at) as edit:
        order, attempt, authorization = _authorized(edit, command)
        attempt.authorization = authorization.ended()
        if not authorization.captured_cents:
            move_both(edit, order, attempt, Trigger.LAPSE)
        elif attempt.status == TransactionStatus.ACCEPTED:
            move_both(edit, order, attempt, Trigger.FINISH)


def _delayed_captures(project: Project, command: CaptureDelayed, at: datetime) -> bool:
    return _open_authorization(project, command, at) is not None


def _capture_delayed(project: Project, command: CaptureDelayed, at: datetime) -> None:
    with project.edit(at) as edit:
        order, attempt, authorization = _authorized(edit, command)
        attempt.authorization = authorization.capture_delayed(now=at)
        attempt.modified = at
        follow_ledger(edit, order, attempt)


def _acts(project: Project, command: Perform, at: datetime) -> bool:
    attempt = _attempt(project, command)
    if attempt is None:
        return False
    return command.action.name in behaviour_of(attempt).actions(attempt, project.terms(at))


def _act(project: Project, command: Perform, at: datetime) -> None:
    act_on_attempt(project, command.order_id, command.transaction_id, command.action, at)


def _delivers(project: Project, command: AttemptDelivery, at: datetime) -> bool:
    delivery = project.store.delivery(command.delivery_id)
    return (
        delivery is not None
        and delivery.state is DeliveryState.PENDING
        and delivery.next_number == command.number
    )


def _deliver(project: Project, command: AttemptDelivery, at: datetime) -> None:
    project.outbox.put(Errand(command.delivery_id))


def _attempt_is_over(project: Project, command: Any, at: datetime) -> bool:
    """An attempt that ended stays so; but money can still come in for one that expired."""
    attempt = _attempt(project, command)
    return attempt is None or not (attempt.is_open or attempt.status == TransactionStatus.EXPIRED)


def _page_is_over(project: Project, command: ExpirePage, at: datetime) -> bool:
    order = project.store.order(command.order_id)
    return order is None or not order.is_open


def _never_again(project: Project, command: Command, at: datetime) -> bool:
    """What does not apply now will not later, either."""
    return not TABLE[type(command)][0](project, command, at)


Applies = Callable[[Project, Any, datetime], bool]
Perform_ = Callable[[Project, Any, datetime], None]

TABLE: dict[type[Command], tuple[Applies, Perform_, Applies]] = {
    ExpirePage: (_page_expires, _expire_page, _page_is_over),
    ExpireAttempt: (_attempt_expires, _expire_attempt, _attempt_is_over),
    ExpireAuthorization: (_authorization_expires, _expire_authorization, _never_again),
    CaptureDelayed: (_delayed_captures, _capture_delayed, _never_again),
    Perform: (_acts, _act, _attempt_is_over),
    AttemptDelivery: (_delivers, _deliver, _never_again),
}
"""For each command: whether it applies at its time, what it does, and whether it never will apply again."""


class Performer:
    """Knows, for the clock, what every command means."""

    def applies(self, project: Project, command: Command, at: datetime) -> bool:
        """Whether it still has something to do."""
        return TABLE[type(command)][0](project, command, at)

    def is_over(self, project: Project, command: Command, at: datetime) -> bool:
        """Whether it can never have anything to do again."""
        return TABLE[type(command)][2](project, command, at)

    def perform(self, project: Project, command: Command, at: datetime) -> None:
        """Do it, at its own time."""
        TABLE[type(command)][1](project, command, at)


PERFORMER = Performer()
