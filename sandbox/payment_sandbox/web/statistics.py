"""What a server reports about itself: its record in the list of servers, and counters since its start."""

from collections import Counter
from threading import Lock
from typing import Annotated, Literal, TypedDict


class Server(TypedDict):
    """A server of the cluster."""

    url: Annotated[str, "The server's URL for the other servers."]
    version: str
    status: Literal["ok", "draining"]
    projects: Annotated[int, "The number of projects in the server's memory."]


class Statistics:
    """Thread-safe counters of calls and webhooks."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.calls: Counter[int] = Counter()  # by status; 0 for a cut connection
        self.call_seconds = 0.0
        self.webhooks: Counter[str] = Counter()  # by outcome

    def count_call(self, status: int, seconds: float) -> None:
        """Count a call."""
        with self._lock:
            self.calls[status] += 1
            self.call_seconds += seconds

    def count_attempt(self, status: int | None) -> None:
        """Count a webhook attempt; None for an unanswered attempt."""
        outcome = "unanswered" if status is None else "delivered" if 200 <= status < 300 else "refused"
        with self._lock:
            self.webhooks[outcome] += 1
