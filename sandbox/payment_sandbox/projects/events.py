"""Numbered events of a project, for watchers and waiting requests."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import Condition
from typing import Any, Final, NamedTuple, Protocol, cast

from payment_sandbox.kernel.masking import Masking
from payment_sandbox.projects.locks import EVENTS, ranked_lock

EVENTS_STORED_MAX: Final = 1000
VALUE_LENGTH_MAX: Final = 4000
LONG_VALUES: Final = (str, list, dict)
TOO_LONG_REMARK: Final = "(too long to repeat)"


class Entry(Protocol):
    """A fact that watchers see as an event."""

    def summary(self) -> Mapping[str, Any]:
        """Return the data of the event, which may be expensive to build."""


class Notice(NamedTuple):
    """A fact that only watchers see, such as a change of the clock."""

    data: Mapping[str, Any]

    def summary(self) -> Mapping[str, Any]:
        """Return the data of the event."""
        return self.data


class StoredEvent(NamedTuple):
    """An event, such as ``status``, ``webhook``, ``request``, ``clock`` or ``decision``."""

    number: int
    kind: str
    entry: Entry

    @property
    def data(self) -> dict[str, Any]:
        """The data, which is built when it is read, because most events are never read."""
        return shorten(self.entry.summary())


class Events:
    """The newest events of a project, masked; wakes the threads that wait for the next event."""

    def __init__(self, masking: Masking | None = None) -> None:
        self.masking = masking or Masking()
        self._changed = Condition(cast(Any, ranked_lock(EVENTS)))
        self._newest: deque[StoredEvent] = deque(maxlen=EVENTS_STORED_MAX)
        self.number = 0
        self.is_ended = False
        self._listeners: list[Callable[[], None]] = []
        self.watchers = 0
        self.waiting_count = 0

    @contextmanager
    def watching(self) -> Iterator[int]:
        """Count the caller as a watcher; yield the number of the newest event."""
        with self._changed:
            self.watchers += 1
        try:
            yield self.number
        finally:
            with self._changed:
                self.watchers -= 1

    def notice(self, **data: Any) -> Notice:
        """Return the entry of a fact that only watchers see, masked."""
        return Notice(self.masking.mask_record(shorten(data)))

    def publish(self, kind: str, /, **data: Any) -> None:
        """Add an event, and wake the threads that wait for it."""
        self.add([(kind, self.notice(**data))])

    def add(self, entries: Sequence[tuple[str, Entry]]) -> None:
        """Add masked entries with their kinds, at once, and wake the threads that wait for the next event."""
        with self._changed:
            for kind, entry in entries:
                self.number += 1
                self._newest.append(StoredEvent(self.number, kind, entry))
            if self.waiting_count:
                self._changed.notify_all()
            for listener in self._listeners:
                listener()

    def end(self) -> None:
        """End the events and wake all waiting threads: the project is deleted, or the server stops."""
        with self._changed:
            self.is_ended = True
            self._changed.notify_all()
            for listener in self._listeners:
                listener()
            self._listeners.clear()  # listeners may reference the project

    def add_listener(self, listener: Callable[[], None]) -> None:
        """Register a listener to call when events were added; the listener must return immediately."""
        with self._changed:
            self._listeners.append(listener)

    def remove_listener(self, listener: Callable[[], None]) -> None:
        """Unregister a listener."""
        with self._changed, suppress(ValueError):  # the events may have ended
            self._listeners.remove(listener)

    def wait_after(self, number: int, timeout_seconds: float) -> bool:
        """Wait for an event after ``number``; return False on timeout or after ``end``."""
        with self._changed:
            self.waiting_count += 1
            self._changed.wait_for(lambda: self.is_ended or self.number > number, max(timeout_seconds, 0.0))
            self.waiting_count -= 1
            return self.number > number and not self.is_ended

    def oldest_number(self) -> int:
        """Return the number of the oldest stored event, or of the next event if none is stored."""
        with self._changed:
            return self.number - len(self._newest) + 1

    def events_after(self, number: int) -> list[StoredEvent]:
        """Return the stored events after ``number``."""
        with self._changed:
            count = min(self.number - number, len(self._newest))
            return [self._newest[-index] for index in range(count, 0, -1)]


def shorten(data: Mapping[str, Any]) -> dict[str, Any]:
    """Replace long values, such as settings and faults, with a remark."""
    return {
        name: TOO_LONG_REMARK
        if isinstance(value, LONG_VALUES) and len(value) and len(str(value)) > VALUE_LENGTH_MAX
        else value
        for name, value in data.items()
    }
