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
APART_SECONDS_PER_WATCHER: Final = 0.001  # sending to one takes about a tenth of that
TEXTS_MAX: Final = 4
BEGUN: Final = ": watching\n\n"


class EventStream:
    """What one watcher has got so far."""

    heartbeat: Final = ": still here\n\n"

    def __init__(
        self,
        events: Events,
        after: int | None = None,
        apart_seconds_per_watcher: float = APART_SECONDS_PER_WATCHER,
    ) -> None:
        """Begin with the next event, or after the one with the number ``after``.

        Events are collected for ``apart_seconds_per_watcher``, so that many watchers take a bounded share.
        """
        self.events = events
        self.apart_seconds_per_watcher = apart_seconds_per_watcher
        self._after = after
        self._number = events.number

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Count as a watcher."""
        try:
            with self.events.watched() as number:
                self._number = number if self._after is None else min(self._after, number)
                yield
        finally:
            if not self.events.watchers:
                self.events.slots.of(TEXTS).clear()

    def begin(self) -> str:
        """What the stream begins with: events that it repeats, and whether some are not kept any more."""
        first = self.events.first_kept()
        if self._after is None or first - 1 <= self._after <= self.events.number:
            return BEGUN + self.take()
        missed = {"after": self._after, "first_kept": first}
        return f"{BEGUN}event: missed\ndata: {json.dumps(missed)}\n\n{self.take()}"

    @property
    def apart_seconds(self) -> float:
        """How long to collect events before they are sent."""
        return min(APART_SECONDS_MAX, self.apart_seconds_per_watcher * self.events.watchers)

    def take(self) -> str:
        """The events since the last call, all at once: a piece costs as much to send as its content."""
        text, self._number = self.events.slots.of(TEXTS).of(self.events, self._number)
        return text

    def pieces(self) -> Iterator[str]:
        """The stream for a server that does not know better than to wait for each piece."""
        with self.watched():
            yield self.begin()
            while not self.events.is_ended:
                self.events.wait_beyond(self._number, HEARTBEAT_SECONDS)
                yield self.take() or self.heartbeat


def after_of(request: Request) -> int | None:
    """The number of the last event that the client has; browsers send a header when they reconnect."""
    after = request.args.get("after") or request.headers.get("Last-Event-ID", "")
    return int(after) if after.isascii() and after.isdecimal() and len(after) <= NUMBER_DIGITS_MAX else None


class Texts:
    """The newest texts of a project's events: most watchers ask for the same ones."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[str, int]] = {}  # by the first number and the newest one

    def clear(self) -> None:
        """Drop them: nobody watches any more."""
        self._known = {}

    def of(self, events: Events, number: int) -> tuple[str, int]:
        """The events after ``number``, and the number of the last one."""
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
