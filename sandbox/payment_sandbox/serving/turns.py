"""Turns between projects: round-robin over projects; within a project, first come, first served."""

from asyncio import AbstractEventLoop, CancelledError, Future
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock


class WaitCounter:
    """A counter of waiting or watching calls, up to ``limit`` in total and two thirds of it per project."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0
        self._by_share: Counter[str] = Counter()
        self._lock = Lock()

    def begin(self, share: str) -> bool:
        """Count a new call; return False if the limit is reached."""
        with self._lock:
            if self._count >= self._limit or self._by_share[share] >= self._limit * 2 // 3:
                return False
            self._count += 1
            self._by_share[share] += 1
            return True

    def end(self, share: str) -> None:
        """Count the end of a call."""
        with self._lock:
            self._count -= 1
            self._by_share[share] -= 1
            if not self._by_share[share]:
                del self._by_share[share]

    @contextmanager
    def count_call(self, share: str) -> Iterator[bool]:
        """Count a call in the context; yield False if the limit is reached."""
        may_wait = self.begin(share)
        try:
            yield may_wait
        finally:
            if may_wait:
                self.end(share)


class Turns:
    """Turns for calls, of which only a few have one at a time. Use them on the event loop."""

    def __init__(self, loop: AbstractEventLoop, at_once: int) -> None:
        self._loop = loop
        self._free = at_once
        self._queues: dict[str, deque[Future[None]]] = {}  # by project, the next project first

    async def take(self, share: str) -> None:
        """Wait for a turn of a project, which must be passed on."""
        if self._free:
            self._free -= 1
            return
        turn: Future[None] = self._loop.create_future()
        self._queues.setdefault(share, deque()).append(turn)
        try:
            await turn
        except CancelledError:
            if not turn.cancelled():  # the turn was granted meanwhile
                self.pass_on()
            raise

    def pass_on(self) -> None:
        """Pass a turn on to the next project."""
        while self._queues:
            share = next(iter(self._queues))
            queue = self._queues.pop(share)
            turn = queue.popleft()
            if queue:
                self._queues[share] = queue  # moved to the end
            if not turn.done():  # its client is still connected
                turn.set_result(None)
                return
        self._free += 1

    def pass_on_soon(self) -> None:
        """Pass a turn on in the next iteration of the event loop, so that other tasks run in between."""
        if self._queues:
            self.pass_on()  # the next call wakes up in the next iteration
        else:
            self._loop.call_soon(self.pass_on)


class ThreadTurn:
    """The turn of a call on a thread, passed on when the call begins to wait."""

    def __init__(self, loop: AbstractEventLoop, turns: Turns, waiting: WaitCounter, share: str) -> None:
        self._loop = loop
        self._turns = turns
        self._waiting = waiting
        self._share = share
        self._is_waiting = False

    def begin_waiting(self) -> bool:
        """Let another call run; return False if too many are waiting. Call this on the call's thread."""
        if not self._is_waiting and self._waiting.begin(self._share):
            self._is_waiting = True
            with suppress(RuntimeError):  # the loop has stopped
                self._loop.call_soon_threadsafe(self._turns.pass_on)
        return self._is_waiting

    def end(self, _: object) -> None:
        """End the turn of a finished call. Call this on the event loop."""
        if self._is_waiting:
            self._waiting.end(self._share)
        else:
            self._turns.pass_on()
