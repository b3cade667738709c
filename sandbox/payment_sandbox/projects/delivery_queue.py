"""A project's pending webhooks, in the order in which they are sent, and who waits for which of them."""

from collections import deque
from collections.abc import Iterable
from itertools import count
from typing import Final, NamedTuple

FURTHER_MAX: Final = 50


class QueuedDelivery(NamedTuple):
    """A delivery to attempt; ``forced`` if it was requested manually."""

    delivery_id: str
    order_id: str
    forced: bool = False


class Awaited:
    """The deliveries that one caller waits for: all of some orders, and a few that handlers cause elsewhere.

    What the handlers of a shop cause cannot be told from what other clients do meanwhile, so the number of
    further deliveries is limited: otherwise a caller would wait for as long as there is traffic.
    """

    __slots__ = ("further", "goes_first", "left", "orders")

    def __init__(self, orders: frozenset[str], left: int, *, goes_first: bool) -> None:
        self.orders = orders
        self.left = left
        self.further = FURTHER_MAX
        self.goes_first = goes_first

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be waited for."""
        return not self.left and self.further <= 0

    def added(self, order_id: str) -> None:
        """Count a new delivery."""
        self.left += order_id in self.orders

    def finished(self, order_id: str) -> None:
        """Count a finished delivery."""
        if order_id in self.orders:
            self.left -= 1
        elif not self.left:
            self.further -= 1


class DeliveryQueue:
    """Numbered deliveries: first in, first out, unless a caller waits for an order's.

    Those of one order are always taken in their order. It has no lock of its own.
    """

    def __init__(self) -> None:
        self._numbers = count(1)
        self.pending: dict[int, QueuedDelivery] = {}  # admitted and not finished, oldest first
        self._queue: deque[int] = deque()  # may still contain numbers that went first
        self._queue_of: dict[str, deque[int]] = {}  # by order
        self._first: dict[str, None] = {}  # the orders whose deliveries go first
        self._awaited: list[Awaited] = []

    def __bool__(self) -> bool:
        """Whether a delivery can be taken."""
        return bool(self._queue_of)

    def admit(self, queued: QueuedDelivery) -> int:
        """Count a delivery as pending; returns its number."""
        number = next(self._numbers)
        self.pending[number] = queued
        for awaited in self._awaited:
            awaited.added(queued.order_id)
        return number

    def append(self, numbers: Iterable[int]) -> None:
        """Queue admitted deliveries."""
        for number in numbers:
            order_id = self.pending[number].order_id
            self._queue.append(number)
            self._queue_of.setdefault(order_id, deque()).append(number)
            if any(awaited.goes_first and order_id in awaited.orders for awaited in self._awaited):
                self._first[order_id] = None

    def take(self) -> int | None:
        """Take the next number: the oldest of an order that goes first, or else the oldest of all."""
        while self._first:
            order_id = next(iter(self._first))
            if order_id in self._queue_of:
                return self._take_of(order_id)
            del self._first[order_id]
        while self._queue:
            number = self._queue.popleft()
            queued = self.pending.get(number)
            numbers = self._queue_of.get(queued.order_id) if queued is not None else None
            if queued is not None and numbers and numbers[0] == number:  # it has not gone first
                return self._take_of(queued.order_id)
        return None

    def finish(self, number: int) -> None:
        """Count a delivery as answered or given up."""
        order_id = self.pending.pop(number).order_id
        for awaited in self._awaited:
            awaited.finished(order_id)

    def clear(self) -> None:
        """Give up what is queued."""
        while (number := self.take()) is not None:
            self.finish(number)

    def begin_waiting(self, orders: Iterable[str] | None) -> Awaited:
        """Await the deliveries of these orders, which then go first; None: of all with one pending now."""
        pending = [queued.order_id for queued in self.pending.values()]
        names = frozenset(pending if orders is None else orders)
        left = sum(order_id in names for order_id in pending)
        awaited = Awaited(names, left, goes_first=orders is not None)
        self._awaited.append(awaited)
        if awaited.goes_first:
            self._first.update(dict.fromkeys(names))
        return awaited

    def end_waiting(self, awaited: Awaited) -> None:
        """Await them no longer."""
        self._awaited.remove(awaited)

    def _take_of(self, order_id: str) -> int:
        numbers = self._queue_of[order_id]
        number = numbers.popleft()
        if not numbers:
            del self._queue_of[order_id]
        return number
