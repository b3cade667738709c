"""Compares the shop's books with the service's records; both must agree once the project is idle."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from payment_sandbox.orders.amounts import euros
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.webhooks import DeliveryState
from payment_sandbox.projects.project import Project
from payment_sandbox.testing.books import BookEntry

Books = Callable[[], Iterable[Any]]
"""The value of the fixture ``payment_books``: a function that returns the entries."""


class OrderRecord(NamedTuple):
    """The service's record of one order; amounts are in cents."""

    order_id: str
    status: str
    received: int  # captured, or paid in one step
    authorized: int  # includes expired and voided authorizations
    reserved: int  # can still be captured
    refunded: int
    amount: int = 0


Records = Mapping[str, OrderRecord]
"""The service's records, by order id."""


def order_records(project: Project) -> dict[str, OrderRecord]:
    """Return the service's record of every order, by order id."""
    store = project.epoch.store
    return {order.id: _order_record(order) for order in store.orders_newest_first() if not order.is_refund}


def _order_record(order: Order) -> OrderRecord:
    authorizations = [attempt.authorization for attempt in order.transactions if attempt.authorization]
    return OrderRecord(
        order.id,
        order.status,
        order.received_cents,
        sum(authorization.original_cents for authorization in authorizations),
        sum(authorization.remaining_cents for authorization in authorizations if authorization.is_open),
        sum(refund.amount_cents for refund in order.refunds if not refund.failed),
        order.amount_cents,
    )


class BookProblem(NamedTuple):
    """A problem: its kind, which is reported only once, and one sentence about its effect."""

    kind: str
    sentence: str


def compare_books(entries: Sequence[BookEntry], records: Records) -> list[BookProblem]:
    """Compare the shop's books with the service's records."""
    known = {order_id for entry in entries for order_id in entry.orders}
    problems = [problem for entry in entries for problem in _find_problems(entry, records)]
    for record in records.values():
        net_received = record.received - record.refunded
        if record.order_id not in known and net_received > 0:
            problems.append(
                BookProblem(
                    "unknown-money",
                    f"the customer paid {euros(net_received)} for an order that the shop does not know",
                )
            )
    return problems


def _find_problems(entry: BookEntry, records: Records) -> Iterable[BookProblem]:
    purchase = purchase_of(entry, records)
    for kind, check in CHECKS.items():
        sentence = check(purchase)
        if sentence is not None:
            yield BookProblem(kind, f"{entry.purchase}: {sentence}")


class Purchase(NamedTuple):
    """One purchase: the entry in the shop's books, and the service's records of its orders."""

    entry: BookEntry
    orders: Sequence[OrderRecord]

    @property
    def received(self) -> int:
        """The amount that the customer paid, in cents."""
        return sum(record.received for record in self.orders)

    @property
    def refunded(self) -> int:
        """The amount refunded to the customer, in cents."""
        return sum(record.refunded for record in self.orders)

    @property
    def is_captured(self) -> bool:
        """Whether the shop itself captured the amount that the customer paid."""
        return all(record.authorized for record in self.orders if record.received)

    @property
    def net_received(self) -> int:
        """The amount paid and not refunded, in cents."""
        return self.received - self.refunded


def purchase_of(entry: BookEntry, records: Records) -> Purchase:
    """Return the purchase of an entry, with the records of its orders."""
    return Purchase(entry, [records[order_id] for order_id in entry.orders if order_id in records])


def _check_unpaid_shipment(purchase: Purchase) -> str | None:
    entry = purchase.entry
    is_shipped_twice = entry.amount and purchase.received >= entry.amount
    if entry.shipped <= purchase.received or is_shipped_twice:
        return None
    received_text = f"only {euros(purchase.received)}" if purchase.received else "nothing"
    return f"goods worth {euros(entry.shipped)} were shipped, but {received_text} was received for them"


def _check_double_shipment(purchase: Purchase) -> str | None:
    entry = purchase.entry
    if not entry.amount or entry.shipped <= entry.amount:
        return None
    price = euros(entry.amount)
    return f"goods worth {euros(entry.shipped)} were shipped, but the purchase costs only {price}"


def _check_missing_payment(purchase: Purchase) -> str | None:
    is_known = purchase.received or any(record.authorized for record in purchase.orders)
    if is_known or not purchase.entry.paid:
        return None
    return "the shop marks it as paid, but no payment was made"


def _check_partial_payment(purchase: Purchase) -> str | None:
    known_cents = sum(max(record.received, record.authorized) for record in purchase.orders)
    is_unpaid_shipment = purchase.entry.shipped > purchase.received
    if is_unpaid_shipment or not 0 < known_cents < purchase.entry.paid:
        return None
    return f"the shop marks {euros(purchase.entry.paid)} as paid, but only {euros(known_cents)} was paid"


def _is_unrecorded(purchase: Purchase) -> bool:
    """Whether the books lack a payment; for a cancelled purchase, the kept money is the problem."""
    return purchase.net_received > 0 and not purchase.entry.paid and not purchase.entry.cancelled


def _check_missed_payment(purchase: Purchase) -> str | None:
    if not _is_unrecorded(purchase) or purchase.is_captured:
        return None
    return f"the customer paid {euros(purchase.net_received)}, but the shop does not mark it as paid"


def _check_missed_capture(purchase: Purchase) -> str | None:
    if not _is_unrecorded(purchase) or not purchase.is_captured:
        return None
    return f"{euros(purchase.net_received)} was captured, but the shop's books show no payment"


