"""Captures and voids: in full, by amount or by lines."""

from collections.abc import Callable, Mapping
from datetime import datetime

from payment_sandbox.operations.apply_steps import move_both
from payment_sandbox.orders.amounts import Cents
from payment_sandbox.orders.authorization import Authorization
from payment_sandbox.orders.lines import LineQuantity
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refunds import refunded_quantities
from payment_sandbox.orders.refusals import AuthorizationExpired, AuthorizationMissing, Unknown
from payment_sandbox.orders.statuses import TransactionStatus, Trigger
from payment_sandbox.orders.transaction import Transaction
from payment_sandbox.projects.edit import Edit
from payment_sandbox.projects.epoch import IfMatch
from payment_sandbox.projects.project import Project

LedgerStep = Callable[[Authorization, datetime, Mapping[int, int]], Authorization]
"""Adds an entry to an authorization, given the time and the refunded quantities of the order's lines."""


def apply_to_ledger(
    project: Project, order_id: str, transaction_id: str, step: LedgerStep, if_match: IfMatch | None
) -> tuple[Order, Transaction]:
    """Add an entry to a transaction's ledger and update the statuses.

    Raises:
        Unknown: the order or transaction does not exist.
        OrderChanged: ``If-Match`` does not match.
        AuthorizationMissing, AuthorizationExpired, AuthorizationDelayed, CaptureStyleMixed,
        CaptureExceedsRemainder, VoidExceedsRemainder, Invalid: the ledger refuses the entry.
    """
    with project.edit() as edit:
        order = edit.order_if_match(order_id, if_match)
        transaction = order.transaction(transaction_id)
        if transaction is None:
            raise Unknown(f"order {order_id} has no transaction {transaction_id!r}")
        authorization = _require_authorization(order, transaction)
        transaction.authorization = step(authorization, edit.now, refunded_quantities(order))
        transaction.modified = edit.now
        follow_ledger(edit, order, transaction)
    return order, transaction


def capture_remainder() -> LedgerStep:
    """Capture the remainder (END-11)."""
    return lambda authorization, now, _: authorization.capture_remainder(now=now)


def capture_amount(amount_cents: Cents, description: str | None) -> LedgerStep:
    """Capture an amount (END-14)."""
    return lambda authorization, now, _: authorization.capture_amount(amount_cents, description, now=now)


def capture_lines(requested: list[LineQuantity], description: str | None) -> LedgerStep:
    """Capture lines (END-13)."""
    return lambda authorization, now, _: authorization.capture_lines(requested, description, now=now)


def void_amount(amount_cents: Cents, description: str | None) -> LedgerStep:
    """Void an amount (END-16)."""
    return lambda authorization, now, _: authorization.void_amount(amount_cents, description, now=now)


def void_lines(requested: list[LineQuantity], description: str | None) -> LedgerStep:
    """Void lines (END-15)."""
    return lambda authorization, now, refunded: authorization.void_lines(
        requested, refunded, description, now=now
    )


def follow_ledger(edit: Edit, order: Order, transaction: Transaction) -> None:
    """If nothing remains, complete the order; cancel it if nothing was captured (SET-39, SET-40, SET-43)."""
    authorization = transaction.authorization
    if authorization is None or authorization.remaining_cents:
        return
    if not authorization.captured_cents:
        move_both(edit, order, transaction, Trigger.CANCEL)
    elif transaction.status == TransactionStatus.ACCEPTED:
        move_both(edit, order, transaction, Trigger.FINISH)


def _require_authorization(order: Order, transaction: Transaction) -> Authorization:
    if transaction.authorization is not None:
        return transaction.authorization
    state = f"transaction {transaction.id} is {transaction.status}"
    if transaction.status == TransactionStatus.EXPIRED:
        raise AuthorizationExpired(f"{state}: the customer did not authorize it in time")
    if transaction.capture_mode is None:
        raise AuthorizationMissing(f"{state} and was created without capture_mode: it is paid at once")
    raise AuthorizationMissing(f"{state}: the customer has not authorized an amount to capture or void")
