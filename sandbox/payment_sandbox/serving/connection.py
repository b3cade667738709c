"""One HTTP connection: aiohttp parses it and answers its requests in order; this says how long it may last.

A connection is in one of four phases. ``IDLE``: the client has its responses, and may or may not send another
request. ``HEAD``: it has begun to send one. ``BODY``: its head has come, and its body is being read.
``ANSWERING``: the whole request has come, and it is the server's turn. The phase alone decides what a full
server may close, and what a client loses that sends nothing more.
"""

import logging
from asyncio import AbstractEventLoop, BaseTransport, BufferedProtocol, Future, timeout
from collections.abc import Callable, Coroutine
from contextlib import suppress
from enum import Enum, auto
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, NamedTuple, Protocol, cast
from urllib.parse import urlsplit

from aiohttp import HttpVersion10, HttpVersion11, StreamReader, web
from aiohttp.hdrs import EXPECT, HOST, METH_CONNECT, TRANSFER_ENCODING
from aiohttp.http_exceptions import BadHttpMethod, HttpProcessingError, LineTooLong

from payment_sandbox.serving.bodies import Body
from payment_sandbox.serving.replies import PendingReply
from payment_sandbox.serving.wsgi import REQUEST_BYTES_MAX, Peers, Request

HEAD_BYTES_MAX: Final = 16 << 10  # of a request line with its headers
LINE_BYTES_MAX: Final = HEAD_BYTES_MAX  # of a request line, and of each header
BUFFER_BYTES: Final = 1 << 16  # of a body, before the client has to wait until they are read
READ_BYTES: Final = 1 << 14  # at a time
PARSE_SECONDS: Final = 0.001
OTHERS_SHARE: Final = 4  # times as long as it took, others have the event loop
IDLE_SECONDS: Final = 60.0
REFUSAL_SECONDS: Final = 1.0  # closing with unread data would destroy the response
HALF_CLOSED_SECONDS: Final = 0.05  # after the last response to a client that sends nothing more
VERSIONS: Final = (HttpVersion10, HttpVersion11)
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

log = logging.getLogger(__name__)


@lru_cache(maxsize=16)
def say_once(problem: str) -> None:
    """Log a problem that the client may report unclearly; only once, because it recurs."""
    log.warning("%s", problem)


class Limits(NamedTuple):
    """How much a server does at once, and for how long it keeps a connection when it needs the room."""

    connections: int = 4000  # the system's limit of open files may allow less
    waiting: int = 1024  # calls that wait, each on a thread; two thirds of them for each project
    watching: int = 3000  # streams of events; two thirds of them for each project
    snapshots_bytes: int = 1 << 30  # of all snapshots that are being received or restored
    send_seconds: float = 30.0  # for a piece of a response that the client does not read
    forgotten_seconds: float = 0.1  # without a request
    half_open_seconds: float = 2.0  # without a byte in the middle of a request
    head_seconds: float = 5.0  # for a request line and headers that come in drops
    unread_seconds: float = 10.0  # for a response that the client does not read


class Phase(Enum):
    """What a connection waits for."""

    IDLE = auto()
    HEAD = auto()
    BODY = auto()
    ANSWERING = auto()


class Refused(Exception):
    """A request that is refused before it has come completely; nothing after it on the connection is read."""

    def __init__(self, status: int, value: str) -> None:
        super().__init__(value)
        self.status, self.value = status, value

    @classmethod
    def for_head(cls) -> "Refused":
        """The request line and headers are too long."""
        return cls(431, f"the request line and headers are over {HEAD_BYTES_MAX} bytes")

    @classmethod
    def for_body(cls) -> "Refused":
        """The body is too long for any path."""
        return cls(413, f"the body is over {REQUEST_BYTES_MAX - 1} bytes")


class Host(Protocol):
    """What a connection needs of its server."""

    limits: Limits
    connections: "set[Connection]"

    @property
    def others_wait(self) -> bool:
        """Whether connections end with their responses: clients wait for room, or should go elsewhere."""
        ...

    def receive(self, path: bytes) -> Body:
        """The body of a request that is about to come."""
        ...

    async def answer(self, request: Request, reply: PendingReply) -> web.StreamResponse:
        """Answer a request."""
        ...

    def count(self, status: int, seconds: float) -> None:
        """Count a response; status 0: it was cut."""
        ...

    def lost(self) -> None:
        """A connection has ended."""
        ...