def _check_double_payment(purchase: Purchase) -> str | None:
    paid = [record for record in purchase.orders if record.received > record.refunded or record.reserved]
    if len(paid) <= 1:
        return None
    total_cents = sum(record.received - record.refunded + record.reserved for record in paid)
    return f"the customer paid {len(paid)} times, {euros(total_cents)} in total"


def _check_missing_refund(purchase: Purchase) -> str | None:
    return _describe_refunds(purchase) if purchase.entry.refunded > purchase.refunded else None


def _check_surplus_refund(purchase: Purchase) -> str | None:
    return _describe_refunds(purchase) if purchase.entry.refunded < purchase.refunded else None


def _describe_refunds(purchase: Purchase) -> str:
    return (
        f"the shop recorded refunds of {euros(purchase.entry.refunded)}, "
        f"but the customer received {euros(purchase.refunded)}"
    )


def _check_cancellation(purchase: Purchase) -> str | None:
    if not purchase.entry.cancelled or purchase.net_received <= 0:
        return None
    return f"the shop cancelled the purchase, but kept {euros(purchase.net_received)}"


PAID_FOR_NOTHING_KIND: Final = "paid-for-nothing"
PAID_TWICE_KIND: Final = "paid-twice"
REFUNDED_AGAIN_KIND: Final = "refunded-again"
SHIPPED_PREFIX: Final = "shipped-"
LASTING_KINDS: Final = frozenset({PAID_TWICE_KIND, REFUNDED_AGAIN_KIND})
CHECKS: Final[Mapping[str, Callable[[Purchase], str | None]]] = {
    "shipped-unpaid": _check_unpaid_shipment,
    "shipped-twice": _check_double_shipment,
    PAID_FOR_NOTHING_KIND: _check_missing_payment,
    "paid-in-part": _check_partial_payment,
    "payment-missed": _check_missed_payment,
    "capture-missed": _check_missed_capture,
    PAID_TWICE_KIND: _check_double_payment,
    "refunds-differ": _check_missing_refund,
    REFUNDED_AGAIN_KIND: _check_surplus_refund,
    "cancelled-but-kept": _check_cancellation,
}


def find_reversals(readings: Sequence[Sequence[BookEntry]], records: Records) -> list[BookProblem]:
    """Find payments and shipments that disappeared from the shop's books between two readings."""
    return [
        BookProblem("went-back", f"{now.purchase}: {sentence}")
        for earlier, later in pairwise(readings)
        for before, now in _pair_purchases(earlier, later)
        for sentence in _describe_reversals(before, purchase_of(now, records))
    ]


def _pair_purchases(
    earlier: Sequence[BookEntry], later: Sequence[BookEntry]
) -> Iterator[tuple[BookEntry, BookEntry]]:
    known = {entry.purchase: entry for entry in earlier}
    yield from ((known[entry.purchase], entry) for entry in later if entry.purchase in known)


def _describe_reversals(before: BookEntry, now: Purchase) -> Iterator[str]:
    if before.paid and not now.entry.paid and not now.entry.cancelled and now.net_received > 0:
        paid = "the shop marked it as paid and later as unpaid"
        yield f"{paid}, although the shop kept {euros(now.net_received)}"
    if now.entry.shipped < before.shipped:
        change = f"from {euros(before.shipped)} to {euros(now.entry.shipped)}"
        yield f"the value of the shipped goods fell {change}"


def find_unpaid_purchases(entries: Sequence[BookEntry], records: Records) -> list[BookProblem]:
    """Find purchases marked as paid without a payment, which is a mistake at any time."""
    return [problem for problem in compare_books(entries, records) if problem.kind == PAID_FOR_NOTHING_KIND]


def find_lasting_problems(entries: Sequence[BookEntry], project: Project) -> list[BookProblem]:
    """Find problems that no later webhook can heal: wrong shipments, and payments and refunds made twice.

    A shop may learn of a second payment or a refund by a webhook that it has not yet accepted.
    """
    unsettled = {
        delivery.order_id
        for delivery in project.epoch.store.deliveries()
        if delivery.outcome != DeliveryState.DELIVERED
    }
    settled = [entry for entry in entries if not unsettled.intersection(entry.orders)]
    records = order_records(project)
    problems = [each for each in compare_books(entries, records) if each.kind.startswith(SHIPPED_PREFIX)]
    return problems + [each for each in compare_books(settled, records) if each.kind in LASTING_KINDS]


def find_missed_authorizations(entries: Sequence[BookEntry], records: Records) -> list[BookProblem]:
    """Find authorizations that are unknown to the shop, or that reserve the customer's money twice."""
    return [
        *(problem for problem in compare_books(entries, records) if problem.kind == PAID_TWICE_KIND),
        *_find_unknown_authorizations(entries, records),
    ]


def _find_unknown_authorizations(entries: Sequence[BookEntry], records: Records) -> Iterator[BookProblem]:
    known = {order_id for entry in entries for order_id in entry.orders}
    for record in records.values():
        if record.reserved and record.order_id not in known:
            agreed = f"the customer authorized {euros(record.authorized)}"
            yield BookProblem("unknown-money", f"{agreed} for an order that the shop does not know")
    for entry in entries:
        if not entry.paid and any(record.reserved for record in purchase_of(entry, records).orders):
            yield BookProblem(
                "payment-missed",
                f"{entry.purchase}: the customer authorized the payment, but the shop has not recorded it",
            )
