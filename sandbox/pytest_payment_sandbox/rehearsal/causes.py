"""The cause of a finding: a trait that all variations with the finding share, and few others have."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from payment_sandbox.projects.project import Project
from payment_sandbox.scenarios.variation import CALLS, CREATE, PRESS, READ, WEBHOOK
from payment_sandbox.testing.books import BookEntry
from pytest_payment_sandbox.rehearsal.changes import ChangedStep, kind_of_call

PAID: Final = ("completed", "accepted")
CALLS_PAID: Final = "the shop calls a purchase paid"
SHIPS: Final = "the shop ships"
GOES_ON: Final = "the shop goes on although its call"
OF_UNPAID: Final = ("paid-for-nothing", "shipped-unpaid", "shown-paid")
MOST: Final = 0.7  # minimum share of failing variations among all that have the sign

Signs = frozenset[str]
"""Observations on the shop's behaviour in a run, each as a sentence."""


class Glimpse(NamedTuple):
    """The shop's books at a moment, and the status of each order that the shop had last read."""

    entries: Sequence[BookEntry]
    read: Mapping[str, str]


class Shown(NamedTuple):
    """A variation that was tried: its changes, its signs, and the labels of its steps."""

    changes: Sequence[ChangedStep]
    signs: Signs
    labels: Mapping[str, str]

    @property
    def names(self) -> set[str]:
        """The changes with the kinds of their steps, without the numbers."""
        return {f"{each.step.partition(':')[0]} {each.change.name}" for each in self.changes}


def signs_of(glimpses: Sequence[Glimpse], project: Project) -> Signs:
    """Return the signs of a run up to the end of its test; the last glimpse is from the end."""
    if not glimpses:
        return frozenset()
    end = glimpses[-1]
    if not end.entries:
        return frozenset(f"the shop has last read {status!r}" for status in end.read.values())
    problems = _failed_changes(project)
    return frozenset(
        chain(
            _first(glimpses, lambda entry: entry.paid, CALLS_PAID),
            _first(glimpses, lambda entry: entry.shipped, SHIPS),
            _first(glimpses, lambda entry: entry.cancelled, "the shop gives a purchase up"),
            _unpaid(end),
            *(_despite(entry, problems) for entry in end.entries if entry.shipped or entry.refunded),
        )
    )


def is_wrong(sign: str) -> bool:
    """Whether a sign is a mistake of the shop, however the run ends."""
    is_early = sign.startswith((CALLS_PAID, SHIPS)) and not any(repr(status) in sign for status in PAID)
    return is_early or sign.startswith(GOES_ON)


def _first(glimpses: Sequence[Glimpse], believes: Callable[[BookEntry], object], words: str) -> Iterator[str]:
    """Yield the status that the shop had read of each purchase when its books first met a condition."""
    known: set[str] = set()
    for glimpse in glimpses:
        for entry in glimpse.entries:
            if believes(entry) and entry.purchase not in known:
                known.add(entry.purchase)
                status = _last_read(entry, glimpse.read)
                yield f"{words} " + (f"when it reads {status!r}" if status else "without reading its order")


def _last_read(entry: BookEntry, read: Mapping[str, str]) -> str | None:
    return next((read[order_id] for order_id in reversed([*read]) if order_id in entry.orders), None)


def _unpaid(end: Glimpse) -> Iterator[str]:
    for entry in end.entries:
        status = _last_read(entry, end.read)
        if not entry.paid and status in PAID:
            yield f"the shop reads {status!r}, and does not call the purchase paid"


def _failed_changes(project: Project) -> dict[str, str]:
    """Return how the last change of each order failed, by order id; changes that succeeded are left out."""
    failed: dict[str, str] = {}
    for entry in project.epoch.journal.entries(with_bodies=False):
        if kind_of_call(entry.method, entry.path) in (READ, CREATE):
            continue
        parts = entry.path.split("/")
        order_id = parts[3] if len(parts) > 3 else ""
        failed.pop(order_id, None)
        if entry.status is None or entry.status >= 500:
            failed[order_id] = "got no answer"
        elif entry.status >= 400:
            failed[order_id] = "was refused"
    return failed


