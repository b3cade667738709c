"""Event streams; one wake-up per publication for all watchers of a project."""

from asyncio import AbstractEventLoop, Event, timeout
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from aiohttp import web

from payment_sandbox.projects.events import Events
from payment_sandbox.serving.replies import PendingReply
from payment_sandbox.web.event_stream import HEARTBEAT_SECONDS, EventStream

WAKE_BATCH: Final = 16  # watchers per iteration of the event loop


class Watchers:
    """Serves event streams; each publication wakes all watchers of a project with one call."""

    def __init__(self, loop: AbstractEventLoop, send_seconds: float) -> None:
        self._loop = loop
        self._send_seconds = send_seconds
        self._audiences: dict[tuple[Events, float], _Audience] = {}

    async def serve(self, stream: EventStream, reply: PendingReply) -> web.StreamResponse:
        """Send events until the project ends, or the client disconnects or stops reading."""
        with self._listen(stream) as news, stream.watched():
            reply.when_lost(news.set)
            try:
                await self._serve(stream, news, reply)
            except TimeoutError:
                return reply.reset()
            except ConnectionError:
                return reply.cut()
            finally:
                reply.when_lost(None)
            return await reply.ended()

    async def _serve(self, stream: EventStream, news: Event, reply: PendingReply) -> None:
        text: str | None = stream.begin()
        while text is not None and not reply.is_closed:
            async with timeout(self._send_seconds):
                await reply.send(text.encode())
            with suppress(TimeoutError):
                async with timeout(HEARTBEAT_SECONDS):
                    await news.wait()
            news.clear()
            text = stream.take() or (None if stream.events.is_ended else stream.heartbeat)

    @contextmanager
    def _listen(self, stream: EventStream) -> Iterator[Event]:
        key = stream.events, stream.batch_seconds_per_watcher
        audience = self._audiences.get(key)
        if audience is None:
            audience = self._audiences[key] = _Audience(self._loop, stream)
            stream.events.listen(audience.call)
        news = Event()
        audience.waiting.add(news)
        try:
            yield news
        finally:
            audience.waiting.discard(news)
            if not audience.waiting:
                del self._audiences[key]
                stream.events.ignore(audience.call)


class _Audience:
    """The watchers of one project that are served together."""

    def __init__(self, loop: AbstractEventLoop, stream: EventStream) -> None:
        self.waiting: set[Event] = set()
        self._loop = loop
        self._stream = stream  # any of the streams: they all have the same interval
        self._is_scheduled = False

    def call(self) -> None:
        """Schedule a wake-up of all watchers, unless one is scheduled. Thread-safe."""
        if not self._is_scheduled:
            self._is_scheduled = True
            with suppress(RuntimeError):  # the loop has stopped
                self._loop.call_soon_threadsafe(self._wait)

    def _wait(self) -> None:
        """Let events accumulate for a while."""
        self._loop.call_later(self._stream.batch_seconds, self._wake)

    def _wake(self) -> None:
        self._is_scheduled = False
        self._wake_some(list(self.waiting))

    def _wake_some(self, waiting: list[Event]) -> None:
        """Wake a batch of watchers; wake the next batch after pending requests."""
        for news in waiting[:WAKE_BATCH]:
            news.set()
        if len(waiting) > WAKE_BATCH:
            self._loop.call_soon(self._wake_some, waiting[WAKE_BATCH:])
