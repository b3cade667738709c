"""A project's events as server-sent events."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from flask import Request

from payment_sandbox.projects.events import Events, StoredEvent

HEARTBEAT_SECONDS: Final = 15.0
NUMBER_DIGITS_MAX: Final = 18
BATCH_SECONDS_MAX: Final = 2.0
BATCH_SECONDS_PER_WATCHER: Final = 0.001  # about ten times the cost of a send
FIRST_COMMENT: Final = ": watching\n\n"


class EventStream:
    """The event stream of one watcher, with its position."""

    heartbeat: Final = ": still here\n\n"

    def __init__(
        self,
        events: Events,
        after: int | None = None,
        batch_seconds_per_watcher: float = BATCH_SECONDS_PER_WATCHER,
    ) -> None:
        """Start with the next event, or after the event number ``after``.

        Events are batched for ``batch_seconds_per_watcher``, so that many watchers cost little.
        """
        self.events = events
        self.batch_seconds_per_watcher = batch_seconds_per_watcher
        self._after = after
        self._number = events.number

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count this stream as a watcher in the context."""
        with self.events.watching() as number:
            self._number = number if self._after is None else min(self._after, number)
            yield

    def first_batch(self) -> str:
        """Begin the stream: report dropped events, if any, and repeat stored ones."""
        first = self.events.oldest_number()
        if self._after is None or first - 1 <= self._after <= self.events.number:
            return FIRST_COMMENT + self.next_batch()
        missed = {"after": self._after, "first_kept": first}
        return f"{FIRST_COMMENT}event: missed\ndata: {json.dumps(missed)}\n\n{self.next_batch()}"

    @property
    def batch_seconds(self) -> float:
        """The real time between batches."""
        return min(BATCH_SECONDS_MAX, self.batch_seconds_per_watcher * self.events.watchers)

    def next_batch(self) -> str:
        """Return all events since the last call as one batch, because every send is expensive."""
        events = self.events.events_after(self._number)
        self._number = events[-1].number if events else self._number
        return "".join(map(_serialize, events))

    def chunks(self) -> Iterator[str]:
        """Yield the stream for a plain WSGI server, blocking between batches."""
        with self.watching():
            yield self.first_batch()
            while not self.events.is_ended:
                self.events.wait_after(self._number, HEARTBEAT_SECONDS)
                yield self.next_batch() or self.heartbeat


class ChangeStream(EventStream):
    """The stream of an open page: signals changes, after which the page reloads its content.

    The events themselves are not streamed, because open pages do not read them.
    """

    def next_batch(self) -> str:
        """Return one signal if events have occurred since the last call."""
        number, before = self.events.number, self._number
        self._number = number
        return f"id: {number}\nevent: changed\ndata: {{}}\n\n" if number != before else ""


def last_event_number(request: Request) -> int | None:
    """Read the number of the client's last event; browsers send it in a header when they reconnect."""
    after = request.args.get("after") or request.headers.get("Last-Event-ID", "")
    return int(after) if after.isascii() and after.isdecimal() and len(after) <= NUMBER_DIGITS_MAX else None


def _serialize(event: StoredEvent) -> str:
    return f"id: {event.number}\nevent: {event.kind}\ndata: {json.dumps(event.data)}\n\n"
