"""A project's events as server-sent events."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from werkzeug import Request

from payment_sandbox.projects.events import Event, Events
from payment_sandbox.projects.slots import Slot

HEARTBEAT_SECONDS: Final = 15.0
NUMBER_DIGITS_MAX: Final = 18
APART_SECONDS_MAX: Final = 2.0
APART_SECONDS_PER_WATCHER: Final = 0.001  # about ten times the cost of sending to one
TEXTS_MAX: Final = 4
BEGUN: Final = ": watching\n\n"


class EventStream:
    """The event stream of one watcher, with its position."""

    heartbeat: Final = ": still here\n\n"

    def __init__(
        self,
        events: Events,
        after: int | None = None,
        apart_seconds_per_watcher: float = APART_SECONDS_PER_WATCHER,
    ) -> None:
        """Start with the next event, or after the event number ``after``.

        Events are batched for ``apart_seconds_per_watcher``, so that many watchers take a bounded share.
        """
        self.events = events
        self.apart_seconds_per_watcher = apart_seconds_per_watcher
        self._after = after
        self._number = events.number

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Count as a watcher inside."""
        try:
            with self.events.watched() as number:
                self._number = number if self._after is None else min(self._after, number)
                yield
        finally:
            if not self.events.watchers:
                self.events.slots.of(TEXTS).clear()

    def begin(self) -> str:
        """Begin the stream: report dropped events, if any, and repeat stored ones."""
        first = self.events.oldest_number()
        if self._after is None or first - 1 <= self._after <= self.events.number:
            return BEGUN + self.take()
        missed = {"after": self._after, "first_kept": first}
        return f"{BEGUN}event: missed\ndata: {json.dumps(missed)}\n\n{self.take()}"

    @property
    def apart_seconds(self) -> float:
        """The real time between batches."""
        return min(APART_SECONDS_MAX, self.apart_seconds_per_watcher * self.events.watchers)

    def take(self) -> str:
        """Take all events since the last call as one batch, because every send has its own cost."""
        text, self._number = self.events.slots.of(TEXTS).of(self.events, self._number)
        return text

    def pieces(self) -> Iterator[str]:
        """Yield the stream for a plain WSGI server, blocking between batches."""
        with self.watched():
            yield self.begin()
            while not self.events.is_ended:
                self.events.wait_beyond(self._number, HEARTBEAT_SECONDS)
                yield self.take() or self.heartbeat


class ChangeStream(EventStream):
    """The stream of an open page: it says that something has changed, and the page loads what it shows.

    The events themselves would be sent to each of many open pages, which read none of them.
    """

    def take(self) -> str:
        """Say once that there were events since the last call."""
        number, before = self.events.number, self._number
        self._number = number
        return f"id: {number}\nevent: changed\ndata: {{}}\n\n" if number != before else ""


def after_of(request: Request) -> int | None:
    """Read the number of the client's last event; browsers send it in a header when they reconnect."""
    after = request.args.get("after") or request.headers.get("Last-Event-ID", "")
    return int(after) if after.isascii() and after.isdecimal() and len(after) <= NUMBER_DIGITS_MAX else None


class Texts:
    """A cache of serialized events: most watchers ask for the same ones."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[str, int]] = {}  # by first and last number

    def clear(self) -> None:
        """Clear the cache when the last watcher has gone."""
        self._known = {}

    def of(self, events: Events, number: int) -> tuple[str, int]:
        """Serialize the events after ``number``; returns the text and the number of the last one."""
        key = (number, events.number)
        known = self._known.get(key)
        if known is None:
            new = events.beyond(number)
            known = "".join(map(_shown, new)), new[-1].number if new else number
            self._known = {**dict(list(self._known.items())[1 - TEXTS_MAX :]), key: known}
        return known


TEXTS: Final = Slot(Texts)


def _shown(event: Event) -> str:
    return f"id: {event.number}\nevent: {event.kind}\ndata: {json.dumps(event.data)}\n\n"
