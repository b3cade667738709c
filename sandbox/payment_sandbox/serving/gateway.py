"""From the socket to the view: reads a request, runs its call, and sends the response.

aiohttp parses a request and calls ``Gateway.answer``, which reads the body, lets ``serving/placing.py``
decide where the call runs, runs it there, and sends the response: whole, in pieces, or as an event stream.
"""

from asyncio import AbstractEventLoop, CancelledError, Future, shield, timeout
from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING, Final, NamedTuple

from aiohttp import HttpVersion10, HttpVersion11, web_request, web_response
from aiohttp.hdrs import EXPECT, METH_CONNECT, TRANSFER_ENCODING
from flask import Response

from payment_sandbox.serving.connection import HEAD_BYTES_MAX, HEAD_TOO_LONG, Connection
from payment_sandbox.serving.pools import Places, Pool
from payment_sandbox.serving.replies import Reply, error
from payment_sandbox.serving.threads import Threads
from payment_sandbox.serving.watchers import Watchers
from payment_sandbox.serving.wsgi import environment
from payment_sandbox.web.bodies import BODY_BYTES_MAX, STATE_BYTES_MAX
from payment_sandbox.web.call import Call, ClientConnection, Placement
from payment_sandbox.web.statistics import Statistics

if TYPE_CHECKING:
    from payment_sandbox.serving.app import SandboxApp

STARTS_MAX: Final = 8  # calls that start in one iteration of the event loop, each of another project
SLOW_MAX: Final = 8
SLOW_MAX_PER_PROJECT: Final = 3
STREAM_SECONDS_MAX: Final = 600.0  # the longest time to stream one response
SNAPSHOTS_BUSY: Final = "too many snapshots are being received; try again later"
TOO_MANY_WAIT: Final = "too many calls are waiting; retry once some of them have finished"
CONTINUE_RESPONSE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class Limits(NamedTuple):
    """The concurrency limits of a server."""

    connections: int = 4800  # the system's open-file limit may allow fewer
    waiting: int = 1024  # waiting calls, each on a thread; at most two thirds for one project
    watching: int = 3000  # event streams; at most two thirds for one project
    snapshots_bytes: int = 1 << 30  # the memory for all snapshots being received
    send_seconds: float = 30.0  # the longest wait for the client to read a piece of a response
    silent_seconds: float = 10.0  # the longest wait for the client to send a piece of a body
    body_seconds: float = 30.0  # the longest time for a body
    snapshot_seconds: float = 600.0  # the longest time for a body that may be large, sent with a key


