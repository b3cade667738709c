"""Calls the WSGI application: on the event loop if the request cannot wait, else on a thread."""

import logging
from asyncio import AbstractEventLoop, Future, timeout
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future as ThreadFuture
from contextlib import suppress
from email.utils import formatdate
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from payment_sandbox.serving.bodies import Bodies, Body, Receive, refusal
from payment_sandbox.serving.realtime import monotonic_seconds, wall_now
from payment_sandbox.serving.response import SentResponse
from payment_sandbox.serving.streams import SEND_SECONDS_MAX, Watchers
from payment_sandbox.serving.threads import Threads
from payment_sandbox.serving.turns import Turns
from payment_sandbox.serving.wsgi import (
    RESPONSE,
    Answer,
    CutOff,
    Head,
    Run,
    environment,
    error,
)
from payment_sandbox.web.event_loop import BEGIN_WAITING, ON_EVENT_LOOP, TOO_MANY_WAIT, MayWait
from payment_sandbox.web.event_stream import STREAM, EventStream
from payment_sandbox.web.paths import is_stream

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


LOOP_BYTES_MAX: Final = 1 << 16  # reading a larger body takes long, so it happens on a thread
WAITING_MAX: Final = 512
LOOK_AGAIN_SECONDS: Final = 1.0
STREAM_SECONDS_MAX: Final = 600.0  # for a whole response that is sent piece by piece
Send = Callable[[Any], Awaitable[None]]

log = logging.getLogger(__name__)


class LoopClosed(Exception):
    """The server has stopped."""


class NotRead(Exception):
    """The client has not read a response for a while."""


