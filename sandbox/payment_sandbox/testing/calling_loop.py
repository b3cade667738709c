"""The event loop behind a blocking call. Every project loads this module, so it avoids heavy imports."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Final, Protocol

Work = Callable[[], Awaitable[None]]


class TimeLimitExceeded(Exception):
    """A coroutine exceeded its time limit and was cancelled; the cause shows its position."""


class Loop(Protocol):
    """A running event loop, for use from its worker threads."""

    def run(self, work: Work, limit_seconds: float) -> None:
        """Run a coroutine on the loop until it ends.

        Raises:
            TimeLimitExceeded: the coroutine took longer than the limit, and was cancelled.
        """
        ...

    def call(self, work: Callable[[], None]) -> None:
        """Run a function on the loop's thread, and wait until it returns."""
        ...


CALLING_LOOP: Final[ContextVar[Loop | None]] = ContextVar("calling_loop", default=None)
"""The loop that awaits the blocking call on this thread."""
