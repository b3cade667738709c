"""Handlers of scheduled commands: when a command applies, when it is obsolete, and what it does.

A handler checks the current state, so commands are never unscheduled.
"""

from datetime import datetime
from typing import Any, Final

from payment_sandbox.methods import behaviour_of
from payment_sandbox.operations.act import perform_on_attempt
from payment_sandbox.operations.apply_steps import has_page_expired, move_both
from payment_sandbox.operations.authorizations import follow_ledger
from payment_sandbox.orders.authorization import Authorization
from payment_sandbox.orders.commands import (
    AttemptDelivery,
    CaptureDelayed,
    Command,
    ExpireAttempt,
    ExpireAuthorization,
    ExpirePage,
    PerformAction,
    Resend,
)
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.statuses import TransactionStatus, Trigger
from payment_sandbox.orders.transaction import Transaction
from payment_sandbox.orders.webhooks import DeliveryState
from payment_sandbox.projects.edit import Edit
from payment_sandbox.projects.epoch import Epoch


class CommandHandler:
    """The behaviour of one kind of command."""

    def applies(self, epoch: Epoch, command: Any, at: datetime) -> bool:
        """Whether the command would have an effect now."""
        raise NotImplementedError

    def is_over(self, epoch: Epoch, command: Any, at: datetime) -> bool:
        """Whether the command is obsolete, because it can no longer have an effect."""
        return not self.applies(epoch, command, at)

    def run(self, edit: Edit, command: Any) -> None:
        """Run the command."""
        raise NotImplementedError


class PageExpiry(CommandHandler):
    """The expiry of a hosted payment page."""

    def applies(self, epoch: Epoch, command: ExpirePage, at: datetime) -> bool:
        """Whether the order is open and no money is in transit; a pending attempt ends its order (A21)."""
        order = epoch.store.order(command.order_id)
        if order is None or not order.is_open:
            return False
        attempt = order.last_transaction
        return attempt is None or attempt.status != TransactionStatus.PENDING

    def is_over(self, epoch: Epoch, command: ExpirePage, at: datetime) -> bool:
        """Whether the order has ended."""
        order = epoch.store.order(command.order_id)
        return order is None or not order.is_open

    def run(self, edit: Edit, command: ExpirePage) -> None:
        """Expire the order and its open attempt."""
        order = edit.order(command.order_id)
        attempt = order.last_transaction
        if attempt is not None and attempt.is_open:
            edit.move_transaction(attempt, Trigger.EXPIRE)
        edit.move_order(order, Trigger.EXPIRE)


class AttemptExpiry(CommandHandler):
    """The expiry of an attempt."""

    def applies(self, epoch: Epoch, command: ExpireAttempt, at: datetime) -> bool:
        """Whether the attempt is open and its expiry has not changed."""
        attempt = _attempt(epoch, command)
        return attempt is not None and attempt.is_open and attempt.expires_at == at

    def is_over(self, epoch: Epoch, command: ExpireAttempt, at: datetime) -> bool:
        """Whether the order has ended; until then, a cancelled transfer can be chosen again (A22)."""
        order = epoch.store.order(command.order_id)
        return order is None or not order.is_open

    def run(self, edit: Edit, command: ExpireAttempt) -> None:
        """Expire the attempt, the only open one, and its order if the customer cannot try again."""
        order = edit.order(command.order_id)
        attempt = _attempt_of(order, command)
        edit.move_transaction(attempt, Trigger.EXPIRE)
        if not order.is_hosted or has_page_expired(order, edit.now):
            edit.move_order(order, Trigger.EXPIRE)


class AuthorizationEnd(CommandHandler):
    """The end of an authorization's period."""

    def applies(self, epoch: Epoch, command: Any, at: datetime) -> bool:
        """Whether the authorization expires at this time with money still reserved."""
        attempt = _attempt(epoch, command)
        authorization = attempt.authorization if attempt is not None else None
        if authorization is None or authorization.is_over or authorization.expires_at != at:
            return False
        return authorization.remaining_cents > 0


