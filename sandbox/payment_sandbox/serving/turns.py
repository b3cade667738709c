"""Which requests run on threads at once: a few that work, and many that wait."""

from asyncio import AbstractEventLoop
from asyncio import Semaphore as LoopSemaphore
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Semaphore
from typing import Final

RUNNING_MAX: Final = 8  # more would only slow each other down
READING_MAX: Final = 1  # of large bodies: the interpreter does nothing else while it parses one


class Turns:
    """Hands out turns; to be used on the event loop."""

    def __init__(self, loop: AbstractEventLoop, waiting_max: int) -> None:
        self._loop = loop
        self._running = LoopSemaphore(RUNNING_MAX)
        self._reading = LoopSemaphore(READING_MAX)
        self._waiting = Semaphore(waiting_max)

    @contextmanager
    def watching(self) -> Iterator[bool]:
        """Wait without a thread; False if too many wait already."""
        may_wait = self._waiting.acquire(blocking=False)
        try:
            yield may_wait
        finally:
            if may_wait:
                self._waiting.release()

    async def next(self, *, is_large: bool) -> "Turn":
        """Wait for a turn; ``is_large`` says whether a large body is to be read."""
        turns = self._reading if is_large else self._running
        await turns.acquire()
        return Turn(self._loop, turns, self._waiting)


class Turn:
    """A request's turn to run on a thread; it passes to another one when the request begins to wait."""

    def __init__(self, loop: AbstractEventLoop, running: LoopSemaphore, waiting: Semaphore) -> None:
        self._loop = loop
        self._running = running
        self._waiting = waiting
        self._is_waiting = False

    def begin_waiting(self) -> bool:
        """Let another request run; False if too many wait already. To be called on the request's thread."""
        if not self._is_waiting and self._waiting.acquire(blocking=False):
            self._is_waiting = True
            self._pass_on()
        return self._is_waiting

    def end(self) -> None:
        """End the request. To be called on its thread."""
        if self._is_waiting:
            self._waiting.release()
        else:
            self._pass_on()

    def _pass_on(self) -> None:
        with suppress(RuntimeError):  # the loop has stopped
            self._loop.call_soon_threadsafe(self._running.release)
