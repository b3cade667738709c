"""What comes due: for each command whether it still applies, whether it is over for good, and what it does.

A command that comes due looks at the state again, so nothing ever has to be cancelled.
"""

from datetime import datetime
from typing import Any, Final, Protocol

from payment_sandbox.methods import behaviour_of
from payment_sandbox.operations.act import perform_on_attempt
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
from payment_sandbox.projects.epoch import Epoch


class Meaning(Protocol):
    """What one kind of command means."""

    def applies(self, epoch: Epoch, command: Any, at: datetime) -> bool:
        """Whether it has something to do at its time."""
        ...

    def is_over(self, epoch: Epoch, command: Any, at: datetime) -> bool:
        """Whether it can never have anything to do again."""
        ...

    def run(self, edit: Edit, command: Any) -> None:
        """Do it, at its own time."""
        ...


class PageExpiry:
    """The hosted payment page closes."""

    def applies(self, epoch: Epoch, command: ExpirePage, at: datetime) -> bool:
        """While the order is open; but money may be on its way, and then it ends with its attempt (A21)."""
        order = epoch.store.order(command.order_id)
        if order is None or not order.is_open:
            return False
        attempt = order.last_transaction
        return attempt is None or attempt.status != TransactionStatus.PENDING

    def is_over(self, epoch: Epoch, command: ExpirePage, at: datetime) -> bool:
        """An order that ended stays so."""
        order = epoch.store.order(command.order_id)
        return order is None or not order.is_open

    def run(self, edit: Edit, command: ExpirePage) -> None:
        """Expire the order, and the attempt under way with it."""
        order = edit.order(command.order_id)
        attempt = order.last_transaction
        if attempt is not None and attempt.is_open:
            edit.move_transaction(attempt, Trigger.EXPIRE)
        edit.move_order(order, Trigger.EXPIRE)


class AttemptExpiry:
    """The customer's time for an attempt is over."""

    def applies(self, epoch: Epoch, command: ExpireAttempt, at: datetime) -> bool:
        """While it is open, and its time was not set anew."""
        attempt = _attempt(epoch, command)
        return attempt is not None and attempt.is_open and attempt.expires_at == at

    def is_over(self, epoch: Epoch, command: ExpireAttempt, at: datetime) -> bool:
        """Once the attempt has ended."""
        return _has_ended(epoch, command)

    def run(self, edit: Edit, command: ExpireAttempt) -> None:
        """Expire the attempt; its order too, where the customer cannot try again."""
        order = edit.order(command.order_id)
        attempt = _attempt_of(order, command)
        edit.move_transaction(attempt, Trigger.EXPIRE)
        if not order.is_hosted or (attempt is order.last_transaction and page_is_over(order, edit.now)):
            edit.move_order(order, Trigger.EXPIRE)


class AuthorizationExpiry:
    """What was not captured by now never will be."""

    def applies(self, epoch: Epoch, command: ExpireAuthorization, at: datetime) -> bool:
        """While something is left of the authorization."""
        return _is_authorized(epoch, command, at)

    def is_over(self, epoch: Epoch, command: ExpireAuthorization, at: datetime) -> bool:
        """What is captured or voided in full stays so."""
        return not _is_authorized(epoch, command, at)

    def run(self, edit: Edit, command: ExpireAuthorization) -> None:
        """Unused: expired; used in part: completed; never capturable again (SET-41, SET-42)."""
        order = edit.order(command.order_id)
        attempt = _attempt_of(order, command)
        authorization = _authorization_of(attempt)
        attempt.authorization = authorization.ended()
        if not authorization.captured_cents:
            move_both(edit, order, attempt, Trigger.LAPSE)
        elif attempt.status == TransactionStatus.ACCEPTED:
            move_both(edit, order, attempt, Trigger.FINISH)


class DelayedCapture:
    """A delayed authorization captures what is left."""

    def applies(self, epoch: Epoch, command: CaptureDelayed, at: datetime) -> bool:
        """While something is left."""
        return _is_authorized(epoch, command, at)

    def is_over(self, epoch: Epoch, command: CaptureDelayed, at: datetime) -> bool:
        """Once nothing is left."""
        return not _is_authorized(epoch, command, at)

    def run(self, edit: Edit, command: CaptureDelayed) -> None:
        """Capture (CAP-05, CAP-07)."""
        order = edit.order(command.order_id)
        attempt = _attempt_of(order, command)
        attempt.authorization = _authorization_of(attempt).capture_delayed(now=edit.now)
        attempt.modified = edit.now
        follow_ledger(edit, order, attempt)


class PlannedAction:
    """A customer, bank, screening or processor acts by itself."""

    def applies(self, epoch: Epoch, command: Perform, at: datetime) -> bool:
        """Where the attempt's state allows it."""
        attempt = _attempt(epoch, command)
        if attempt is None:
            return False
        return command.action.name in behaviour_of(attempt).actions(attempt, epoch.terms(at))

    def is_over(self, epoch: Epoch, command: Perform, at: datetime) -> bool:
        """Once the attempt has ended."""
        return _has_ended(epoch, command)

    def run(self, edit: Edit, command: Perform) -> None:
        """Act as the scenario said."""
        perform_on_attempt(edit, command.order_id, command.transaction_id, command.action)


class DeliveryAttempt:
    """A webhook is tried again, or for the first time after a delay."""

    def applies(self, epoch: Epoch, command: AttemptDelivery, at: datetime) -> bool:
        """While the webhook is owed, and this attempt was not made by hand."""
        delivery = epoch.store.delivery(command.delivery_id)
        return (
            delivery is not None
            and delivery.state is DeliveryState.PENDING
            and delivery.next_number == command.number
        )

    def is_over(self, epoch: Epoch, command: AttemptDelivery, at: datetime) -> bool:
        """What is delivered, failed or tried already stays so."""
        return not self.applies(epoch, command, at)

    def run(self, edit: Edit, command: AttemptDelivery) -> None:
        """Send it."""
        edit.send(command.delivery_id)


MEANINGS: Final[dict[type[Command], Meaning]] = {
    ExpirePage: PageExpiry(),
    ExpireAttempt: AttemptExpiry(),
    ExpireAuthorization: AuthorizationExpiry(),
    CaptureDelayed: DelayedCapture(),
    Perform: PlannedAction(),
    AttemptDelivery: DeliveryAttempt(),
}


def meaning_of(command: Command) -> Meaning:
    """What a command means."""
    return MEANINGS[type(command)]


def _attempt(epoch: Epoch, command: Any) -> Transaction | None:
    order = epoch.store.order(command.order_id)
    return order.transaction(command.transaction_id) if order is not None else None


def _has_ended(epoch: Epoch, command: Any) -> bool:
    """An attempt that ended stays so; but money can still come in for one that expired."""
    attempt = _attempt(epoch, command)
    return attempt is None or not (attempt.is_open or attempt.status == TransactionStatus.EXPIRED)


def _is_authorized(epoch: Epoch, command: Any, at: datetime) -> bool:
    """Whether an authorization that ends at this time still has something left."""
    attempt = _attempt(epoch, command)
    authorization = attempt.authorization if attempt is not None else None
    if authorization is None or authorization.is_over or authorization.expires_at != at:
        return False
    return authorization.remaining_cents > 0


def _attempt_of(order: Order, command: Any) -> Transaction:
    attempt = order.transaction(command.transaction_id)
    assert attempt is not None, "the command applies"
    return attempt


def _authorization_of(attempt: Transaction) -> Authorization:
    assert attempt.authorization is not None, "the command applies"
    return attempt.authorization
