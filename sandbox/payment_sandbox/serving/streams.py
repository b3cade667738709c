"""Event streams on the event loop: watchers need no threads, however many there are."""

from asyncio import AbstractEventLoop, Event, sleep, timeout
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from payment_sandbox.projects.events import Events
from payment_sandbox.serving.connection import Response
from payment_sandbox.web.event_stream import HEARTBEAT_SECONDS, EventStream

WOKEN_MAX: Final = 32  # at once


class Watchers:
    """Serves event streams; each publication wakes all watchers of a project with one call."""

    def __init__(self, loop: AbstractEventLoop, send_seconds: float) -> None:
        self._loop = loop
        self._send_seconds = send_seconds
        self._audiences: dict[Events, _Audience] = {}

    async def serve(self, stream: EventStream, response: Response) -> None:
        """Send events until the project ends, or the client goes or reads no more."""
        with self._listening(stream.events) as news, stream.watched():
            response.on_lost = news.set
            try:
                await self._serve(stream, news, response)
            except TimeoutError:
                response.reset()
            else:
                response.end()

    async def _serve(self, stream: EventStream, news: Event, response: Response) -> None:
        text: str | None = stream.begin()
        while text is not None and not response.is_closed:
            response.send_piece(text.encode())
            async with timeout(self._send_seconds):
                await response.drained()
            with suppress(TimeoutError):
                async with timeout(HEARTBEAT_SECONDS):
                    await news.wait()
                await sleep(stream.apart_seconds)
            news.clear()
            text = stream.take() or (None if stream.events.is_ended else stream.heartbeat)

    @contextmanager
    def _listening(self, events: Events) -> Iterator[Event]:
        audience = self._audiences.get(events)
        if audience is None:
            audience = self._audiences[events] = _Audience(self._loop)
            events.listen(audience.call)
        news = Event()
        audience.waiting.add(news)
        try:
            yield news
        finally:
            audience.waiting.discard(news)
            if not audience.waiting:
                del self._audiences[events]
                events.ignore(audience.call)


class _Audience:
    """The watchers of one project."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self.waiting: set[Event] = set()
        self._loop = loop
        self._is_called = False

    def call(self) -> None:
        """Wake all watchers soon, once for all that is published until then. To be called on any thread."""
        if not self._is_called:
            self._is_called = True
            with suppress(RuntimeError):  # the loop has stopped
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._is_called = False
        self._wake_some(list(self.waiting))

    def _wake_some(self, waiting: list[Event]) -> None:
        """Wake a few watchers, and the others when the requests that have come meanwhile were answered."""
        for news in waiting[:WOKEN_MAX]:
            news.set()
        if len(waiting) > WOKEN_MAX:
            self._loop.call_soon(self._wake_some, waiting[WOKEN_MAX:])
