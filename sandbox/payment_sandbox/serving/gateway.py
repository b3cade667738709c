"""From the socket to the view: reads a request, runs its call in its turn, and sends the response."""

import logging
from asyncio import AbstractEventLoop, CancelledError, Future, shield, timeout
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Final, NamedTuple

from aiohttp import HttpVersion10, HttpVersion11, web
from aiohttp.hdrs import EXPECT, METH_CONNECT, TRANSFER_ENCODING

from payment_sandbox.serving.replies import PendingReply
from payment_sandbox.serving.threads import Threads
from payment_sandbox.serving.turns import FairPool, Turn, Turns, WaitCounter
from payment_sandbox.serving.watchers import Watchers
from payment_sandbox.serving.wsgi import Application, BufferedResponse, Run, environment, error
from payment_sandbox.web.addresses import accepts_snapshot
from payment_sandbox.web.bodies import BODY_BYTES_MAX, STATE_BYTES_MAX
from payment_sandbox.web.call import TOO_MANY_WAIT, Call, ClientConnection, ConnectionCut, Placement
from payment_sandbox.web.statistics import Statistics

RUNNING_CALLS_MAX: Final = 2  # more threads would only slow down one another and the event loop
RUNNING_CALLS_MAX_SHARED: Final = 12  # with a database, threads are mostly waiting for it
READING_MAX: Final = 1  # the number of concurrent calls with large bodies; parsing blocks the interpreter
STREAM_SECONDS_MAX: Final = 600.0  # the longest time to stream one response
HEAD_BYTES_MAX: Final = 16 << 10  # the limit for the headers of a request
HEAD_TOO_LONG: Final = f"the request line and headers are over {HEAD_BYTES_MAX} bytes"
SNAPSHOTS_BUSY: Final = "too many snapshots are being received; try again later"
SILENT_SECONDS: Final = 60.0  # the longest wait for the next piece of a body
CONTINUE_RESPONSE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

log = logging.getLogger(__name__)


class Limits(NamedTuple):
    """The concurrency limits of a server."""

    connections: int = 4800  # the system's open-file limit may allow fewer
    waiting: int = 1024  # waiting calls, each on a thread; at most two thirds for one project
    watching: int = 3000  # event streams; at most two thirds for one project
    snapshots_bytes: int = 1 << 30  # the memory for all snapshots being received
    send_seconds: float = 30.0  # the longest wait for the client to read a piece of a response


