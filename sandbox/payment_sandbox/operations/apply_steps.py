"""Apply a payment method's steps to an order."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from payment_sandbox.kernel.times import Period
from payment_sandbox.methods.common import Credit, Move, OpenPage, Reveal, ScheduleAction, Step, StoreCard
from payment_sandbox.orders.authorization import Authorization
from payment_sandbox.orders.cards import Credential
from payment_sandbox.orders.commands import CaptureDelayed, ExpireAuthorization, PerformAction
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.statuses import Trigger, can_move
from payment_sandbox.orders.transaction import Transaction
from payment_sandbox.projects.edit import Edit

PAID_BY_ANOTHER: Final = "Another attempt has paid the order"
SUCCESS_TRIGGERS: Final = frozenset({Trigger.PAY, Trigger.AUTHORIZE, Trigger.ACCEPT})


def apply_steps(edit: Edit, order: Order, attempt: Transaction, steps: Sequence[Step]) -> None:
    """Apply the steps in order."""
    for step in steps:
        if isinstance(step, Move):
            _move(edit, order, attempt, step)
        elif isinstance(step, Reveal):
            attempt.details = {**attempt.details, **step.details} if step.details else attempt.details
            attempt.brand = step.brand or attempt.brand
        elif isinstance(step, ScheduleAction):
            edit.schedule(step.after.after(edit.now), PerformAction(order.id, attempt.id, step.action))
        elif isinstance(step, OpenPage):
            attempt.has_page = True
        elif isinstance(step, Credit):
            attempt.credited_cents += step.amount_cents
            if attempt.credited_cents >= attempt.amount_cents:
                edit.announce(order)
        elif isinstance(step, StoreCard):
            _store_card(edit, attempt, step)


def move_both(edit: Edit, order: Order, attempt: Transaction, trigger: Trigger) -> None:
    """Move an attempt, and its order if the order's transition table allows it."""
    edit.move_transaction(attempt, trigger)
    if can_move(order, trigger):
        edit.move_order(order, trigger)


def has_page_expired(order: Order, now: datetime) -> bool:
    """Whether the page of an open hosted order has expired, so that the customer cannot try again."""
    return order.expires_at is not None and order.expires_at <= now and can_move(order, Trigger.EXPIRE)


def _move(edit: Edit, order: Order, attempt: Transaction, step: Move) -> None:
    trigger = step.trigger
    if trigger is Trigger.AUTHORIZE and edit.settings.authorized_status == "accepted":
        trigger = Trigger.ACCEPT
    edit.move_transaction(attempt, trigger)
    if step.reason or trigger is Trigger.PAY:
        attempt.reason = step.reason
    if step.customer_message:
        attempt.customer_message = step.customer_message
    _move_order(edit, order, attempt, step._replace(trigger=trigger))
    if trigger in (Trigger.AUTHORIZE, Trigger.ACCEPT):
        _authorize(edit, order, attempt)
    if trigger in SUCCESS_TRIGGERS:
        _end_other_attempts(edit, order, attempt)


def _move_order(edit: Edit, order: Order, attempt: Transaction, step: Move) -> None:
    """Move the order along with its attempt.

    A hosted order waits for a success, because the customer can choose another method after a failure.
    """
    if can_move(order, step.trigger) and (step.trigger in SUCCESS_TRIGGERS or not order.is_hosted):
        edit.move_order(order, step.trigger)
        if step.trigger is Trigger.FAIL:
            order.reason = step.customer_message or (step.reason if order.is_refund else None)
    elif order.is_hosted and not attempt.is_open and has_page_expired(order, edit.now):
        edit.move_order(order, Trigger.EXPIRE)


def _end_other_attempts(edit: Edit, order: Order, paid: Transaction) -> None:
    """Cancel the other attempts and void their remaining authorizations: an order is paid once (A45).

    Other attempts are open only if a late bank transfer pays the order.
    """
    for other in order.transactions:
        if other is paid:
            continue
        if other.is_open:
            edit.move_transaction(other, Trigger.CANCEL)
            other.reason = PAID_BY_ANOTHER
        elif other.authorization is not None and not other.authorization.is_over:
            _void_rest(edit, other, other.authorization)


def _void_rest(edit: Edit, attempt: Transaction, authorization: Authorization) -> None:
    if not authorization.remaining_cents:
        return
    attempt.authorization = authorization.void_remainder(now=edit.now)
    attempt.modified = edit.now
    attempt.reason = PAID_BY_ANOTHER
    if not authorization.captured_cents:
        edit.move_transaction(attempt, Trigger.CANCEL)
    elif can_move(attempt, Trigger.FINISH):
        edit.move_transaction(attempt, Trigger.FINISH)


def _authorize(edit: Edit, order: Order, attempt: Transaction) -> None:
    """Reserve the amount; its expiration period restarts now (CAP-03, CAP-05)."""
    expires_at = Period.parse(attempt.expiration_period).after(edit.now)
    delayed = attempt.capture_mode == "delayed"
    attempt.authorization = Authorization(
        attempt.amount_cents, order.order_lines, delayed, edit.now, expires_at
    )
    attempt.expires_at = expires_at
    command = CaptureDelayed if delayed else ExpireAuthorization
    edit.schedule(expires_at, command(order.id, attempt.id))


def _store_card(edit: Edit, attempt: Transaction, step: StoreCard) -> None:
    token = edit.ids.token("vault")
    edit.store_credential(
        Credential(token, step.use, attempt.id, attempt.amount_cents, edit.now, step.brand, dict(step.card))
    )
    attempt.details = {**attempt.details, "vault_token": token}
