"""Event streams on the event loop: watchers need no threads, however many there are."""

from asyncio import AbstractEventLoop, Event, sleep, timeout
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from payment_sandbox.projects.events import Events
from payment_sandbox.serving.bodies import Receive
from payment_sandbox.serving.response import SentResponse
from payment_sandbox.web.event_stream import HEARTBEAT_SECONDS, EventStream

WOKEN_MAX: Final = 32  # at once
SEND_SECONDS_MAX: Final = 30.0  # for a piece of a response that the client does not read

SendPart = Callable[[str | None], Awaitable[None]]
"""Sends a piece of a response; None ends it."""


class Watchers:
    """Serves event streams; each publication wakes all watchers of a project with one call."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._audiences: dict[Events, _Audience] = {}

    async def serve(
        self, stream: EventStream, send: SendPart, receive: Receive, response: SentResponse
    ) -> None:
        """Send events until the project ends, or the client goes or reads no more."""
        with self._listening(stream.events) as news, stream.watched():
            gone = self._loop.create_task(_gone(receive, news))
            try:
                await self._serve(stream, send, news, response)
            except TimeoutError:
                response.reset()
            finally:
                gone.cancel()

    async def _serve(self, stream: EventStream, send: SendPart, news: Event, response: SentResponse) -> None:
        text: str | None = stream.begin()
        while not response.is_closed:
            async with timeout(SEND_SECONDS_MAX):
                await send(text)
            if text is None:
                return
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


async def _gone(receive: Receive, news: Event) -> None:
    """Wake a watcher whose client has gone."""
    message: Mapping[str, Any] = {}
    while message.get("type") != "http.disconnect":
        message = await receive()
    news.set()
