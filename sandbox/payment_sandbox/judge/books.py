"""The books of a shop, its own record of purchases, and their comparison with the money of its orders."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any, NamedTuple

from payment_sandbox.orders.amounts import Cents, euros
from payment_sandbox.orders.order import Order


@dataclass(frozen=True)
class BookEntry:
    """The shop's record of one purchase; all amounts are cents.

    ``orders`` lists the ids of all payment orders for the purchase. ``shipped`` is the price of the shipped
    goods. ``refunded`` is the amount returned to the customer.
    """

    purchase: str
    orders: Sequence[str]
    amount: int = 0
    paid: int = 0
    shipped: int = 0
    refunded: int = 0
    cancelled: bool = False

    @classmethod
    def read(cls, entry: Any) -> "BookEntry":
        """Convert an entry, or a mapping with its fields.

        Raises:
            ValueError: the value is neither an entry nor a mapping, or has unknown fields.
        """
        if isinstance(entry, cls):
            return entry
        known = [field.name for field in fields(cls)]
        if not isinstance(entry, Mapping) or not {"purchase", "orders"} <= entry.keys() <= set(known):
            wanted = f"entries with {', '.join(known)} (the first two required)"
            raise ValueError(f"payment_books must return {wanted}; not {entry!r}")
        return cls(**entry)


class BookProblem(NamedTuple):
    """A difference of the books from the money: its kind, a sentence, the order and the cents at risk."""

    kind: str
    sentence: str
    order_id: str | None = None
    cents: Cents = 0


class Purchase(NamedTuple):
    """The money of one purchase: what its orders received, reserve and returned, in cents."""

    orders: Sequence[Order]
    received: Cents
    authorized: Cents  # includes expired and voided authorizations
    reserved: Cents  # can still be captured
    returned: Cents  # by completed refunds
    returning: Cents  # by refunds that are still open

    @classmethod
    def of(cls, orders: Sequence[Order], open_refunds: Iterable[str]) -> "Purchase":
        """Sum up the money of the orders."""
        attempts = chain.from_iterable(order.transactions for order in orders)
        held = [each.authorization for each in attempts if each.authorization is not None]
        refunds = [refund for order in orders for refund in order.refunds if not refund.failed]
        waiting = sum(each.amount_cents * (each.refund_id in open_refunds) for each in refunds)
        returned = sum(refund.amount_cents for refund in refunds) - waiting
        received = sum(order.received_cents for order in orders)
        reserved = sum(each.remaining_cents * each.is_open for each in held)
        return cls(orders, received, sum(each.original_cents for each in held), reserved, returned, waiting)

    @property
    def net(self) -> Cents:
        """What was received and not returned."""
        return self.received - self.returned - self.returning


def compare(entries: Sequence[BookEntry], orders: Sequence[Order]) -> list[BookProblem]:
    """Compare the shop's books with the money of its orders; ``orders`` includes their refunds."""
    by_id = {order.id: order for order in orders if not order.is_refund}
    waiting = {order.id for order in orders if order.is_open}
    problems: list[BookProblem] = []
    for entry in entries:
        own = [by_id.pop(order_id) for order_id in dict.fromkeys(entry.orders) if order_id in by_id]
        named, money = own[-1].id if own else None, Purchase.of(own, waiting)
        found = chain(_goods(entry, money), _payments(entry, money), _returns(entry, money))
        for kind, cents, sentence in found:
            problems.append(BookProblem(kind, f"{entry.purchase}: {sentence}", named, cents))
    for order in by_id.values():
        net = Purchase.of([order], waiting).net
        sentence = f"the customer paid {euros(net)} for an order that the shop does not know"
        problems += [BookProblem("unknown-money", sentence, order.id, net)] if net > 0 else []
    return problems


Difference = tuple[str, Cents, str]


def _goods(entry: BookEntry, money: Purchase) -> Iterator[Difference]:
    """Compare what was marked as paid, and what was shipped, with what was received."""
    if entry.paid and not money.received and not money.authorized:
        yield "paid-for-nothing", entry.paid, "the shop marks it as paid, but no payment was made"
    goods, secured = f"goods worth {euros(entry.shipped)} were shipped", money.received + money.reserved
    if entry.shipped > secured and not 0 < entry.amount <= money.received:
        received = f"only {euros(money.received)}" if money.received else "nothing"
        yield "shipped-unpaid", entry.shipped - secured, f"{goods}, but {received} was received for them"
    if 0 < entry.amount < entry.shipped:
        price = f"the purchase costs only {euros(entry.amount)}"
        yield "shipped-twice", entry.shipped - entry.amount, f"{goods}, but {price}"


def _payments(entry: BookEntry, money: Purchase) -> Iterator[Difference]:
    """Compare what was marked as paid with what was paid."""
    each_order = [Purchase.of([order], ()) for order in money.orders]
    known = sum(max(each.received, each.authorized) for each in each_order)
    if 0 < known < entry.paid and entry.shipped <= money.received + money.reserved:
        believed = f"the shop marks {euros(entry.paid)} as paid"
        yield "paid-in-part", entry.paid - known, f"{believed}, but only {euros(known)} was paid"
    if money.net > 0 and not entry.paid and not entry.cancelled:
        yield from _missed(money)
    times, kept = sum(each.net > 0 or each.reserved > 0 for each in each_order), money.net + money.reserved
    if times > 1 and kept > entry.amount:
        total = f"the customer paid {times} times, {euros(kept)} in total"
        yield "paid-twice", kept - entry.amount, total


def _returns(entry: BookEntry, money: Purchase) -> Iterator[Difference]:
    """Compare refunds; one in progress may stand in the books or not."""
    refunded = money.returned + money.returning
    if not money.returned <= entry.refunded <= refunded:
        recorded = f"the shop recorded refunds of {euros(entry.refunded)}"
        difference = abs(entry.refunded - refunded)
        yield "refunds-differ", difference, f"{recorded}, but the customer received {euros(refunded)}"
    if entry.cancelled and money.net > 0:
        kept_text = f"the shop cancelled the purchase, but kept {euros(money.net)}"
        yield "cancelled-but-kept", money.net, kept_text


def _missed(money: Purchase) -> Iterator[Difference]:
    """Find a payment that the books lack; a transfer that pays only a part of an order is none."""
    if all(Purchase.of([order], ()).authorized for order in money.orders if order.received_cents):
        sentence = f"{euros(money.net)} was captured, but the shop's books show no payment"
        yield "capture-missed", money.net, sentence
    elif any(order.received_cents >= order.amount_cents for order in money.orders):
        sentence = f"the customer paid {euros(money.net)}, but the shop does not mark it as paid"
        yield "payment-missed", money.net, sentence
