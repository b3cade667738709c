"""The webhooks that a project owes now: first in, first out, one at a time."""

from collections import deque
from collections.abc import Callable
from threading import Condition, get_ident
from typing import NamedTuple


class Errand(NamedTuple):
    """One delivery to attempt; ``forced`` when somebody asked for it by hand."""

    delivery_id: str
    forced: bool = False


class _Hold:
    """What one thread keeps back until its response is on its way."""

    __slots__ = ("callbacks", "errands")

    def __init__(self) -> None:
        self.errands: list[Errand] = []
        self.callbacks: list[Callable[[], None]] = []


class Outbox:
    """A queue with one carrier at a time.

    Its condition is a leaf among the locks: nothing else is taken while it is held.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._queue: deque[Errand] = deque()
        self._holds: dict[int, _Hold] = {}
        self._is_carried = False
        self.on_idle: Callable[[], None] = lambda: None
        self.deliver: Callable[[Errand], None] | None = None  # the courier's: one errand, at once
        self.carry: Callable[[], None] | None = None  # the courier's: start a carrier for this outbox

    def put(self, errand: Errand) -> None:
        """Queue an errand; on a thread that holds, it waits for the release."""
        with self._changed:
            hold = self._holds.get(get_ident())
            if hold is not None:
                hold.errands.append(errand)
                return
            self._queue.append(errand)
        self._start_carrier()

    def hold(self) -> int:
        """Keep back what this thread puts until ``release``; returns the key for it."""
        key = get_ident()
        # Nobody holds twice: what is still held here belongs to a response that was never closed.
        self.release(key)
        with self._changed:
            self._holds[key] = _Hold()
        return key

    def on_release(self, callback: Callable[[], None]) -> bool:
        """Call back when this thread's hold is released; False when it holds nothing."""
        with self._changed:
            hold = self._holds.get(get_ident())
            if hold is not None:
                hold.callbacks.append(callback)
            return hold is not None

    def release(self, key: int) -> None:
        """Queue what was held under ``key``; a second call does nothing."""
        with self._changed:
            hold = self._holds.pop(key, None)
            if hold is None:
                return
            self._queue.extend(hold.errands)
            self._changed.notify_all()
        self._start_carrier()
        for callback in hold.callbacks:
            callback()

    def release_now(self, key: int) -> None:
        """Deliver what was held on this very thread, past the queue, and return when it is answered.

        It waits for nobody else: a receiver of the carrier's may be waiting for the request that waits here.
        """
        with self._changed:
            hold = self._holds.get(key)
            errands = list(hold.errands) if hold is not None else []
            deliver = self.deliver
        if hold is not None and deliver is not None:
            for errand in errands:
                deliver(errand)
            hold.errands.clear()
        self.release(key)

    def take(self) -> Errand | None:
        """The carrier's next errand; with None the carrier is dismissed."""
        with self._changed:
            if self._queue:
                return self._queue.popleft()
            self._is_carried = False
            self._changed.notify_all()
        self.on_idle()
        return None

    def settle(self) -> None:
        """Wait until nothing is queued, on its way or held; without a courier there is no waiting."""
        if self.carry is None:
            return
        with self._changed:
            self._changed.wait_for(lambda: self.carry is None or self.is_idle)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is queued, on its way or held."""
        with self._changed:
            held = any(hold.errands for hold in self._holds.values())
            return not (self._is_carried or self._queue or held)

    def close(self) -> None:
        """Drop what is queued or held, and carry no more; what is on its way ends by itself."""
        with self._changed:
            self.carry = self.deliver = None  # they hold the project, which shall go without the collector
            self.on_idle = lambda: None
            self._queue.clear()
            for hold in self._holds.values():
                hold.errands.clear()
            self._changed.notify_all()

    def _start_carrier(self) -> None:
        with self._changed:
            carry = self.carry
            if self._is_carried or not self._queue or carry is None:
                return
            self._is_carried = True
        carry()