class Gateway:
    """An ASGI application that serves a WSGI application.

    ``always_on_threads`` is for an application whose every request may wait, for example for a disk.
    """

    def __init__(
        self,
        application: "WSGIApplication",
        loop: AbstractEventLoop,
        *,
        always_on_threads: bool = False,
        waiting_max: int = WAITING_MAX,
    ) -> None:
        self._application = application
        self._loop = loop
        self._always_on_threads = always_on_threads
        self._threads = Threads("request")
        self._turns = Turns(loop, waiting_max)
        self._watchers = Watchers(loop)
        self._bodies = Bodies()

    def stop(self) -> None:
        """Start no more threads; those that still run end with the process."""
        self._threads.stop()

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        response: SentResponse = scope["extensions"][RESPONSE]
        path = scope["path"]
        body = await self._bodies.receive(path, receive)
        if body is None:
            return
        try:
            await self._answer(scope, body, receive, send, response)
        finally:
            self._bodies.done(path, body)

    async def _answer(
        self, scope: Mapping[str, Any], body: Body, receive: Receive, send: Send, response: SentResponse
    ) -> None:
        refused = refusal(scope["path"], body)
        if refused is not None:
            await _send(send, refused)
            response.close_when_sent()
            return
        answer = None if self._takes_long(scope["path"], body) else self._at_once(scope, body)
        if isinstance(answer, Run):
            await self._watch(answer, receive, send, response)
            return
        if answer is None:
            answer = await self._on_thread(scope, body, send, response)
        if answer is not None:
            await self._deliver(answer, send, response)

    def _takes_long(self, path: str, body: Body) -> bool:
        """Whether a request has to run on a thread, whatever it asks for; watching never does."""
        if body.length > LOOP_BYTES_MAX:
            return True
        return self._always_on_threads and not is_stream(path)

    async def _deliver(self, answer: Answer, send: Send, response: SentResponse) -> None:
        """Send a complete response, unless its client does not read."""
        try:
            async with timeout(SEND_SECONDS_MAX if response.is_held_up else None):
                await _sent(answer, send, response)
        except TimeoutError:
            response.reset()
        except Exception:  # such as a header that HTTP does not allow
            log.exception("a response could not be sent")
            response.close_when_sent()
        finally:
            answer.close()

    def _at_once(self, scope: Mapping[str, Any], body: Body) -> Answer | Run | None:
        """The response to a request that does not wait, made here on the event loop, or a stream."""
        environ = environment(scope, *body)
        environ[ON_EVENT_LOOP] = True
        try:
            run = Run(self._application, environ)
            return run if STREAM in environ else run.whole()
        except MayWait:
            return None

    async def _watch(self, run: Run, receive: Receive, send: Send, response: SentResponse) -> None:
        """Send a stream of events."""
        stream: EventStream = run.environ[STREAM]

        async def send_part(text: str | None) -> None:
            if not response.has_begun:
                assert run.head is not None, "a stream begins with a head"
                response.expect_stream()
                await send(_start(run.head))
            if text is not None or response.ends_streams:
                await send(_part((text or "").encode(), is_last=text is None))

        try:
            with self._turns.watching() as may_watch:
                if may_watch:
                    await self._watchers.serve(stream, send_part, receive, response)
                    response.end_stream()
                else:
                    await _send(send, error(503, TOO_MANY_WAIT, retry=True))
        finally:
            run.close()

    async def _on_thread(
        self, scope: Mapping[str, Any], body: Body, send: Send, response: SentResponse
    ) -> Answer | None:
        """The response to a request that takes long or waits; None if it has been sent piece by piece."""
        done: Future[Answer | None] = self._loop.create_future()
        turn = await self._turns.next(is_large=body.length > LOOP_BYTES_MAX)

        def job() -> None:
            answer: Answer | None = error(500, "the sandbox failed; see its log")
            try:
                run = Run(self._application, {**environment(scope, *body), BEGIN_WAITING: turn.begin_waiting})
                answer = run.whole() if run.head is None or run.head.has_length else None
                if answer is None and not turn.begin_waiting():  # for a client that may read slowly
                    answer = error(503, TOO_MANY_WAIT, retry=True)._replace(close=run.close)
                if answer is None:
                    self._stream(run, send, response)
            except BaseException:  # even SystemExit ends this request only
                log.exception("a request could not be answered")
            finally:
                turn.end()
            with suppress(RuntimeError):  # the loop has stopped
                self._loop.call_soon_threadsafe(_settle, done, answer)

        self._threads.run(job)
        return await done

    def _stream(self, run: Run, send: Send, response: SentResponse) -> None:
        """Send a response of unknown length from a thread, until it ends or nobody reads it."""
        end = response.close_when_sent
        try:
            self._send_pieces(run, send, response)
            end = response.end_stream
        except CutOff:
            end = end if response.has_begun else response.reset
        except NotRead:
            end = response.reset
        except LoopClosed:
            return
        except Exception:
            log.exception("a response could not be sent to its end")
        finally:
            run.close()
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(end)

    def _send_pieces(self, run: Run, send: Send, response: SentResponse) -> None:
        assert run.head is not None, "a response without a head is an error, and whole"
        until_seconds = monotonic_seconds() + STREAM_SECONDS_MAX
        for piece in chain(run.pieces, [None]):
            if not response.has_begun:
                self._loop.call_soon_threadsafe(response.expect_stream)
                self._awaited(send, _start(run.head), until_seconds)
            if piece is not None or response.ends_streams:
                self._awaited(send, _part(piece or b"", is_last=piece is None), until_seconds)
            if response.is_closed:
                return

    def _awaited(self, send: Send, message: Mapping[str, Any], until_seconds: float) -> None:
        """Have the loop send a message, and wait until it has.

        Raises:
            NotRead: the client does not read it.
            LoopClosed: the server has stopped.
        """
        sent: ThreadFuture[None] = ThreadFuture()

        def begin() -> None:
            task = self._loop.create_task(_sending(send, message))
            task.add_done_callback(lambda _: sent.set_result(None))

        try:
            self._loop.call_soon_threadsafe(begin)
        except RuntimeError as error:
            raise LoopClosed from error
        until_seconds = min(until_seconds, monotonic_seconds() + SEND_SECONDS_MAX)
        while not sent.done():
            with suppress(TimeoutError):
                sent.result(LOOK_AGAIN_SECONDS)
            if self._loop.is_closed():
                raise LoopClosed
            if not sent.done() and monotonic_seconds() > until_seconds:
                raise NotRead


async def _sent(answer: Answer, send: Send, response: SentResponse) -> None:
    if answer.is_cut and not answer.body:
        response.reset()
        return
    await _send(send, answer)
    if answer.is_cut:
        response.close_when_sent()


async def _send(send: Send, answer: Answer) -> None:
    if answer.head is None:
        raise RuntimeError("the application did not call start_response")
    await send(_start(answer.head))
    await send(_part(answer.body, is_last=not answer.is_cut))


async def _sending(send: Send, message: Mapping[str, Any]) -> None:
    await send(message)


def _start(head: Head) -> dict[str, Any]:
    now = wall_now()
    headers = [(_latin(name.lower()), value.encode("latin-1")) for name, value in head.headers]
    headers += [(b"date", _date(int(now.timestamp()))), (b"server", b"payment-orders-sandbox")]
    return {"type": "http.response.start", "status": head.status, "headers": headers}


def _part(body: bytes, *, is_last: bool) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": not is_last}


@lru_cache(maxsize=256)
def _latin(text: str) -> bytes:
    return text.encode("latin-1")


@lru_cache(maxsize=1)
def _date(second: int) -> bytes:
    return formatdate(second, usegmt=True).encode()


def _settle(done: "Future[Answer | None]", answer: Answer | None) -> None:
    if not done.done():
        done.set_result(answer)
    elif answer is not None:
        answer.close()
