"""Reconstruct an order's statuses and amounts at an earlier moment of its history."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from payment_sandbox.operations.history import TimelineEntry, history, sort_key
from payment_sandbox.orders.authorization import Authorization
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.statuses import OrderStatus, TransactionStatus
from payment_sandbox.orders.transaction import Transaction
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.journal import ReachedStatus, number_of

CAPTURE_OR_VOID_PATHS: Final = ("/captures/", "/voids/")
CAPTURE_OR_VOID_LABELS: Final = ("captures by hand", "voids by hand", "delayed capture")
UNPAID_STATUSES: Final = (TransactionStatus.NEW, TransactionStatus.PROCESSING, TransactionStatus.PENDING)


def order_as_of(epoch: Epoch, order: Order, moment: TimelineEntry) -> Order:
    """Reconstruct the order right after this entry, as far back as the journal reaches.

    Only statuses, attempts, captures, voids and refunds are reconstructed; updates by the merchant, such as
    new order lines, remain.
    """
    known = list(_statuses_until(epoch, moment))
    own = [status for status in known if status.order_id == order.id]
    statuses = [OrderStatus.NEW.value, *(status.status for status in own if status.payment_method is None)]
    begun = {status.order_id for status in known}
    return replace(
        order,
        status=statuses[-1],
        transactions=_reconstruct_attempts(order, own, moment.at, _ledger_length(epoch, order, moment)),
        refunds=tuple(refund for refund in order.refunds if refund.refund_id in begun),
    )


def _statuses_until(epoch: Epoch, moment: TimelineEntry) -> Iterator[ReachedStatus]:
    for status in list(epoch.journal.statuses):
        if (status.real_at, number_of(status)) <= sort_key(moment):
            yield status


def _ledger_length(epoch: Epoch, order: Order, moment: TimelineEntry) -> int | None:
    """Count the ledger entries up to this moment; return None if history and ledger do not match."""
    timeline_entries = history(epoch, order.id)
    ledgers = [len(each.authorization.entries) for each in order.transactions if each.authorization]
    if [_count_entries(timeline_entries)] != list(filter(None, ledgers)):
        return None
    return _count_entries(
        [
            timeline_entry
            for timeline_entry in timeline_entries
            if sort_key(timeline_entry) <= sort_key(moment)
        ]
    )


def _count_entries(timeline_entries: Sequence[TimelineEntry]) -> int:
    """Count the captures and voids in a history."""
    done = {each.cause for each in timeline_entries if each.kind == "response" and not each.failed}
    return sum(
        timeline_entry.label in CAPTURE_OR_VOID_LABELS
        or (timeline_entry.id in done and any(part in timeline_entry.label for part in CAPTURE_OR_VOID_PATHS))
        for timeline_entry in timeline_entries
    )


def _reconstruct_attempts(
    order: Order, reached: Sequence[ReachedStatus], at: datetime, entry_count: int | None
) -> tuple[Transaction, ...]:
    """Reconstruct the attempts begun by then, with the statuses ``reached`` by then."""
    statuses = {status.transaction_id: status.status for status in reached if status.payment_method}
    return tuple(
        replace(
            attempt,
            status=statuses[attempt.id],
            credited_cents=0 if statuses[attempt.id] in UNPAID_STATUSES else attempt.credited_cents,
            authorization=_reconstruct_authorization(attempt, statuses[attempt.id], at, entry_count),
        )
        for attempt in order.transactions
        if attempt.id in statuses
    )


def _reconstruct_authorization(
    attempt: Transaction, status: str, at: datetime, entry_count: int | None
) -> Authorization | None:
    """Reconstruct the authorization with its first ``entry_count`` entries, or its entries up to ``at``."""
    authorization = attempt.authorization
    if authorization is None or status in UNPAID_STATUSES:
        return None
    entries = (
        [entry for entry in authorization.entries if entry.at <= at]
        if entry_count is None
        else authorization.entries[:entry_count]
    )
    return authorization._replace(
        entries=tuple(entries), is_over=authorization.is_over and authorization.expires_at <= at
    )