class Gateway:
    """Uses an application to answer the requests on all connections."""

    def __init__(
        self,
        application: Application,
        loop: AbstractEventLoop,
        limits: Limits,
        statistics: Statistics,
        is_draining: Callable[[], bool] | None,
    ) -> None:
        """Create a gateway; ``is_draining`` is set if several servers share their projects."""
        self._application = application
        self._loop = loop
        self._limits = limits
        self._count = statistics.count_call
        self._is_draining = is_draining or (lambda: False)
        self._snapshots_bytes = 0  # the memory reserved for snapshots being received
        self._threads = Threads("request")
        waiting = WaitCounter(limits.waiting)
        running_max = RUNNING_CALLS_MAX if is_draining is None else RUNNING_CALLS_MAX_SHARED
        self._working = FairPool(loop, self._threads, running_max, waiting)
        self._reading = FairPool(loop, self._threads, READING_MAX, waiting)
        self._turns = Turns(loop)
        self._watching = WaitCounter(limits.watching)
        self._watchers = Watchers(loop, limits.send_seconds)

    def stop(self) -> None:
        """Start no more threads; running threads end with the process."""
        self._threads.stop()

    async def answer(self, http: web.BaseRequest) -> web.StreamResponse:
        """Answer a request; aiohttp cancels this when the client disconnects."""
        started_seconds = self._loop.time()
        reply = PendingReply(http, closes_connection=self._is_draining())
        try:
            if http.version not in (HttpVersion10, HttpVersion11):
                return reply.reset()
            if sum([len(name) + len(value) for name, value in http.raw_headers]) > HEAD_BYTES_MAX:
                return await reply.send_response(error(431, HEAD_TOO_LONG))
            if not http.body_exists:
                return await self._answer(http, reply, BytesIO(), 0)
            if refusal := _refuse_body(http):
                return await reply.send_response(refusal)
            bytes_max = STATE_BYTES_MAX if accepts_snapshot(http.path) else BODY_BYTES_MAX
            with self._reserve_memory(http.content_length, bytes_max) as has_room:
                if not has_room:
                    return await reply.send_response(error(503, SNAPSHOTS_BUSY, retry=True))
                body = BytesIO()
                return await self._answer(http, reply, body, await _read(http, body, bytes_max))
        except TimeoutError:  # the client is neither sending nor reading
            return reply.reset()
        except ConnectionError:
            return reply.cut()
        finally:
            self._count(reply.status, self._loop.time() - started_seconds)

    @contextmanager
    def _reserve_memory(self, length: int | None, bytes_max: int) -> Iterator[bool]:
        """Reserve memory for a snapshot in the context; yield False if there is not enough."""
        reserved = min(length or bytes_max, bytes_max) if bytes_max > BODY_BYTES_MAX else 0
        self._snapshots_bytes += reserved
        try:
            yield reserved == 0 or self._snapshots_bytes <= self._limits.snapshots_bytes
        finally:
            self._snapshots_bytes -= reserved

    async def _answer(
        self, http: web.BaseRequest, reply: PendingReply, body: BytesIO, length: int
    ) -> web.StreamResponse:
        """Answer a request with this body; ``length`` is that of the whole body."""
        client = ClientConnection(http.raw_headers, has_event_loop=True)
        try:
            call = self._application.place(environment(http, body, length), length, client)
        except Exception:
            log.exception("a request could not be routed")
            return await reply.send_response(error(500, "the sandbox failed; see its log"))
        return await self._respond(await self._run(call, client), reply)

    async def _respond(self, run: Run, reply: PendingReply) -> web.StreamResponse:
        """Send the application's response without a thread, then end the call."""
        if run.answer is None and run.call.stream is None:
            return await self._send_pieces(run, reply)
        try:
            if run.answer is None or run.call.stream is not None:
                return await self._watch(run, reply)
            async with timeout(self._limits.send_seconds):
                return await reply.send_response(run.answer)
        finally:
            run.close()

    async def _run(self, call: Call, client: ClientConnection) -> Run:
        """Run a call in its project's turn."""
        if call.placement is Placement.EVENT_LOOP:
            if not self._turns.take():
                await self._turns.wait(call.share)
            return Run(self._application, call)

        def run(turn: Turn) -> Run:
            client.begin_waiting = turn.begin_waiting
            return Run(self._application, call)

        pool = self._reading if call.placement is Placement.READING_THREAD else self._working
        running = pool.run(call.share, run)
        try:
            return await shield(running)
        except CancelledError:
            running.add_done_callback(lambda done: done.result().close())
            raise

    async def _watch(self, run: Run, reply: PendingReply) -> web.StreamResponse:
        """Send an event stream."""
        stream = run.call.stream
        with self._watching.count_call(run.call.share) as may_watch:
            if not may_watch or run.head is None or stream is None:
                return await reply.send_response(error(503, TOO_MANY_WAIT, retry=True))
            await reply.begin(run.head)
            await self._watchers.serve(stream, reply)
            return await reply.end()

    async def _send_pieces(self, run: Run, reply: PendingReply) -> web.StreamResponse:
        """Send a response of unknown length, whose pieces are produced on threads."""
        assert run.head is not None, "a response without a head is an error, and short"
        pieces = iter(run.pieces)
        producing: Future[bytes | None] | None = None

        def produce() -> "Future[bytes | None]":
            nonlocal producing
            producing = self._working.run(run.call.share, lambda turn: next(pieces, None))
            return shield(producing)

        try:
            async with timeout(STREAM_SECONDS_MAX):
                piece = await produce()
                await reply.begin(run.head)
                while piece is not None:
                    async with timeout(self._limits.send_seconds):
                        await reply.send(piece)
                    piece = await produce()
                return await reply.end()
        except ConnectionCut:
            return reply.cut()
        finally:
            if producing is not None:  # a thread may still be producing a piece
                producing.add_done_callback(lambda _: run.close())


def _refuse_body(http: web.BaseRequest) -> BufferedResponse | None:
    """Return the error for a body that no application reads; None for others."""
    if http.method == METH_CONNECT:
        return error(400, "this server is not a proxy")
    if http.headers.get(TRANSFER_ENCODING, "chunked").lower() != "chunked":
        return error(501, "the only supported Transfer-Encoding is chunked")
    if (http.content_length or 0) > STATE_BYTES_MAX:
        return error(413, f"the body is over {STATE_BYTES_MAX} bytes")
    return None


async def _read(http: web.BaseRequest, body: BytesIO, bytes_max: int) -> int:
    """Read a body up to its limit, and return its length; aiohttp drops the rest of a longer one."""
    length = http.content_length or 0
    if length > bytes_max:  # the application will refuse it
        return length
    is_expected = http.headers.get(EXPECT, "").lower() == "100-continue" and http.version == HttpVersion11
    if is_expected and http.transport is not None:
        http.transport.write(CONTINUE_RESPONSE)
    while body.tell() <= bytes_max and not http.content.at_eof():
        async with timeout(SILENT_SECONDS):
            body.write(await http.content.readany())
    length = body.tell()
    body.seek(0)
    return length