class Gateway:
    """Uses an application to answer the requests on all connections."""

    def __init__(
        self,
        application: "SandboxApp",
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
        self._snapshots_bytes: dict[str, int] = {}  # reserved for the snapshots being received, by project
        self._threads = Threads("request")
        self._starts = Places(STARTS_MAX, 1)
        self._slow = Pool(loop, self._threads, SLOW_MAX, SLOW_MAX_PER_PROJECT)
        self._waiting = Pool(loop, self._threads, limits.waiting, limits.waiting * 2 // 3)
        self._watching = Places(limits.watching, limits.watching * 2 // 3)
        self._watchers = Watchers(loop, limits.send_seconds)

    def stop(self) -> None:
        """Start no more threads; running threads end with the process."""
        self._threads.stop()

    async def answer(self, http: web_request.BaseRequest) -> web_response.StreamResponse:
        """Answer a request; aiohttp cancels this when the client disconnects."""
        started_seconds = self._loop.time()
        reply = Reply(http, closes_connection=self._is_draining())
        try:
            if http.version not in (HttpVersion10, HttpVersion11):
                return reply.reset()
            if (refusal := _refuse(http)) is not None:
                return await reply.send(refusal)
            if not http.body_exists:
                return await self._answer(http, reply, BytesIO(), 0)
            if _may_be_large(http) and (call := self._place_large(http)) is not None:
                return await self._answer_snapshot(http, reply, call)
            return await self._answer(
                http, reply, *await self._read(http, BODY_BYTES_MAX, self._limits.body_seconds)
            )
        except TimeoutError:  # the client is neither sending nor reading
            return reply.reset()
        except ConnectionError:  # the client has disconnected, or the application cuts the connection
            return reply.cut()
        except Exception:  # answered by the connection
            reply.status = 500
            raise
        finally:
            self._count(reply.status, self._loop.time() - started_seconds)

    def _place_large(self, http: web_request.BaseRequest) -> Call | None:
        """Return the call for a request before its large body arrives; None if its route takes none."""
        client = ClientConnection(http.raw_headers, has_event_loop=True)
        call = self._application.place(
            environment(http, BytesIO(), 0), http.content_length or STATE_BYTES_MAX, client
        )
        return call if call.route is not None and call.route.facts.admit is not None else None

    async def _answer_snapshot(
        self, http: web_request.BaseRequest, reply: Reply, call: Call
    ) -> web_response.StreamResponse:
        """Answer a request with a large body, if its sender may send one, and there is memory for it."""
        checking = await self._slow.start(call.group, lambda: self._application.admit(call))
        if (refusal := await shield(checking)) is not None:
            return await reply.send(refusal)
        project_id = call.project.project_id
        reserved = min(http.content_length or STATE_BYTES_MAX, STATE_BYTES_MAX)
        in_all = sum(self._snapshots_bytes.values()) + reserved
        if project_id in self._snapshots_bytes or in_all > self._limits.snapshots_bytes:
            return await reply.send(error(503, SNAPSHOTS_BUSY, retry=True))
        self._snapshots_bytes[project_id] = reserved
        try:
            return await self._answer(
                http, reply, *await self._read(http, STATE_BYTES_MAX, self._limits.snapshot_seconds)
            )
        finally:
            del self._snapshots_bytes[project_id]

    async def _read(
        self, http: web_request.BaseRequest, bytes_max: int, seconds_max: float
    ) -> tuple[BytesIO, int]:
        """Read a body up to its limit; return it and its length. aiohttp drops the rest of a longer one."""
        body, length = BytesIO(), http.content_length or 0
        if length > bytes_max:  # the application will refuse it
            return body, length
        is_expected = http.headers.get(EXPECT, "").lower() == "100-continue" and http.version == HttpVersion11
        if is_expected and http.transport is not None:
            http.transport.write(CONTINUE_RESPONSE)
        until_seconds = self._loop.time() + seconds_max
        while body.tell() <= bytes_max and not http.content.at_eof():
            if not http.content.is_eof() and _connection(http).is_half_closed:
                http.protocol.force_close()
                raise ConnectionError("the rest of the body cannot arrive")
            async with timeout(min(self._limits.silent_seconds, until_seconds - self._loop.time())):
                body.write(await http.content.readany())
        length = body.tell()
        body.seek(0)
        return body, length

    async def _answer(
        self, http: web_request.BaseRequest, reply: Reply, body: BytesIO, length: int
    ) -> web_response.StreamResponse:
        """Answer a request with this body; ``length`` is that of the whole body."""
        client, connection = ClientConnection(http.raw_headers, has_event_loop=True), _connection(http)
        call = self._application.place(environment(http, body, length), length, client)
        connection.places.waiting.pop(connection, None)  # the server works on it, so it keeps its place
        response = await self._run(call)
        if call.stream is None:
            connection.places.begin_waiting(connection, connection.abort)
        if call.stream is None and response.is_streamed and "Content-Length" not in response.headers:
            return await self._send_pieces(call, response, reply)
        try:
            if call.stream is not None:
                return await self._watch(http, call, response, reply)
            async with timeout(self._limits.send_seconds):
                return await reply.send(response)
        finally:
            response.close()  # releases the held webhooks

    async def _run(self, call: Call) -> Response:
        """Run a call where it was placed; one call of a project starts in each iteration of the loop."""
        self._loop.call_soon(await self._starts.take(call.group))
        if call.placement is Placement.EVENT_LOOP:
            return self._application.respond(call)
        if call.placement is Placement.WAITING and not self._waiting.has_free(call.group):
            return error(503, TOO_MANY_WAIT, retry=True)
        pool = self._slow if call.placement is Placement.SLOW else self._waiting
        running = await pool.start(call.group, lambda: self._application.respond(call))
        try:
            return await shield(running)
        except CancelledError:  # the client has disconnected, and the thread goes on
            running.add_done_callback(lambda done: done.result().close())
            raise

    async def _watch(
        self, http: web_request.BaseRequest, call: Call, response: Response, reply: Reply
    ) -> web_response.StreamResponse:
        """Send an event stream."""
        assert call.stream is not None, "the response is an event stream"
        if not self._watching.has_free(call.group):
            return await reply.send(error(503, TOO_MANY_WAIT, retry=True))
        give_back = await self._watching.take(call.group)
        connection = _connection(http)
        try:
            await reply.begin(response)
            await self._watchers.serve(call.stream, reply, connection)
            connection.places.begin_waiting(connection, connection.abort)
            return await reply.end()
        finally:
            give_back()

    async def _send_pieces(self, call: Call, response: Response, reply: Reply) -> web_response.StreamResponse:
        """Send a response of unknown length, whose pieces are produced on threads."""
        pieces = iter(response.get_app_iter(call.request.environ))
        producing: Future[bytes | None] | None = None
        is_begun = False
        try:
            async with timeout(STREAM_SECONDS_MAX):
                while True:
                    producing = await self._slow.start(call.group, lambda: next(pieces, None))
                    piece = await shield(producing)
                    if not is_begun:
                        await reply.begin(response)
                        is_begun = True
                    if piece is None:
                        return await reply.end()
                    async with timeout(self._limits.send_seconds):
                        await reply.send_piece(piece)
        finally:
            if producing is None:
                response.close()
            else:  # a thread may still be producing a piece
                producing.add_done_callback(lambda _: response.close())


def _connection(http: web_request.BaseRequest) -> Connection:
    assert isinstance(http.protocol, Connection), "the server accepts no others"
    return http.protocol


def _may_be_large(http: web_request.BaseRequest) -> bool:
    return http.content_length is None or http.content_length > BODY_BYTES_MAX


def _refuse(http: web_request.BaseRequest) -> Response | None:
    """Return the error for a request that no application reads; None for others."""
    if sum([len(name) + len(value) for name, value in http.raw_headers]) > HEAD_BYTES_MAX:
        return error(431, HEAD_TOO_LONG)
    if not http.body_exists:
        return None
    if http.method == METH_CONNECT:
        return error(400, "this server is not a proxy")
    if http.headers.get(TRANSFER_ENCODING, "chunked").lower() != "chunked":
        return error(501, "the only supported Transfer-Encoding is chunked")
    if (http.content_length or 0) > STATE_BYTES_MAX:
        return error(413, f"the body is over {STATE_BYTES_MAX} bytes")
    return None
