"""Compares the shop's books with the service's records; both must agree once the project is idle."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from payment_sandbox.orders.amounts import euros
from payment_sandbox.orders.order import Order
from payment_sandbox.projects.project import Project
from payment_sandbox.testing.books import BookEntry

Books = Callable[[], Iterable[Any]]
"""The value of the fixture ``payment_books``: a function that returns the entries."""


class Truth(NamedTuple):
    """The service's record of one order; amounts are in cents."""

    order_id: str
    status: str
    received: int  # captured, or paid without a capture
    authorized: int  # including expired and voided authorizations
    capturable: bool  # at present
    refunded: int


def truths_of(project: Project) -> dict[str, Truth]:
    """Return the service's record of every order, by order id."""
    store = project.epoch.store
    return {order.id: _truth(order) for order in store.orders_newest_first() if not order.is_refund}


def _truth(order: Order) -> Truth:
    authorizations = [attempt.authorization for attempt in order.transactions if attempt.authorization]
    return Truth(
        order.id,
        order.status,
        order.received_cents,
        sum(authorization.original_cents for authorization in authorizations),
        any(authorization.is_open for authorization in authorizations),
        sum(refund.amount_cents for refund in order.refunds if not refund.failed),
    )


class BookProblem(NamedTuple):
    """A problem: its kind, which is reported only once, and its effect in one sentence."""

    kind: str
    sentence: str


def compare(entries: Sequence[BookEntry], truths: Mapping[str, Truth]) -> list[BookProblem]:
    """Compare the shop's books with the service's records."""
    known = {order_id for entry in entries for order_id in entry.orders}
    problems = [problem for entry in entries for problem in _problems(entry, truths)]
    for truth in truths.values():
        kept = truth.received - truth.refunded
        if truth.order_id not in known and kept > 0:
            problems.append(
                BookProblem(
                    "unknown-money",
                    f"the customer paid {euros(kept)} for an order that the shop does not know",
                )
            )
    return problems


def _problems(entry: BookEntry, truths: Mapping[str, Truth]) -> Iterable[BookProblem]:
    account = _account(entry, truths)
    for kind, check in CHECKS.items():
        sentence = check(account)
        if sentence is not None:
            yield BookProblem(kind, f"{entry.purchase}: {sentence}")


class Purchase(NamedTuple):
    """One purchase: the entry in the shop's books, and the service's records of its orders."""

    entry: BookEntry
    orders: Sequence[Truth]

    @property
    def received(self) -> int:
        """The amount that the customer paid, in cents."""
        return sum(truth.received for truth in self.orders)

    @property
    def refunded(self) -> int:
        """The amount refunded to the customer, in cents."""
        return sum(truth.refunded for truth in self.orders)

    @property
    def kept(self) -> int:
        """The amount paid and not refunded, in cents."""
        return self.received - self.refunded


def _account(entry: BookEntry, truths: Mapping[str, Truth]) -> Purchase:
    return Purchase(entry, [truths[order_id] for order_id in entry.orders if order_id in truths])


def _shipped_unpaid(account: Purchase) -> str | None:
    entry = account.entry
    if entry.shipped <= account.received:
        return None
    got = f"only {euros(account.received)}" if account.received else "nothing"
    return f"goods worth {euros(entry.shipped)} were shipped, but {got} was received for them"


def _shipped_twice(account: Purchase) -> str | None:
    entry = account.entry
    if not entry.amount or entry.shipped <= entry.amount:
        return None
    price = euros(entry.amount)
    return f"goods worth {euros(entry.shipped)} were shipped, but the purchase costs only {price}"


def _paid_for_nothing(account: Purchase) -> str | None:
    is_known = account.received or any(truth.authorized for truth in account.orders)
    if is_known or not account.entry.paid:
        return None
    return "the shop marks it as paid, but no payment was made"


def _payment_missed(account: Purchase) -> str | None:
    if account.kept <= 0 or account.entry.paid:
        return None
    return f"the customer paid {euros(account.kept)}, but the shop does not mark it as paid"


