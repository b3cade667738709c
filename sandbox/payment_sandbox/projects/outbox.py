"""The queue of webhooks to send now: first in, first out, one at a time."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from threading import Condition
from typing import Final, NamedTuple

from payment_sandbox.projects.events import Events
from payment_sandbox.projects.locks import OUTBOX, ranked_lock

EXTRA_DELIVERIES_MAX: Final = 50


class ResendChanges(NamedTuple):
    """Changes to a resent webhook; None keeps the original value."""

    url: str | None = None
    body: str | None = None


NO_CHANGES: Final = ResendChanges()


class QueuedDelivery(NamedTuple):
    """A queued delivery; a manual resend is ``forced``, and may have ``changed`` values."""

    delivery_id: str
    order_id: str
    forced: bool = False
    changed: ResendChanges = NO_CHANGES
    job: int = 0  # the number in a shared store

    @property
    def is_changed(self) -> bool:
        """Whether the webhook differs from the original."""
        return self.changed != NO_CHANGES


class AwaitedDeliveries:
    """The deliveries awaited by a caller: all those of its orders, and a few more, caused by handlers.

    Deliveries caused by the shop's handlers look like deliveries caused by other clients, so their number is
    limited. Without the limit, a caller would wait as long as there is traffic.
    """

    __slots__ = ("extra_remaining", "has_priority", "orders", "remaining")

    def __init__(self, orders: frozenset[str], remaining: int, *, has_priority: bool) -> None:
        self.orders = orders
        self.remaining = remaining
        self.extra_remaining = EXTRA_DELIVERIES_MAX
        self.has_priority = has_priority

    @property
    def is_over(self) -> bool:
        """Whether the wait is over."""
        return not self.remaining and self.extra_remaining <= 0

    def count_added(self, order_id: str) -> None:
        """Count a new delivery."""
        self.remaining += order_id in self.orders

    def count_finished(self, order_id: str) -> None:
        """Count a finished delivery."""
        if order_id in self.orders:
            self.remaining -= 1
        elif not self.remaining:
            self.extra_remaining -= 1


class DeliveryQueue:
    """Numbered deliveries: first in, first out, except that awaited orders take priority.

    The deliveries of one order keep their sequence. The queue itself has no lock.
    """

    def __init__(self) -> None:
        self._numbers = count(1)
        self.pending: dict[int, QueuedDelivery] = {}  # admitted and not finished, oldest first
        self._queue: deque[int] = deque()  # may contain numbers of deliveries already taken
        self._queue_of: dict[str, deque[int]] = {}  # by order
        self._priority_orders: dict[str, None] = {}  # the orders whose deliveries take priority
        self._awaited: list[AwaitedDeliveries] = []

    def __bool__(self) -> bool:
        """Whether a delivery can be taken."""
        return bool(self._queue_of)

    def admit(self, queued: QueuedDelivery) -> int:
        """Count a delivery as pending, and return its number."""
        number = next(self._numbers)
        self.pending[number] = queued
        for awaited in self._awaited:
            awaited.count_added(queued.order_id)
        return number

    def append(self, numbers: Iterable[int]) -> None:
        """Queue admitted deliveries."""
        for number in numbers:
            order_id = self.pending[number].order_id
            self._queue.append(number)
            self._queue_of.setdefault(order_id, deque()).append(number)
            if any(awaited.has_priority and order_id in awaited.orders for awaited in self._awaited):
                self._priority_orders[order_id] = None

    def take(self) -> int | None:
        """Take the next number: the oldest of the orders with priority, otherwise the oldest of all."""
        while self._priority_orders:
            order_id = next(iter(self._priority_orders))
            if order_id in self._queue_of:
                return self._take_next_of(order_id)
            del self._priority_orders[order_id]
        while self._queue:
            number = self._queue.popleft()
            queued = self.pending.get(number)
            numbers = self._queue_of.get(queued.order_id) if queued is not None else None
            if queued is not None and numbers and numbers[0] == number:  # not already taken
                return self._take_next_of(queued.order_id)
        return None

    def finish(self, number: int) -> None:
        """Count a delivery as answered or abandoned."""
        order_id = self.pending.pop(number).order_id
        for awaited in self._awaited:
            awaited.count_finished(order_id)

    def clear(self) -> None:
        """Abandon all queued deliveries."""
        while (number := self.take()) is not None:
            self.finish(number)

    def begin_waiting(self, orders: Iterable[str] | None) -> AwaitedDeliveries:
        """Await the deliveries of these orders, with priority; None: all orders with a pending delivery."""
        pending = [queued.order_id for queued in self.pending.values()]
        names = frozenset(pending if orders is None else orders)
        remaining = sum(order_id in names for order_id in pending)
        awaited = AwaitedDeliveries(names, remaining, has_priority=orders is not None)
        self._awaited.append(awaited)
        if awaited.has_priority:
            self._priority_orders.update(dict.fromkeys(names))
        return awaited

    def end_waiting(self, awaited: AwaitedDeliveries) -> None:
        """Stop awaiting these deliveries."""
        self._awaited.remove(awaited)

    def _take_next_of(self, order_id: str) -> int:
        numbers = self._queue_of[order_id]
        number = numbers.popleft()
        if not numbers:
            del self._queue_of[order_id]
        return number


class ReleaseResult(NamedTuple):
    """The work required after deferred webhooks are released."""

    needs_carrier: bool
    wakes_pacer: bool  # the agenda has a new earliest entry


class DeferredDeliveries:
    """Webhooks that are deferred until the response to a call is sent."""

    __slots__ = ("is_over", "numbers", "outbox", "wakes_pacer")

    def __init__(self, outbox: "Outbox") -> None:
        self.outbox = outbox
        self.numbers: deque[int] = deque()
        self.wakes_pacer = False
        self.is_over = False

    def is_deferring(self, outbox: "Outbox") -> bool:
        """Whether deliveries for this outbox are deferred."""
        return self.outbox is outbox and not self.is_over


class Outbox:
    """A queue with one carrier at a time.

    ``put`` and ``release`` return whether a carrier must be started.
    """

    def __init__(self, events: Events) -> None:
        self._changed = Condition(ranked_lock(OUTBOX))  # type: ignore[arg-type]
        self._events = events
        self._queue = DeliveryQueue()
        self._in_flight: int | None = None
        self._delivering = 0
        self._is_carried = False
        self._was_idle = True
        self.is_closed = False

    def put(self, queued: QueuedDelivery, held: DeferredDeliveries | None = None) -> bool:
        """Queue or defer a delivery; return True if a carrier is needed."""
        with self._changed:
            if self.is_closed:
                return False
            self._was_idle = False
            number = self._queue.admit(queued)
            if held is not None and held.is_deferring(self):
                held.numbers.append(number)
                return False
            self._queue.append([number])
            return self._needs_carrier()

    def release(self, held: DeferredDeliveries) -> ReleaseResult:
        """Queue the deferred deliveries, and stop deferring; a second call is a no-op."""
        with self._changed:
            numbers, held.numbers = held.numbers, deque()
            wakes_pacer, held.wakes_pacer = held.wakes_pacer, False
            held.is_over = True
            if not numbers or self.is_closed:
                return ReleaseResult(needs_carrier=False, wakes_pacer=wakes_pacer)
            self._queue.append(numbers)
            needs_carrier = self._needs_carrier()
            self._notify()
        return ReleaseResult(needs_carrier, wakes_pacer)

    @contextmanager
    def count_in_flight(self, queued: QueuedDelivery) -> Iterator[None]:
        """Count the caller's delivery outside the queue as in flight."""
        with self._changed:
            self._was_idle = False
            number = self._queue.admit(queued)
        with self._count_in_flight(number):
            yield

    @contextmanager
    def take_deferred(self, held: DeferredDeliveries) -> Iterator[QueuedDelivery | None]:
        """Take the next deferred delivery, which the caller sends outside the queue."""
        with self._changed:
            number = held.numbers.popleft() if held.numbers and not self.is_closed else None
        if number is None:
            yield None
            return
        with self._count_in_flight(number):
            yield self._queue.pending[number]

    @contextmanager
    def _count_in_flight(self, number: int) -> Iterator[None]:
        with self._changed:
            self._delivering += 1
        try:
            yield
        finally:
            with self._changed:
                self._delivering -= 1
                self._queue.finish(number)
                self._notify()

    def next(self) -> QueuedDelivery | None:
        """Take the next delivery for the carrier; None stops the carrier."""
        with self._changed:
            self._end_delivery()
            self._in_flight = number = self._queue.take()
            self._is_carried = number is not None
            self._delivering += number is not None
            self._notify()
            return self._queue.pending[number] if number is not None else None

    def hand_over(self) -> None:
        """End the carrier's turn; another carrier takes over."""
        with self._changed:
            self._end_delivery()

    @contextmanager
    def awaiting(self, orders: Iterable[str] | None = None) -> Iterator[AwaitedDeliveries]:
        """Await the deliveries of these orders, with priority; None: all orders with a pending delivery."""
        with self._changed:
            awaited = self._queue.begin_waiting(orders)
        try:
            yield awaited
        finally:
            with self._changed:
                self._queue.end_waiting(awaited)

    def settle(
        self,
        awaited: AwaitedDeliveries,
        timeout_seconds: float,
        is_enough: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Wait for the awaited deliveries; return False on timeout or once ``is_enough`` is true."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_settled(awaited) or is_enough(), timeout_seconds)
            return self._is_settled(awaited)

    def wake(self) -> None:
        """Wake the waiting threads to check ``is_enough`` again."""
        with self._changed:
            self._changed.notify_all()

    def is_settled(self, awaited: AwaitedDeliveries) -> bool:
        """Whether the awaited deliveries are finished."""
        with self._changed:
            return self._is_settled(awaited)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is queued, deferred or in flight."""
        with self._changed:
            return self._is_idle()

    @property
    def is_delivering(self) -> bool:
        """Whether a delivery is in flight."""
        return self._delivering > 0

    def pending(self) -> list[str]:
        """Return the ids of deliveries that are queued, deferred or in flight, oldest first."""
        with self._changed:
            return [queued.delivery_id for queued in self._queue.pending.values()]

    def close(self) -> None:
        """Drop queued and deferred deliveries and accept no more; deliveries in flight finish."""
        with self._changed:
            self.is_closed = True
            self._queue.clear()
            self._notify()

    def _end_delivery(self) -> None:
        if self._in_flight is not None:
            self._delivering -= 1
            self._queue.finish(self._in_flight)
            self._in_flight = None

    def _needs_carrier(self) -> bool:
        if self._is_carried or not self._queue:
            return False
        self._is_carried = True
        return True

    def _is_idle(self) -> bool:
        return self.is_closed or not (self._is_carried or self._queue.pending)

    def _is_settled(self, awaited: AwaitedDeliveries) -> bool:
        return awaited.is_over or self._is_idle()

    def _notify(self) -> None:
        """Wake waiting threads; publish an event if the outbox has become idle."""
        self._changed.notify_all()
        is_idle = self._is_idle()
        if is_idle and not self._was_idle:
            self._events.publish("idle")
        self._was_idle = is_idle
