"""From the socket to the view: reads a request, runs its call, and sends the response.

aiohttp parses a request and calls ``Gateway.answer``. The route of its call is known before the body arrives;
then ``serving/placing.py`` decides where the call runs. Its response is sent whole, in pieces, or as an event
stream.
"""

from asyncio import AbstractEventLoop, CancelledError, run_coroutine_threadsafe, shield, sleep, timeout, wait
from collections.abc import AsyncGenerator, Iterable
from concurrent.futures import CancelledError as FutureCancelledError
from contextlib import suppress
from io import BytesIO
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from aiohttp import web_request, web_response
from aiohttp.hdrs import EXPECT, METH_CONNECT, TRANSFER_ENCODING
from aiohttp.http import HttpVersion10, HttpVersion11
from werkzeug.wrappers import Response

from payment_sandbox.serving.connection import HEAD_BYTES_MAX, HEAD_TOO_LONG, Connection
from payment_sandbox.serving.placing import Placement, Places, Pool, place
from payment_sandbox.serving.replies import HttpReply, error
from payment_sandbox.serving.threads import Threads
from payment_sandbox.serving.watchers import Watchers
from payment_sandbox.serving.wsgi import environment
from payment_sandbox.web.bodies import BODY_BYTES_MAX, STATE_BYTES_MAX
from payment_sandbox.web.call import Call, ClientConnection

if TYPE_CHECKING:
    from payment_sandbox.serving.app import SandboxApp

STARTS_MAX: Final = 8  # calls that start in one iteration of the event loop, each of another project
SLOW_MAX: Final = 8
SLOW_MAX_PER_PROJECT: Final = 3
STREAM_SECONDS_MAX: Final = 600.0  # the longest time to send one response in pieces
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


class Client(ClientConnection):
    """The connection to a client of a gateway, whose event loop measures the pauses of calls."""

    __slots__ = ("_gateway",)

    def __init__(self, gateway: "Gateway", headers: Iterable[tuple[bytes, bytes]]) -> None:
        super().__init__(headers)
        self._gateway = gateway

    def pause(self, group: str, seconds: float) -> None:
        """Pass real time on the thread of a call that may wait."""
        with suppress(FutureCancelledError):  # the server stops
            run_coroutine_threadsafe(self._gateway.pause(group, seconds), self._gateway.loop).result()