def _paid_twice(account: Purchase) -> str | None:
    paid = [truth for truth in account.orders if truth.received > truth.refunded or truth.capturable]
    if len(paid) <= 1:
        return None
    kept = f", {euros(account.kept)} in total" if account.kept else ""
    return f"the customer paid {len(paid)} times{kept}"


def _refunds_differ(account: Purchase) -> str | None:
    if account.entry.refunded == account.refunded:
        return None
    return (
        f"the shop recorded refunds of {euros(account.entry.refunded)}, "
        f"but the customer received {euros(account.refunded)}"
    )


def _cancelled_but_kept(account: Purchase) -> str | None:
    if not account.entry.cancelled or account.kept <= 0:
        return None
    return f"the shop cancelled the purchase, but kept {euros(account.kept)}"


PAID_FOR_NOTHING: Final = "paid-for-nothing"
PAID_TWICE: Final = "paid-twice"
CHECKS: Final[Mapping[str, Callable[[Purchase], str | None]]] = {
    "shipped-unpaid": _shipped_unpaid,
    "shipped-twice": _shipped_twice,
    PAID_FOR_NOTHING: _paid_for_nothing,
    "payment-missed": _payment_missed,
    PAID_TWICE: _paid_twice,
    "refunds-differ": _refunds_differ,
    "cancelled-but-kept": _cancelled_but_kept,
}


def went_back(readings: Sequence[Sequence[BookEntry]], truths: Mapping[str, Truth]) -> list[BookProblem]:
    """Find payments and shipments that disappeared from the shop's books between two readings."""
    return [
        BookProblem("went-back", f"{now.purchase}: {sentence}")
        for earlier, later in pairwise(readings)
        for before, now in _same_purchases(earlier, later)
        for sentence in _lost_beliefs(before, _account(now, truths))
    ]


def _same_purchases(
    earlier: Sequence[BookEntry], later: Sequence[BookEntry]
) -> Iterator[tuple[BookEntry, BookEntry]]:
    known = {entry.purchase: entry for entry in earlier}
    yield from ((known[entry.purchase], entry) for entry in later if entry.purchase in known)


def _lost_beliefs(before: BookEntry, now: Purchase) -> Iterator[str]:
    if before.paid and not now.entry.paid and not now.entry.cancelled and now.kept > 0:
        paid = "the shop marked it as paid and later no longer did"
        yield f"{paid}, although it kept {euros(now.kept)}"
    if now.entry.shipped < before.shipped:
        change = f"from {euros(before.shipped)} to {euros(now.entry.shipped)}"
        yield f"the value of the shipped goods fell {change}"


def unpaid(entries: Sequence[BookEntry], truths: Mapping[str, Truth]) -> list[BookProblem]:
    """Find purchases marked as paid without a payment, which is a mistake at any time."""
    return [problem for problem in compare(entries, truths) if problem.kind == PAID_FOR_NOTHING]


def missed(entries: Sequence[BookEntry], truths: Mapping[str, Truth]) -> list[BookProblem]:
    """Find authorizations that are unknown to the shop, or that reserve the customer's money twice."""
    return [
        *(problem for problem in compare(entries, truths) if problem.kind == PAID_TWICE),
        *_missed(entries, truths),
    ]


def _missed(entries: Sequence[BookEntry], truths: Mapping[str, Truth]) -> Iterator[BookProblem]:
    known = {order_id for entry in entries for order_id in entry.orders}
    for truth in truths.values():
        if truth.capturable and truth.order_id not in known:
            agreed = f"the customer authorized {euros(truth.authorized)}"
            yield BookProblem("unknown-money", f"{agreed} for an order that the shop does not know")
    for entry in entries:
        if not entry.paid and any(truth.capturable for truth in _account(entry, truths).orders):
            yield BookProblem(
                "payment-missed",
                f"{entry.purchase}: the customer authorized the payment, but the shop has not recorded it",
            )
