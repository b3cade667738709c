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
LONG_VALUE_KEYS: Final = (str, list, dict)
TOO_LONG_REMARK: Final = "(too long to repeat)"


GLOBAL_KINDS: Final = ("reset", "restored")
"""The kinds of events that concern all orders."""


class Entry(Protocol):
    """A fact that watchers see as an event."""

    @property
    def order_id(self) -> str | None:
        """The id of the order, if any."""

    def summary(self) -> Mapping[str, Any]:
        """Return the data of the event, which may be expensive to build."""


class UnstoredEntry(NamedTuple):
    """A fact that only watchers see, such as a change of the clock."""

    data: Mapping[str, Any]

    @property
    def order_id(self) -> str | None:
        """The id of the order, if any."""
        return self.data.get("order_id")

    def summary(self) -> Mapping[str, Any]:
        """Return the data of the event."""
        return self.data


class Event(NamedTuple):
    """An event, such as ``status``, ``webhook``, ``request``, ``clock`` or ``decision``."""

    number: int
    kind: str
    data: Mapping[str, Any]


class StoredEvent(NamedTuple):
    """A stored event; its data is built when the event is read, because most events are never read."""

    number: int
    kind: str
    entry: Entry

    def read(self) -> Event:
        """Return the event."""
        return Event(self.number, self.kind, shorten(self.entry.summary()))


class _WaitGroup:
    """A group of threads waiting for the same events, and the number after the newest such event."""

    __slots__ = ("condition", "count", "number")

    def __init__(self, condition: Condition) -> None:
        self.condition = condition
        self.count = 0
        self.number = 0

    def wake(self, number: int) -> None:
        """Wake the threads."""
        self.number = number
        self.condition.notify_all()


class Events:
    """The newest events of a project, masked; wakes the threads that wait for the next event."""

    def __init__(self, masking: Masking | None = None) -> None:
        self.masking = masking or Masking()
        self._lock = cast(Any, ranked_lock(EVENTS))
        self._changed = Condition(self._lock)
        self._any_event = _WaitGroup(self._changed)
        self._groups_by_order: dict[str, _WaitGroup] = {}  # waiting threads, by order
        self._newest: deque[StoredEvent] = deque(maxlen=EVENTS_STORED_MAX)
        self.number = 0
        self.is_ended = False
        self._listeners: list[Callable[[], None]] = []
        self.watchers = 0
        self._waiting_count = 0

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

    def publish(self, kind: str, /, **data: Any) -> None:
        """Add an event, and wake the threads that wait for it."""
        self.add([(kind, UnstoredEntry(shorten(data)))])

    def add(self, entries: Sequence[tuple[str, Entry]]) -> None:
        """Add entries with their kinds, at once, and wake the threads that wait for them.

        The records of the journal are masked when somebody reads them.
        """
        entries = [(kind, self._mask(entry)) for kind, entry in entries]
        with self._changed:
            for kind, entry in entries:
                self.number += 1
                self._newest.append(StoredEvent(self.number, kind, entry))
            if self._groups_by_order:
                self._wake_orders(entries)
            if self._waiting_count or self._listeners:
                self._wake_watchers()

    def end(self) -> None:
        """End the events and wake all waiting threads: the project is deleted, or the server stops."""
        with self._changed:
            self.is_ended = True
            self._wake_all()
            self._listeners.clear()  # listeners may reference the project

    def add_listener(self, listener: Callable[[], None]) -> None:
        """Register a listener to call when events were added; the listener must return immediately."""
        with self._changed:
            self._listeners.append(listener)

    def remove_listener(self, listener: Callable[[], None]) -> None:
        """Unregister a listener."""
        with self._changed, suppress(ValueError):  # the events may have ended
            self._listeners.remove(listener)

    def wait_after(self, number: int, timeout_seconds: float, order_id: str | None = None) -> bool:
        """Wait for an event after ``number``; return False on timeout or after ``end``.

        With an ``order_id``, events about other orders do not end the wait.
        """
        with self._changed, self._join_group(order_id) as waiting:
            if not self.is_ended and self.number == number:
                self._waiting_count += 1
                waiting.condition.wait_for(
                    lambda: self.is_ended or waiting.number > number, max(timeout_seconds, 0.0)
                )
                self._waiting_count -= 1
            return self.number > number and not self.is_ended

    @contextmanager
    def _join_group(self, order_id: str | None) -> "Iterator[_WaitGroup]":
        """Join the threads that wait for this order, or for any event; remove an empty group."""
        if order_id is None:
            yield self._any_event
            return
        waiting = self._groups_by_order.get(order_id)
        if waiting is None:
            waiting = self._groups_by_order[order_id] = _WaitGroup(Condition(self._lock))
        waiting.count += 1
        try:
            yield waiting
        finally:
            waiting.count -= 1
            if not waiting.count:
                del self._groups_by_order[order_id]

    def oldest_number(self) -> int:
        """Return the number of the oldest stored event, or of the next event if none is stored."""
        with self._changed:
            return self.number - len(self._newest) + 1

    def events_after(self, number: int) -> list[Event]:
        """Return the stored events after ``number``."""
        return [stored.read() for stored in self.stored_after(number)]

    def stored_after(self, number: int) -> list[StoredEvent]:
        """Return the stored events after ``number``, unread."""
        with self._changed:
            count = min(self.number - number, len(self._newest))
            return [self._newest[-index] for index in range(count, 0, -1)]

    def _mask(self, entry: Entry) -> Entry:
        """Mask an entry that is not in the journal."""
        if not isinstance(entry, UnstoredEntry):
            return entry
        data = self.masking.mask_record(entry.data)
        return entry if data == entry.data else UnstoredEntry(data)

    def _wake_all(self) -> None:
        for waiting in self._groups_by_order.values():
            waiting.wake(self.number)
        self._wake_watchers()

    def _wake_orders(self, entries: Sequence[tuple[str, Entry]]) -> None:
        """Wake the threads that wait for the orders of these entries."""
        is_global = any(kind in GLOBAL_KINDS for kind, _ in entries)
        orders = self._groups_by_order if is_global else {entry.order_id for _, entry in entries}
        for order_id in orders:
            waiting = self._groups_by_order.get(order_id or "")
            if waiting is not None:
                waiting.wake(self.number)

    def _wake_watchers(self) -> None:
        """Wake the threads that wait for any event, and call the listeners."""
        self._any_event.wake(self.number)
        for listener in self._listeners:
            listener()


def shorten(data: Mapping[str, Any]) -> dict[str, Any]:
    """Replace long values, such as settings and faults, with a remark."""
    return {name: _shorten_value(value) if value else value for name, value in data.items()}


def _shorten_value(value: Any) -> Any:
    if type(value) is str:
        return TOO_LONG_REMARK if len(value) > VALUE_LENGTH_MAX else value
    is_long = isinstance(value, LONG_VALUE_KEYS) and len(str(value)) > VALUE_LENGTH_MAX
    return TOO_LONG_REMARK if is_long else value