class ConnectionFactory(web.Server):
    """Makes the connections of a host, as a factory of protocols."""

    def __init__(self, host: Host, loop: AbstractEventLoop) -> None:
        super().__init__(_answered, request_factory=_made, loop=loop)
        self._host, self._event_loop = host, loop
        self.read_buffer = memoryview(bytearray(READ_BYTES))  # for all: what is read is parsed at once

    def __call__(self) -> "Connection":
        """A protocol for a new connection."""
        return Connection(self, self._host, self._event_loop)


def _answered(request: web.BaseRequest) -> Coroutine[Any, Any, web.StreamResponse]:
    return cast(Connection, request.protocol).answered(request)


def _made(message: Any, payload: StreamReader, connection: Any, writer: Any, task: Any) -> web.BaseRequest:
    """A request; one of an unknown version is answered in the newest version that the server speaks."""
    if message.version in VERSIONS:
        return web.BaseRequest(message, payload, connection, writer, task, connection.loop)
    understood = message._replace(version=HttpVersion11)
    return _OfOtherVersion(understood, payload, connection, writer, task, connection.loop)


class _OfOtherVersion(web.BaseRequest):
    """A request of a version that is refused."""


class Connection(web.RequestHandler, BufferedProtocol):
    """A connection that closes when nothing has come for a while, whatever it is in the middle of.

    It reads little at a time, and waits after what took long to parse, so that it leaves the event loop to
    others; what frames a body may be no longer than a head.
    """

    peers: Peers

    def __init__(self, server: ConnectionFactory, host: Host, loop: AbstractEventLoop) -> None:
        super().__init__(
            server,
            loop=loop,
            logger=log,
            access_log=cast(Any, None),
            auto_decompress=False,
            keepalive_timeout=2 * IDLE_SECONDS,  # ``close_if_stale`` comes first
            lingering_time=REFUSAL_SECONDS,
            max_line_size=LINE_BYTES_MAX,
            max_field_size=LINE_BYTES_MAX,
            read_bufsize=BUFFER_BYTES,
        )
        self.loop = loop
        self.on_lost: Callable[[], None] | None = None  # what a stream does when its client goes
        self._host = host
        self._read_buffer = server.read_buffer
        self._content: StreamReader | None = None  # of the request whose body is being read
        self._content_bytes = self._framing_bytes = 0  # of it, and of what came since it grew
        self._phase = Phase.IDLE
        self._begun_seconds = self.quiet_since_seconds = loop.time()  # the head; the last byte or response
        self._unsent_bytes = 0  # when it was last looked at
        self._is_deaf = False  # after a refusal: where the next request begins is unknown
        self._has_ended = False  # the client sends nothing more, and may still read

    # What the transport reports

    def connection_made(self, transport: BaseTransport) -> None:
        """Begin."""
        super().connection_made(transport)
        scheme = "https" if self.ssl_context is not None else "http"
        server, client = (cast(Any, end) or ("", 0) for end in (self.sockname, self.peername))
        self.peers = Peers(scheme, *server[:2], *client[:2])
        self._host.connections.add(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        """End, and make room for another connection."""
        super().connection_lost(exc)
        self._host.connections.discard(self)
        if self.on_lost is not None:
            self.on_lost()
        self._host.lost()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the transport puts what it reads next."""
        return self._read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Parse what was read; nothing of it stays in the buffer that all connections share."""
        data = bytes(self._read_buffer[:nbytes])
        self._read_buffer[:nbytes] = bytes(nbytes)
        self.data_received(data)

    def data_received(self, data: bytes) -> None:
        """Parse what has come; after a refusal, drop it."""
        if self._is_deaf:
            return
        self.quiet_since_seconds = began_seconds = self.loop.time()
        if self._phase is Phase.IDLE:
            self._phase, self._begun_seconds = Phase.HEAD, began_seconds
        super().data_received(data)
        if self._content is not None:
            self._limit_framing(self._content, len(data))
        took_seconds = self.loop.time() - began_seconds
        if took_seconds > PARSE_SECONDS and self.transport is not None and self.transport.is_reading():
            self.transport.pause_reading()
            self.loop.call_later(took_seconds * OTHERS_SHARE, self._read_on)

    def _read_on(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    def _limit_framing(self, content: StreamReader, length: int) -> None:
        """Refuse chunks, extensions and trailers that bring no content for too long."""
        if content.total_bytes != self._content_bytes:
            self._content_bytes, self._framing_bytes = content.total_bytes, 0
            return
        self._framing_bytes += length
        if self._framing_bytes > HEAD_BYTES_MAX and not content.is_eof():
            content.set_exception(Refused(431, f"a chunk's size or a trailer is over {HEAD_BYTES_MAX} bytes"))

    def eof_received(self) -> bool:  # type: ignore[override]  # as asyncio has it
        """Answer what a client has asked before it closed its sending side; a stream ends with it."""
        self._has_ended = True
        if self.on_lost is not None or self._phase is Phase.BODY or self.ssl_context is not None:
            return False
        if self._phase is not Phase.ANSWERING:
            self._close_soon()
        return True

    def _close_soon(self) -> None:
        """Close, unless a request that has come completely is about to be answered."""
        self.loop.call_later(HALF_CLOSED_SECONDS, self._close_if_quiet)

    def _close_if_quiet(self) -> None:
        if self.transport is None or self._phase is Phase.ANSWERING:
            return
        waits_for_next = self._waiter is not None and not self._waiter.done() and not self._messages
        is_quiet = self.loop.time() - self.quiet_since_seconds >= HALF_CLOSED_SECONDS
        if not waits_for_next or not is_quiet:  # however long the loop was held up in between
            self._close_soon()
        else:
            self.transport.close()

    # One request after the other, as aiohttp calls for them

    async def answered(self, http: web.BaseRequest) -> web.StreamResponse:
        """Read the rest of a request, and have it answered."""
        begun_seconds, reply = self.quiet_since_seconds, PendingReply(self, http)
        try:
            request = _request(http)
            if not http.body_exists:
                self._phase = Phase.ANSWERING
                return await self._host.answer(request, reply)
            with self._host.receive(request.path) as body:
                self._phase = Phase.BODY
                await self._read(http, body)
                self._phase = Phase.ANSWERING
                received = request._replace(body=body.content(), length=body.length)
                return await self._host.answer(received, reply)
        except Refused as refused:
            self._is_deaf = True
            return reply.refused(refused.status, refused.value)
        finally:
            self._phase, self.quiet_since_seconds = Phase.IDLE, self.loop.time()
            self._host.count(reply.status, self.quiet_since_seconds - begun_seconds)
            if self._has_ended:
                self._close_soon()

    async def _read(self, http: web.BaseRequest, body: Body) -> None:
        """Read a body to its end, even if nobody will use it.

        Raises:
            Refused: the body is too long for any path.
            ConnectionResetError: the client has gone.
        """
        if http.headers.get(TRANSFER_ENCODING, "chunked").lower() != "chunked":
            raise Refused(501, "the only Transfer-Encoding that is supported is chunked")
        length = http.content_length or 0
        if length > REQUEST_BYTES_MAX:
            raise Refused.for_body()
        if (
            EXPECT in http.headers
            and http.version is HttpVersion11
            and not self._asks_for(http, body, length)
        ):
            return
        self._content, self._content_bytes, self._framing_bytes = http.content, 0, 0
        try:
            while not http.content.at_eof():
                body.add(await self._piece(http.content))
                if body.length > REQUEST_BYTES_MAX:
                    raise Refused.for_body()
        finally:
            self._content = None

    def _asks_for(self, http: web.BaseRequest, body: Body, length: int) -> bool:
        """Ask a client that expects to be asked for its body; False if it need not be sent."""
        if length > body.bytes_max:  # it will be refused
            body.length, self._is_deaf = length, True
            return False
        if http.headers[EXPECT].lower() == "100-continue" and self.transport is not None:
            self.transport.write(CONTINUE)
        return True

    async def _piece(self, content: StreamReader) -> bytes:
        if content.is_eof():
            return await content.readany()
        if self._has_ended:
            raise ConnectionResetError("the client has closed before the end of its request")
        async with timeout(IDLE_SECONDS):
            return await content.readany()

    async def linger(self) -> None:
        """Send nothing more, drop what comes, and return when the client has gone or had time to read."""
        self._is_deaf, transport = True, self.transport
        if transport is not None and transport.can_write_eof():  # TLS has no half-closed connections
            transport.write_eof()
        gone: Future[None] = self.loop.create_future()
        self.on_lost = lambda: None if gone.done() else gone.set_result(None)
        with suppress(TimeoutError):
            async with timeout(REFUSAL_SECONDS):
                await gone

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Refuse what is not HTTP, or say that the server has failed."""
        self._is_deaf = True
        if isinstance(exc, ConnectionError | TimeoutError) or status == HTTPStatus.GATEWAY_TIMEOUT:
            raise ConnectionResetError from exc  # nobody reads a response
        problem = 500, "the sandbox failed; see its log"
        if isinstance(exc, HttpProcessingError | web.RequestPayloadError):
            problem = _problem(exc)
        else:
            log.error("a request could not be answered", exc_info=exc)
        self._host.count(problem[0], 0.0)
        return PendingReply(self, request).refused(*problem)

    # Time limits

    @property
    def is_closed(self) -> bool:
        """Whether nothing more can be sent."""
        return self.transport is None or self.transport.is_closing()

    @property
    def makes_room(self) -> bool:
        """Whether to close after this response."""
        return self._is_deaf or self._host.others_wait

    def is_forgotten(self) -> bool:
        """Whether nothing has happened for a while, and no request waits for its response."""
        now, limits = self.loop.time(), self._host.limits
        quiet_seconds = now - self.quiet_since_seconds
        if self._phase is Phase.IDLE:
            return quiet_seconds >= (limits.unread_seconds if self._unsent() else limits.forgotten_seconds)
        is_slow = self._phase is Phase.HEAD and now - self._begun_seconds >= limits.head_seconds
        return self._phase is not Phase.ANSWERING and (is_slow or quiet_seconds >= limits.half_open_seconds)

    def close_if_stale(self) -> None:
        """Close if the client has neither sent nor read anything for too long."""
        unsent_bytes = self._unsent()
        if 0 < unsent_bytes != self._unsent_bytes:  # it is slow, but reads
            self._unsent_bytes, self.quiet_since_seconds = unsent_bytes, self.loop.time()
        is_quiet = self.loop.time() - self.quiet_since_seconds >= IDLE_SECONDS
        if is_quiet and self._phase is not Phase.ANSWERING:
            self.abort()

    def close_if_unused(self) -> None:
        """Close, unless a request is under way."""
        if self._phase is Phase.IDLE and self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """Close now; what was not yet sent is lost."""
        if self.transport is not None:
            self.transport.abort()

    def _unsent(self) -> int:
        return 0 if self.transport is None else self.transport.get_write_buffer_size()


def _problem(error: BaseException) -> tuple[int, str]:
    """The status and the sentence for what is not HTTP."""
    if isinstance(error, LineTooLong) or "Too many headers" in str(error):
        return 431, Refused.for_head().value
    if isinstance(error, BadHttpMethod) and "HTTPS" in error.message:
        say_once("a client speaks https, and this server only http; serve --tls speaks both")
    return 400, "this is not a valid HTTP request"


def _request(http: web.BaseRequest) -> Request:
    """A request without its body.

    Raises:
        Refused: its head says that it cannot be answered.
    """
    if isinstance(http, _OfOtherVersion):
        raise Refused(505, "this server speaks HTTP/1.0 and HTTP/1.1")
    headers = [(name.lower(), value) for name, value in http.raw_headers]
    if sum([len(name) + len(value) for name, value in headers]) > HEAD_BYTES_MAX:
        raise Refused.for_head()
    target, version = http.raw_path, "1.1"
    if target[0] != "/":
        target, headers = _of_whole_address(http, headers)
    if http.version is HttpVersion10:
        version = "1.0"
    elif HOST not in http.headers:
        raise Refused(400, "the header Host is missing")
    return Request(http.method, target.encode(errors="surrogateescape"), version, headers, b"", 0)


def _of_whole_address(
    http: web.BaseRequest, headers: list[tuple[bytes, bytes]]
) -> tuple[str, list[tuple[bytes, bytes]]]:
    """The path and the headers of a request to a whole address, whose host counts (RFC 9112, 3.2.2)."""
    if http.method == METH_CONNECT:
        raise Refused(400, "this server is no proxy")
    authority = urlsplit(http.raw_path).netloc.rpartition("@")[2].encode(errors="surrogateescape")
    others = [header for header in headers if header[0] != b"host"]
    return http.rel_url.raw_path_qs, [*others, (b"host", authority)] if authority else headers
