"""Event streams: one wake-up of the event loop per publication for all watchers of a project."""

from asyncio import AbstractEventLoop, Event, timeout
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from payment_sandbox.projects.events import Events
from payment_sandbox.serving.connection import Connection, Gradually
from payment_sandbox.web.event_stream import HEARTBEAT_SECONDS, EventStream

WAKE_BATCH: Final = 4  # watchers per iteration of the event loop


class Watchers:
    """Wakes event streams; each publication wakes all watchers of a project with one call."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._groups: dict[tuple[Events, float], _WatcherGroup] = {}

    async def events(self, stream: EventStream, connection: Connection) -> AsyncGenerator[bytes, None]:
        """Yield events until the project ends, or the client closes at least its sending side."""
        with self._listen(stream) as wakeup, stream.watching():
            connection.stream_wakeup = wakeup
            text: str | None = stream.first_batch()
            while text is not None:
                yield text.encode()
                if connection.is_half_closed:
                    return
                with suppress(TimeoutError):
                    async with timeout(HEARTBEAT_SECONDS):
                        await wakeup.wait()
                wakeup.clear()
                text = stream.next_batch() or (None if stream.events.is_ended else stream.heartbeat)

    @contextmanager
    def _listen(self, stream: EventStream) -> Iterator[Event]:
        key = stream.events, stream.batch_seconds_per_watcher
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _WatcherGroup(self._loop, stream)
            stream.events.add_listener(group.schedule_wakeup)
        wakeup = Event()
        group.waiting.add(wakeup)
        try:
            yield wakeup
        finally:
            group.waiting.discard(wakeup)
            if not group.waiting:
                del self._groups[key]
                stream.events.remove_listener(group.schedule_wakeup)


class _WatcherGroup:
    """The watchers of one project that are served together."""

    def __init__(self, loop: AbstractEventLoop, stream: EventStream) -> None:
        self.waiting: set[Event] = set()
        self._loop = loop
        self._stream = stream  # any of the streams: they all have the same interval
        self._is_scheduled = False
        self._waking = Gradually(WAKE_BATCH)

    def schedule_wakeup(self) -> None:
        """Schedule a wake-up of all watchers, unless one is scheduled. Thread-safe."""
        if not self._is_scheduled:
            self._is_scheduled = True
            with suppress(RuntimeError):  # the loop has stopped
                # events accumulate for a while
                self._loop.call_soon_threadsafe(self._loop.call_later, self._stream.batch_seconds, self._wake)

    def _wake(self) -> None:
        self._is_scheduled = False
        for wakeup in self.waiting:
            self._waking.add(wakeup.set)
