"""Compares a run with the unchanged run: repeated charges and shipments, and goods that never ship."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from payment_sandbox.orders.amounts import euros
from payment_sandbox.orders.cards import RECURRING
from payment_sandbox.projects.project import Project
from payment_sandbox.scenarios.effects import Fault, WebhookEffect
from payment_sandbox.scenarios.variation import ShopCall, Step, Trait
from payment_sandbox.scenarios.variation_catalogue import LOST_RESPONSE, UNPAID_STATUSES
from payment_sandbox.testing.books import BookEntry
from pytest_payment_sandbox.rehearsal.changes import (
    CAPTURES_SEGMENT,
    REFUNDS_SEGMENT,
    ChangedStep,
    order_id_of,
)
from pytest_payment_sandbox.rehearsal.reconciliation import BookProblem, order_records, purchase_of

MOVE_KINDS: Final = ("charged-again", "refunded-again", "shipped-again")
MOVE_PHRASES: Final = ("was charged", "was refunded", "worth of goods was shipped")
CLIENT_ERRORS: Final = range(400, 500)


class Moved(NamedTuple):
    """The total received, refunded and shipped amounts, in cents, and the orders that were paid."""

    received: int = 0
    refunded: int = 0
    shipped: int = 0
    ordered: int = 0  # the total of the paid orders' amounts
    orders: int = 0


NOTHING_MOVED: Final = Moved()


def sum_moved_amounts(project: Project, entries: Iterable[BookEntry]) -> Moved:
    """Return the total received, refunded and shipped amounts."""
    paid = [record for record in order_records(project).values() if record.received or record.authorized]
    return Moved(
        sum(record.received for record in paid),
        sum(record.refunded for record in paid),
        sum(entry.shipped for entry in entries),
        sum(record.amount for record in paid),
        len(paid),
    )


def find_repeated_moves(moved: Moved, before: Moved) -> Iterator[BookProblem]:
    """Find money or goods that moved twice because a form or a job was repeated.

    No more paid orders for a larger amount mean a larger basket: "Add to cart" was submitted twice.
    """
    if moved.ordered > before.ordered and moved.orders <= before.orders:
        return
    for kind, subject, now, baseline_amount in zip(MOVE_KINDS, MOVE_PHRASES, moved, before, strict=False):
        if now > baseline_amount:
            yield BookProblem(kind, f"{euros(now)} {subject} instead of {euros(baseline_amount)}")


def find_extra_refunds(
    moved: Moved, before: Moved, changes: Sequence[ChangedStep], steps: Iterable[Step]
) -> Iterator[BookProblem]:
    """Find refunds that the shop has repeated after a lost response to a refund, for the same payments."""
    lost = {each.step for each in changes if each.change.effect == LOST_RESPONSE}
    is_lost = any(each.name in lost and _is_refund(each) for each in steps)
    is_extra = 0 < before.refunded < moved.refunded and moved.received <= before.received
    if (
        is_lost
        and is_extra
        and all(isinstance(each.change.effect, Fault | WebhookEffect) for each in changes)
    ):
        yield BookProblem(
            "refunded-again", f"{euros(moved.refunded)} was refunded instead of {euros(before.refunded)}"
        )


def _is_refund(step: Step) -> bool:
    return isinstance(step.about, ShopCall) and REFUNDS_SEGMENT in step.about.path


class RecurringCharges(NamedTuple):
    """The numbers of recurring charges to stored cards: all attempts, and those that have not failed."""

    attempted: int = 0
    charged: int = 0


def count_recurring_charges(project: Project) -> RecurringCharges:
    """Count the recurring charges to stored cards."""
    charges = [
        order
        for order in project.epoch.store.orders_newest_first()
        if (attempt := order.last_transaction) is not None
        and attempt.asked.get("recurring_type") == RECURRING
    ]
    return RecurringCharges(len(charges), sum(order.status not in UNPAID_STATUSES for order in charges))


def find_extra_charges(
    charges: RecurringCharges, before: RecurringCharges, changes: Sequence[ChangedStep]
) -> Iterator[BookProblem]:
    """Find recurring charges, made before the test ended, that the unchanged run lacks.

    A charge that fails later counts as an attempt only: the changed test may end before the failure.
    """
    is_extra = charges.attempted > before.attempted and charges.charged > before.charged
    if is_extra and not any(map(_is_reason_to_charge, changes)):
        noun = "charge" if charges.charged == 1 else "charges"
        yield BookProblem(
            "charged-again",
            f"the shop made {charges.charged} {noun} to stored cards instead of {before.charged}",
        )


def find_extra_money(moved: Moved, before: Moved, changes: Sequence[ChangedStep]) -> Iterator[BookProblem]:
    """Find payments that exceed the payments of the unchanged run, and are not refunded."""
    is_extra = moved.received > before.received > 0
    surplus = moved.received - moved.refunded - (before.received - before.refunded)
    if is_extra and surplus > 0 and not any(map(_is_reason_to_charge, changes)):
        yield BookProblem(
            "charged-again", f"{euros(moved.received)} was charged instead of {euros(before.received)}"
        )


def _is_reason_to_charge(changed: ChangedStep) -> bool:
    """Whether a change may be a reason to charge customers more often.

    Lost, late and failed calls and webhooks and slow or failed charges are none, nor is any change after
    which the test must end with the same result.
    """
    change = changed.change
    is_same = bool(change.traits & (Trait.AT_ONCE | Trait.AT_REST))
    return not is_same and not isinstance(change.effect, Fault | WebhookEffect | Mapping)


def find_unshipped_captures(entries: Iterable[BookEntry], project: Project) -> Iterator[BookProblem]:
    """Find captures whose goods never shipped after a repeated capture was refused.

    The response to the first capture was lost. A shop that mistakes the refusal for a failure never ships.
    """
    records, refused = order_records(project), _orders_with_refused_repetition(project)
    for entry in entries:
        purchase = purchase_of(entry, records)
        if purchase.net_received > entry.shipped and refused.intersection(entry.orders):
            goods = f"only goods worth {euros(entry.shipped)} were" if entry.shipped else "nothing was"
            yield BookProblem(
                "captured-not-shipped",
                f"{entry.purchase}: {euros(purchase.net_received)} was captured, but {goods} shipped: "
                "the shop takes the refusal of its second capture for a failure",
            )


def _orders_with_refused_repetition(project: Project) -> set[str]:
    """Return the orders whose last capture was refused after the response to an earlier capture was lost."""
    lost, refused = set[str](), set[str]()
    for entry in project.epoch.journal.entries():
        if CAPTURES_SEGMENT not in entry.path:
            continue
        order_id = order_id_of(entry.path)
        if entry.fault is not None and entry.fault.is_after and entry.fault.loses_response:
            lost.add(order_id)
        elif entry.status not in CLIENT_ERRORS:
            refused.discard(order_id)
        elif order_id in lost:
            refused.add(order_id)
    return refused
