"""How fast a service is asked, and how seconds pass there."""

from threading import Event, Lock
from typing import Final

from payment_sandbox.serving.realtime import monotonic_seconds

UNLIMITED: Final = 0.0


class Pace:
    """Lets at most so many calls a second begin; 0 means as fast as they are answered."""

    def __init__(self, per_second: float) -> None:
        self._gap_seconds = 1 / per_second if per_second else 0.0
        self._next_seconds = 0.0
        self._lock = Lock()

    def __call__(self) -> None:
        """Wait for the next turn."""
        if not self._gap_seconds:
            return
        with self._lock:
            now = monotonic_seconds()
            at = max(now, self._next_seconds)
            self._next_seconds = at + self._gap_seconds
        pause(at - now)


def pause(seconds: float) -> None:
    """Let real seconds pass: a server elsewhere has no clock that could be moved."""
    if seconds > 0:
        Event().wait(seconds)