def _despite(entry: BookEntry, problems: Mapping[str, str]) -> Iterator[str]:
    for order_id in entry.orders:
        if order_id in problems:
            yield f"{GOES_ON} {problems[order_id]}"


class Family(NamedTuple):
    """Similar variations, and their common cause."""

    names: frozenset[str]
    cause: str
    kinds_min: int = 2  # of steps: with fewer, the smallest change explains the finding better


def _of(kinds: Sequence[str], *names: str) -> frozenset[str]:
    return frozenset(f"{kind} {name}" for kind in kinds for name in names)


FAMILIES: Final = (
    Family(
        _of((WEBHOOK, PRESS, "job"), "together") | _of(("action",), "two-tabs"),
        "two of the shop's handlers run at the same moment",
    ),
    Family(
        _of((WEBHOOK, PRESS, "job", "action"), "together", "twice", "two-tabs", "returns-first"),
        "the shop gets the same twice",
    ),
    Family(
        _of((WEBHOOK,), "lost", "late", "refused", "swapped")
        | _of((READ,), "unavailable", "limited", "overtaken"),
        "the news does not arrive in time",
    ),
    Family(
        _of(CALLS, "answer-lost", "unavailable", "silent", "limited", "refused"),
        "a call of the shop fails",
    ),
    Family(
        _of(("action",), "short", "never", "fails", "cancels", "walks-away", "returns-unpaid", "not-settled")
        | _of(("action",), "after-expiry", "pays-too-late", "not-approved")
        | _of(("attempt",), "declined", "declined-later", "error", "needs-time", "charge-declined")
        | _of((PRESS,), "another-unpaid"),
        "nobody pays, or not all",
        kinds_min=1,
    ),
)
"""The families, from the smallest to the largest."""


def cause_of(kind: str, failing: Sequence[Shown], passing: Sequence[Shown], usual: Signs) -> str:
    """Return the cause that separates failing from passing variations; empty if only the change explains it.

    ``kind`` is the kind of the problem, ``usual`` has the signs of the unchanged test. A mistake of the shop,
    such as goods for a payment in progress, explains a problem with unpaid goods even if it is usual.
    """
    wrong = _wrong_way(failing) if kind in OF_UNPAID else ""
    if wrong:
        return wrong
    names = set(chain.from_iterable(each.names for each in failing))
    if len(failing) < 2 or len(names) < 2:
        return ""
    return _telling_sign(failing, passing, usual) or _family(failing)


def _family(failing: Sequence[Shown]) -> str:
    kinds = {change.step.partition(":")[0] for each in failing for change in each.changes}
    causes = (
        each.cause
        for each in FAMILIES
        if len(kinds) >= each.kinds_min and all(one.names & each.names for one in failing)
    )
    return next(causes, "")


def _wrong_way(failing: Sequence[Shown]) -> str:
    """Return a mistake that the shop makes in all failing runs, even if it is harmless in others."""
    wrong = [frozenset(filter(is_wrong, each.signs)) for each in failing]
    if not wrong or not all(wrong):
        return ""
    return min(
        frozenset.intersection(*wrong), default=f"{CALLS_PAID}, or ships, before it has read that it is paid"
    )


def _telling_sign(failing: Sequence[Shown], passing: Sequence[Shown], usual: Signs) -> str:
    """Return the sign that all failing runs share, and few passing runs have."""
    shared = frozenset.intersection(*(each.signs for each in failing)) - usual
    counts = {sign: sum(sign in each.signs for each in passing) for sign in shared}
    good = [sign for sign, count in counts.items() if len(failing) / (len(failing) + count) >= MOST]
    return min(good, key=lambda sign: (counts[sign], sign), default="")
