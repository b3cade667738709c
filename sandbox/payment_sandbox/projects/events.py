"""All that happens in a project, numbered, for those who watch and those who wait."""

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Condition
from typing import Any, Final, NamedTuple

EVENTS_KEPT_MAX: Final = 1000


class FeedEvent(NamedTuple):
    """One thing that happened."""

    number: int
    kind: str
    data: Mapping[str, Any]


class Feed:
    """Keeps the newest events; its condition is a leaf among the locks."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._events: deque[FeedEvent] = deque(maxlen=EVENTS_KEPT_MAX)
        self.number = 0
        self.is_ended = False
        self.watchers = 0  # who publishes often may save himself the trouble when there are none

    @contextmanager
    def watched(self) -> Iterator[int]:
        """Watch from now on; gives the number of the newest event so far."""
        with self._changed:
            self.watchers += 1
        try:
            yield self.number
        finally:
            with self._changed:
                self.watchers -= 1

    def publish(self, kind: str, /, **data: Any) -> None:
        """Number an event and wake everybody."""
        with self._changed:
            self.number += 1
            self._events.append(FeedEvent(self.number, kind, data))
            self._changed.notify_all()

    def end(self) -> None:
        """Let nobody wait any longer: the project, or its server, goes."""
        with self._changed:
            self.is_ended = True
            self._changed.notify_all()

    def wait_beyond(self, number: int, timeout_seconds: float) -> bool:
        """Wait until something newer than ``number`` has happened; False when the time, or all, is over."""
        with self._changed:
            self._changed.wait_for(lambda: self.is_ended or self.number > number, max(timeout_seconds, 0.0))
            return self.number > number and not self.is_ended

    def beyond(self, number: int) -> list[FeedEvent]:
        """The events kept that are newer than ``number``."""
        with self._changed:
            return [event for event in self._events if event.number > number]