class Gateway:
    """Uses an application to answer the requests on all connections."""

    def __init__(self, application: "SandboxApp", loop: AbstractEventLoop, limits: Limits) -> None:
        self._application = application
        self.loop = loop
        self._limits = limits
        self._snapshots_bytes: dict[str, int] = {}  # reserved for the snapshots being received, by project
        self._threads = Threads("request")
        self._starts = Places(STARTS_MAX, 1)
        self._slow = Pool(loop, self._threads, SLOW_MAX, SLOW_MAX_PER_PROJECT)
        self._waiting = Pool(loop, self._threads, limits.waiting, limits.waiting * 2 // 3)
        self._watching = Places(limits.watching, limits.watching * 2 // 3)
        self._watchers = Watchers(loop)

    def stop(self) -> None:
        """Start no more threads; running threads end with the process."""
        self._threads.stop()

    async def answer(self, http: web_request.BaseRequest) -> web_response.StreamResponse:
        """Answer a request; aiohttp cancels this when the client disconnects."""
        reply = HttpReply(http, self._limits.send_seconds)
        try:
            if http.version not in (HttpVersion10, HttpVersion11):
                return reply.reset()
            if (refusal := _refuse(http)) is not None:
                return await reply.send(refusal)
            body = BytesIO()
            call = self._application.route(environment(http, body), Client(self, http.raw_headers))
            if not http.body_exists:
                return await self._answer(http, reply, call, 0)
            if _may_be_large(http, call):
                return await self._answer_snapshot(http, reply, call, body)
            length = await self._read(http, body, BODY_BYTES_MAX, self._limits.body_seconds)
            return await self._answer(http, reply, call, length)
        except TimeoutError:  # the client is neither sending nor reading
            return reply.reset()
        except ConnectionError:  # the client has disconnected, or the application cuts the connection
            return reply.cut()

    async def _answer_snapshot(
        self, http: web_request.BaseRequest, reply: HttpReply, call: Call, body: BytesIO
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
            length = await self._read(http, body, STATE_BYTES_MAX, self._limits.snapshot_seconds)
            return await self._answer(http, reply, call, length)
        finally:
            del self._snapshots_bytes[project_id]

    async def _read(
        self, http: web_request.BaseRequest, body: BytesIO, bytes_max: int, seconds_max: float
    ) -> int:
        """Read a body up to its limit; return its length. aiohttp drops the rest of a longer one."""
        if (http.content_length or 0) > bytes_max:  # the application will refuse it
            return http.content_length or 0
        is_expected = http.headers.get(EXPECT, "").lower() == "100-continue" and http.version == HttpVersion11
        if is_expected and http.transport is not None:
            http.transport.write(CONTINUE_RESPONSE)
        if http.content.is_eof():
            body.write(http.content.read_nowait())
        until_seconds = self.loop.time() + seconds_max
        while body.tell() <= bytes_max and not http.content.at_eof():
            if not http.content.is_eof() and cast(Connection, http.protocol).is_half_closed:
                http.protocol.force_close()
                raise ConnectionError("the rest of the body cannot arrive")
            async with timeout(min(self._limits.silent_seconds, until_seconds - self.loop.time())):
                body.write(await http.content.readany())
        length = body.tell()
        body.seek(0)
        return length

    async def _answer(
        self, http: web_request.BaseRequest, reply: HttpReply, call: Call, length: int
    ) -> web_response.StreamResponse:
        """Answer a request whose body has arrived; ``length`` is that of the whole body."""
        if length:
            call.request.environ["CONTENT_LENGTH"] = str(length)  # unknown before, if the body is chunked
        placement = place(call, length)
        call.may_wait = placement is not Placement.EVENT_LOOP
        connection = cast(Connection, http.protocol)
        connection.places.waiting.pop(connection, None)  # the server works on it, so it keeps its place
        response = await self._run(call, placement)
        try:
            if call.stream is not None:
                return await self._watch(call, response, reply, connection)
            connection.places.wait(connection, connection.abort)
            if not response.is_streamed:
                return await reply.send(response)
            async with timeout(STREAM_SECONDS_MAX):
                return await reply.send_pieces(response, self._produce(call, response))
        finally:
            response.close()  # releases the held webhooks

    async def _run(self, call: Call, placement: Placement) -> Response:
        """Run a call where it was placed; one call of a project starts in each iteration of the loop."""
        self.loop.call_soon(await self._starts.take(call.group))
        if placement is Placement.EVENT_LOOP:
            return self._application.respond(call)
        if placement is Placement.WAITING and not self._waiting.has_free(call.group):
            return error(503, TOO_MANY_WAIT, retry=True)
        pool = self._slow if placement is Placement.SLOW else self._waiting
        running = await pool.start(call.group, lambda: self._application.respond(call))
        try:
            return await shield(running)
        except CancelledError:  # the client has disconnected, and the thread goes on
            running.add_done_callback(lambda done: done.result().close())
            raise

    async def pause(self, group: str, seconds: float) -> None:
        """Pass real time; like the calls that start, one call of a project goes on in each iteration."""
        await sleep(seconds)
        self.loop.call_soon(await self._starts.take(group))

    async def _watch(
        self, call: Call, response: Response, reply: HttpReply, connection: Connection
    ) -> web_response.StreamResponse:
        """Send an event stream."""
        assert call.stream is not None, "the response is an event stream"
        if not self._watching.has_free(call.group):
            return await reply.send(error(503, TOO_MANY_WAIT, retry=True))
        give_back = await self._watching.take(call.group)
        try:
            return await reply.send_pieces(response, self._watchers.events(call.stream, connection))
        finally:
            give_back()
            connection.places.wait(connection, connection.abort)

    async def _produce(self, call: Call, response: Response) -> AsyncGenerator[bytes, None]:
        """Yield the pieces of a response of unknown length, which threads produce."""
        pieces = iter(response.get_app_iter(call.request.environ))
        while True:
            producing = await self._slow.start(call.group, lambda: next(pieces, None))
            try:
                piece = await shield(producing)
            except CancelledError:  # the client has disconnected, and the thread uses the response
                await wait([producing])
                raise
            if piece is None:
                return
            yield piece


def _may_be_large(http: web_request.BaseRequest, call: Call) -> bool:
    is_large = http.content_length is None or http.content_length > BODY_BYTES_MAX
    return is_large and call.route is not None and call.route.facts.admit is not None


def _refuse(http: web_request.BaseRequest) -> Response | None:
    """Return the error for a request that no application reads; None for others."""
    length = 0
    for name, value in http.raw_headers:
        length += len(name) + len(value)
    if length > HEAD_BYTES_MAX:
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
