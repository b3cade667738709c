"""Finds the cause of a finding: a sign that all variations with the finding share, and few others show."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from payment_sandbox.projects.project import Project
from payment_sandbox.scenarios.variation import CREATE, READ
from payment_sandbox.testing.books import BookEntry
from pytest_payment_sandbox.rehearsal.changes import (
    CAPTURES_SEGMENT,
    REFUNDS_SEGMENT,
    ChangedSteps,
    kind_of_call,
    order_id_of,
)
from pytest_payment_sandbox.rehearsal.reconciliation import Purchase, order_records, purchase_of

PAID_STATUSES: Final = ("completed", "accepted")
MARKS_PAID_PHRASE: Final = "the shop marks a purchase as paid"
SHIPS_PHRASE: Final = "the shop ships"
CONTINUES_PHRASE: Final = "the shop continues although its call"
UNPAID_KINDS: Final = ("paid-for-nothing", "shipped-unpaid", "shown-paid")
SHARE_MIN: Final = 0.7  # minimum share of failing variations among the variations that show the sign

Signs = frozenset[str]
"""Observations of the shop's behaviour in a run, each in one sentence."""


class BooksSnapshot(NamedTuple):
    """A snapshot of the shop's books, and the statuses of each order that the shop has read, in order."""

    entries: Sequence[BookEntry]
    statuses: Mapping[str, Sequence[str]]


def observe_signs(snapshots: Sequence[BooksSnapshot], project: Project) -> Signs:
    """Return the signs of a run up to the end of its test; the last snapshot is from the end of the test."""
    if not snapshots:
        return frozenset()
    end = snapshots[-1]
    if not end.entries:
        return frozenset(
            f"the last status that the shop read is {each[-1]!r}" for each in end.statuses.values()
        )
    problems, records = _find_failed_changes(project), order_records(project)
    return frozenset(
        chain(
            _first_occurrences(snapshots, lambda entry: entry.paid, MARKS_PAID_PHRASE),
            _first_occurrences(snapshots, lambda entry: entry.shipped, SHIPS_PHRASE),
            _first_occurrences(snapshots, lambda entry: entry.cancelled, "the shop cancels a purchase"),
            _find_unmarked_payments(end),
            *(_find_continuations(purchase_of(entry, records), problems) for entry in end.entries),
        )
    )


def is_mistake(sign: str) -> bool:
    """Whether a sign is a mistake by the shop, whatever the outcome of the run."""
    is_early = sign.startswith((MARKS_PAID_PHRASE, SHIPS_PHRASE)) and not any(
        repr(status) in sign for status in PAID_STATUSES
    )
    return is_early or sign.startswith(CONTINUES_PHRASE)


def _first_occurrences(
    snapshots: Sequence[BooksSnapshot], condition: Callable[[BookEntry], object], words: str
) -> Iterator[str]:
    """Yield, for each purchase, the status read by the shop before its entry first met a condition.

    A paid status comes first: the shop may read another status between its decision and the snapshot.
    """
    known: set[tuple[str, ...]] = set()
    for snapshot in snapshots:
        for entry in snapshot.entries:
            key = entry.purchase, *entry.orders
            if condition(entry) and entry.orders and key not in known:
                known.add(key)
                read = _statuses_read(entry, snapshot)
                status = next((each for each in read if each in PAID_STATUSES), read[-1] if read else None)
                yield f"{words} " + (f"when it reads {status!r}" if status else "without reading the order")


def _statuses_read(entry: BookEntry, snapshot: BooksSnapshot) -> list[str]:
    """Return all statuses of a purchase's orders that the shop has read; those of the latest order last."""
    return [
        status
        for order_id, statuses in snapshot.statuses.items()
        if order_id in entry.orders
        for status in statuses
    ]


def _find_unmarked_payments(end: BooksSnapshot) -> Iterator[str]:
    for entry in end.entries:
        status = [None, *_statuses_read(entry, end)][-1]
        if not entry.paid and status in PAID_STATUSES:
            yield f"the shop reads {status!r}, but does not mark the purchase as paid"


def _find_failed_changes(project: Project) -> dict[str, tuple[str, str]]:
    """Return the path of the last change to each order, and how it failed; omit orders where it succeeded."""
    failed: dict[str, tuple[str, str]] = {}
    for entry in project.epoch.journal.entries():
        if kind_of_call(entry.method, entry.path) in (READ, CREATE):
            continue
        order_id = order_id_of(entry.path)
        failed.pop(order_id, None)
        if entry.status is None or entry.status >= 500:
            failed[order_id] = entry.path, "got no response"
        elif entry.status >= 400:
            failed[order_id] = entry.path, "was refused"
    return failed


def _find_continuations(purchase: Purchase, problems: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    """Find failed calls whose result the books claim; a shop may also wait, and repeat its call later."""
    for order_id in purchase.entry.orders:
        path, problem = problems.get(order_id, ("", ""))
        is_shipped = CAPTURES_SEGMENT in path and purchase.entry.shipped > purchase.received
        if is_shipped or (REFUNDS_SEGMENT in path and purchase.entry.refunded > purchase.refunded):
            yield f"{CONTINUES_PHRASE} {problem}"


def find_cause(
    kind: str,
    own: Signs,
    failing: Mapping[ChangedSteps, Signs],
    passing: Sequence[Signs],
    usual: Signs,
) -> str:
    """Return the cause of a finding, or "" if only the change explains it.

    ``kind`` is the kind of the problem, ``own`` are the signs of the finding's run, and ``usual`` are the
    signs of the unchanged test. A mistake by the shop, such as shipping goods for a payment in progress,
    explains unpaid goods even if its sign is usual.
    """
    mistakes = sorted(filter(is_mistake, own)) if kind in UNPAID_KINDS else []
    changes = {(each.step.partition(":")[0], each.change) for variation in failing for each in variation}
    if mistakes or len(failing) < 2 or len(changes) < 2:
        return next(iter(mistakes), "")
    counts = Counter(chain.from_iterable(passing))
    shared = frozenset.intersection(*failing.values()) - usual
    common = [sign for sign in shared if len(failing) / (len(failing) + counts[sign]) >= SHARE_MIN]
    return min(common, key=lambda sign: (counts[sign], sign), default="")
