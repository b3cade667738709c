"""Which requests run on threads at once: a few that work, and many that wait."""

from asyncio import AbstractEventLoop
from asyncio import Semaphore as LoopSemaphore
from contextlib import suppress
from threading import Semaphore
from typing import Final

RUNNING_MAX: Final = 8  # more would only slow each other down


class Turns:
    """Hands out turns; to be used on the event loop."""

    def __init__(self, loop: AbstractEventLoop, waiting_max: int) -> None:
        self.loop = loop
        self.running = LoopSemaphore(RUNNING_MAX)
        self.waiting = Semaphore(waiting_max)

    async def next(self) -> "Turn":
        """Wait for a turn."""
        await self.running.acquire()
        return Turn(self)


class Turn:
    """A request's turn to run on a thread; it passes to another one when the request begins to wait."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._is_waiting = False

    def begin_waiting(self) -> bool:
        """Let another request run; False if too many wait already. To be called on the request's thread."""
        if not self._is_waiting and self._turns.waiting.acquire(blocking=False):
            self._is_waiting = True
            self._pass_on()
        return self._is_waiting

    def end(self) -> None:
        """End the request. To be called on its thread."""
        if self._is_waiting:
            self._turns.waiting.release()
        else:
            self._pass_on()

    def _pass_on(self) -> None:
        with suppress(RuntimeError):  # the loop has stopped
            self._turns.loop.call_soon_threadsafe(self._turns.running.release)
