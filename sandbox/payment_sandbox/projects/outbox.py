"""The queue of webhooks to send now: first in, first out, one at a time."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from threading import Condition, get_ident
from typing import NamedTuple

from payment_sandbox.projects.events import Events
from payment_sandbox.projects.locks import OUTBOX, ranked_lock


class QueuedDelivery(NamedTuple):
    """A delivery to attempt; ``forced`` if it was requested manually."""

    delivery_id: str
    forced: bool = False


class Released(NamedTuple):
    """What to do after held webhooks were released."""

    needs_carrier: bool
    wakes: bool  # in the meantime, something became due earlier


class _Hold:
    """The webhooks that one request holds back."""

    __slots__ = ("queue", "thread", "wakes")

    def __init__(self, thread: int) -> None:
        self.thread = thread  # the one that the request runs on
        self.queue: deque[QueuedDelivery] = deque()
        self.wakes = False


class Outbox:
    """A queue with one carrier at a time.

    A thread can hold back its webhooks until its response is sent. ``put`` and ``release`` return whether a
    carrier has to be started.
    """

    def __init__(self, events: Events) -> None:
        self._changed = Condition(ranked_lock(OUTBOX))  # type: ignore[arg-type]
        self._events = events
        self._queue: deque[QueuedDelivery] = deque()
        self._holds: dict[int, _Hold] = {}  # by key
        self._holding: dict[int, _Hold] = {}  # the newest of each thread
        self._keys = count(1)
        self._under_way: QueuedDelivery | None = None
        self._direct: list[QueuedDelivery] = []  # delivered by the calling thread
        self._delivering: list[int] = []  # the threads that deliver now
        self._is_carried = False
        self._carrier = 0  # the thread that took the newest delivery
        self._was_idle = True
        self.is_closed = False

    def put(self, queued: QueuedDelivery) -> bool:
        """Queue a delivery, or hold it back if the thread does so; True if a carrier is needed."""
        with self._changed:
            if self.is_closed:
                return False
            self._was_idle = False
            held = self._holding.get(get_ident())
            if held is not None:
                held.queue.append(queued)
                return False
            self._queue.append(queued)
            return self._needs_carrier()

    def hold(self) -> int:
        """Hold back this thread's deliveries until ``release``; returns the key for it."""
        held = _Hold(get_ident())
        key = next(self._keys)
        with self._changed:
            # Holds do not nest: anything still held belongs to a response that is not yet sent to its end.
            left = self._holding.get(held.thread)
            if left is not None:
                self._queue.extend(left.queue)
                left.queue.clear()
            self._holds[key] = self._holding[held.thread] = held
        return key

    def wakes_later(self) -> bool:
        """Have ``release`` wake the project; False if this thread does not hold back deliveries."""
        with self._changed:
            held = self._holding.get(get_ident())
            if held is not None:
                held.wakes = True
            return held is not None

    def release(self, key: int) -> Released:
        """Queue the deliveries that were held back; a second call does nothing."""
        with self._changed:
            held = self._holds.pop(key, None)
            if held is None:
                return Released(needs_carrier=False, wakes=False)
            if self._holding.get(held.thread) is held:
                del self._holding[held.thread]
            self._queue.extend(held.queue)
            needs_carrier = self._needs_carrier()
            self._note()
        return Released(needs_carrier, held.wakes)

    def take_held(self, key: int) -> QueuedDelivery | None:
        """The next delivery held back under ``key``, to be delivered outside the queue."""
        with self._changed:
            held = self._holds.get(key)
            return held.queue.popleft() if held is not None and held.queue else None

    @contextmanager
    def past_the_queue(self, queued: QueuedDelivery) -> Iterator[None]:
        """Count a delivery made by the caller as under way."""
        with self._changed:
            self._was_idle = False
            self._direct.append(queued)
            self._delivering.append(get_ident())
        try:
            yield
        finally:
            with self._changed:
                self._delivering.remove(get_ident())
                self._direct.remove(queued)
                self._note()

    def next(self) -> QueuedDelivery | None:
        """The next delivery for the carrier; on None the carrier stops."""
        with self._changed:
            self._end_delivery()
            self._carrier = get_ident()
            if self._queue:
                self._delivering.append(self._carrier)
            self._under_way = self._queue.popleft() if self._queue else None
            self._is_carried = self._under_way is not None
            self._note()
            return self._under_way

    def hand_over(self) -> None:
        """End this thread's delivery; another carrier goes on."""
        with self._changed:
            self._end_delivery()

    def settle(self, timeout_seconds: float, enough: Callable[[], bool] = lambda: False) -> bool:
        """Wait until nothing is queued, under way or held; False on timeout or once ``enough`` is true.

        A handler that calls from the thread that delivers its webhook does not: it would wait for itself.
        """
        with self._changed:
            if get_ident() in self._delivering:
                return True
            self._changed.wait_for(lambda: self._is_idle() or enough(), timeout_seconds)
            return self._is_idle()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is queued, under way or held."""
        with self._changed:
            return self._is_idle()

    def pending(self) -> list[str]:
        """The deliveries that are queued, under way or held, oldest first."""
        with self._changed:
            held = [queued for held in self._holds.values() for queued in held.queue]
            under_way = [*self._direct, *([self._under_way] if self._under_way is not None else [])]
            return [queued.delivery_id for queued in (*under_way, *self._queue, *held)]

    def close(self) -> None:
        """Drop queued and held deliveries and accept no more; those under way finish."""
        with self._changed:
            self.is_closed = True
            self._queue.clear()
            for held in self._holds.values():
                held.queue.clear()
            self._note()

    def _end_delivery(self) -> None:
        if self._under_way is not None:
            self._delivering.remove(self._carrier)
            self._under_way = None

    def _needs_carrier(self) -> bool:
        if self._is_carried or not self._queue:
            return False
        self._is_carried = True
        return True

    def _is_idle(self) -> bool:
        held = any(hold.queue for hold in self._holds.values())
        return self.is_closed or not (self._is_carried or self._queue or self._direct or held)

    def _note(self) -> None:
        """Wake waiting threads; publish an event if the outbox has become idle."""
        self._changed.notify_all()
        is_idle = self._is_idle()
        if is_idle and not self._was_idle:
            self._events.publish("idle")
        self._was_idle = is_idle