class AuthorizationExpiry(AuthorizationEnd):
    """The expiry of an authorization: its remainder can never be captured."""

    def run(self, edit: Edit, command: ExpireAuthorization) -> None:
        """Expire an unused authorization; complete a partly used authorization (SET-41, SET-42)."""
        order = edit.order(command.order_id)
        attempt = _attempt_of(order, command)
        authorization = _authorization_of(attempt)
        attempt.authorization = authorization.close()
        if not authorization.captured_cents:
            move_both(edit, order, attempt, Trigger.LAPSE)
        elif attempt.status == TransactionStatus.ACCEPTED:
            move_both(edit, order, attempt, Trigger.FINISH)


class DelayedCapture(AuthorizationEnd):
    """The capture of a delayed authorization's remainder."""

    def run(self, edit: Edit, command: CaptureDelayed) -> None:
        """Capture the remainder (CAP-05, CAP-07)."""
        order = edit.order(command.order_id)
        attempt = _attempt_of(order, command)
        attempt.authorization = _authorization_of(attempt).capture_delayed(now=edit.now)
        attempt.modified = edit.now
        follow_ledger(edit, order, attempt)


class PlannedAction(CommandHandler):
    """A planned action by a customer, bank, screening or processor."""

    def applies(self, epoch: Epoch, command: PerformAction, at: datetime) -> bool:
        """Whether the attempt's state allows the action."""
        attempt = _attempt(epoch, command)
        if attempt is None or (command.action.pays_rest and attempt.credited_cents >= attempt.amount_cents):
            return False
        return command.action.name in behaviour_of(attempt).actions(attempt, epoch.terms(at))

    def is_over(self, epoch: Epoch, command: PerformAction, at: datetime) -> bool:
        """Whether the order has ended, and its state does not allow the action."""
        order = epoch.store.order(command.order_id)
        return order is None or not (order.is_open or self.applies(epoch, command, at))

    def run(self, edit: Edit, command: PerformAction) -> None:
        """Perform the action planned by the scenario."""
        perform_on_attempt(edit, command.order_id, command.transaction_id, command.action)


class DeliveryAttempt(CommandHandler):
    """A retry of a webhook, or a delayed first attempt."""

    def applies(self, epoch: Epoch, command: AttemptDelivery, at: datetime) -> bool:
        """Whether the webhook is pending, and no manual attempt has replaced this attempt."""
        delivery = epoch.store.delivery(command.delivery_id)
        return (
            delivery is not None
            and delivery.state is DeliveryState.PENDING
            and delivery.next_number == command.number
        )

    def run(self, edit: Edit, command: AttemptDelivery) -> None:
        """Send the webhook; one deferred by a ``swap`` waits no longer."""
        if command.delivery_id in edit.state.swapped:
            edit.state = edit.state._replace(swapped=())
        edit.send(command.delivery_id)


class ResentDelivery(CommandHandler):
    """A scheduled resend of a webhook."""

    def applies(self, epoch: Epoch, command: Resend, at: datetime) -> bool:
        """Whether the webhook still exists."""
        return epoch.store.delivery(command.delivery_id) is not None

    def run(self, edit: Edit, command: Resend) -> None:
        """Send the webhook."""
        edit.send(command.delivery_id, forced=True, url=command.url, body=command.body)


HANDLERS: Final[dict[type[Command], CommandHandler]] = {
    ExpirePage: PageExpiry(),
    ExpireAttempt: AttemptExpiry(),
    ExpireAuthorization: AuthorizationExpiry(),
    CaptureDelayed: DelayedCapture(),
    PerformAction: PlannedAction(),
    AttemptDelivery: DeliveryAttempt(),
    Resend: ResentDelivery(),
}


def handler_of(command: Command) -> CommandHandler:
    """Return the handler of a command."""
    return HANDLERS[type(command)]


def _attempt(epoch: Epoch, command: Any) -> Transaction | None:
    order = epoch.store.order(command.order_id)
    return order.transaction(command.transaction_id) if order is not None else None


def _attempt_of(order: Order, command: Any) -> Transaction:
    attempt = order.transaction(command.transaction_id)
    assert attempt is not None, "the command applies"
    return attempt


def _authorization_of(attempt: Transaction) -> Authorization:
    assert attempt.authorization is not None, "the command applies"
    return attempt.authorization
