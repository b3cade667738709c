"""Which event loop awaits a call; light, because every project needs it and few have a loop."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Final, Protocol

Work = Callable[[], Awaitable[None]]


class TimeLimit(Exception):
    """A coroutine took too long and was cancelled; the cause shows where it was."""


class Loop(Protocol):
    """A running event loop, for use from the threads that it started."""

    def run(self, work: Work, limit_seconds: float) -> None:
        """Run a coroutine on the loop, and return once it has ended.

        Raises:
            TimeLimit: it took longer than the limit, and was cancelled.
        """
        ...

    def call(self, work: Callable[[], None]) -> None:
        """Run a function on the loop's thread, and return once it has ended."""
        ...


CALLING_LOOP: Final[ContextVar[Loop | None]] = ContextVar("calling_loop", default=None)
"""The loop that awaits the blocking call of this thread."""
