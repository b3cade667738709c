"""One HTTP connection. aiohttp parses it and keeps responses in order; this module limits its duration.

A connection is in one of four phases. ``IDLE``: all responses are sent, and another request may follow.
``HEAD``: the request line or headers are incomplete. ``BODY``: the body is being read. ``ANSWERING``: the
request is complete, and the server has to answer. The phase alone decides whether a full server may close the
connection, and how it ends when the client half-closes it.
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

HEAD_BYTES_MAX: Final = 16 << 10  # the limit for a request line with its headers
LINE_BYTES_MAX: Final = HEAD_BYTES_MAX  # the limit for a request line, and for each header
BUFFER_BYTES: Final = 1 << 16  # the buffered part of a body; when full, reading from the client pauses
READ_BYTES: Final = 1 << 14  # the size of one read
PARSE_SECONDS: Final = 0.001
PAUSE_FACTOR: Final = 4  # the length of the pause after a long parse, as a multiple of the parse time
IDLE_SECONDS: Final = 60.0
REFUSAL_SECONDS: Final = 1.0  # the client's time to read; closing with unread data would destroy the response
HALF_CLOSED_SECONDS: Final = 0.05  # how long a half-closed connection stays open after its last response
SUPPORTED_VERSIONS: Final = (HttpVersion10, HttpVersion11)
CONTINUE_RESPONSE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

log = logging.getLogger(__name__)


@lru_cache(maxsize=16)
def log_once(problem: str) -> None:
    """Log a problem only once, because clients repeat the problem and report it unclearly."""
    log.warning("%s", problem)


class Limits(NamedTuple):
    """The concurrency limits of a server, and the timeouts of its connections."""

    connections: int = 4800  # the system's open-file limit may allow fewer
    waiting: int = 1024  # waiting calls, each on a thread; at most two thirds for one project
    watching: int = 3000  # event streams; at most two thirds for one project
    snapshots_bytes: int = 1 << 30  # the memory for all snapshots being received or restored
    send_seconds: float = 30.0  # the longest wait for the client to read a piece of a response
    inactive_seconds: float = 0.1  # an idle connection counts as inactive after this time
    half_open_seconds: float = 2.0  # the longest wait for the next byte of a request
    head_seconds: float = 5.0  # the longest wait for a complete request line and headers
    unread_seconds: float = 10.0  # the longest wait for the client to read the last response


class Phase(Enum):
    """The phase of a connection."""

    IDLE = auto()
    HEAD = auto()
    BODY = auto()
    ANSWERING = auto()


class RefusedRequest(Exception):
    """A request refused before completion; all subsequent input is ignored."""

    def __init__(self, status: int, value: str) -> None:
        super().__init__(value)
        self.status, self.value = status, value

    @classmethod
    def for_head(cls) -> "RefusedRequest":
        """Refuse a request line and headers that are too long."""
        return cls(431, f"the request line and headers are over {HEAD_BYTES_MAX} bytes")

    @classmethod
    def for_body(cls) -> "RefusedRequest":
        """Refuse a body that is too long for any path."""
        return cls(413, f"the body is over {REQUEST_BYTES_MAX - 1} bytes")


class Host(Protocol):
    """The interface of a server to its connections."""

    limits: Limits
    connections: "set[Connection]"

    @property
    def closes_connections(self) -> bool:
        """Whether to close connections after responses: the server is full or draining."""
        ...

    def receive(self, path: bytes) -> Body:
        """Create an empty body for a request."""
        ...

    async def answer(self, request: Request, reply: PendingReply) -> web.StreamResponse:
        """Answer a request."""
        ...

    def count(self, status: int, seconds: float) -> None:
        """Count a response; status 0 stands for a cut response."""
        ...

    def on_connection_end(self) -> None:
        """Handle the end of a connection."""
        ...


class ConnectionFactory(web.Server):
    """Creates the connections of a host, as a protocol factory."""

    def __init__(self, host: Host, loop: AbstractEventLoop) -> None:
        super().__init__(_answer, request_factory=_make_request, loop=loop)
        self._host, self._event_loop = host, loop
        self.read_buffer = memoryview(
            bytearray(READ_BYTES)
        )  # shared, because received data is parsed immediately

    def __call__(self) -> "Connection":
        """Create the protocol of a new connection."""
        return Connection(self, self._host, self._event_loop)


def _answer(request: web.BaseRequest) -> Coroutine[Any, Any, web.StreamResponse]:
    return cast(Connection, request.protocol).answer_request(request)


def _make_request(
    message: Any, payload: StreamReader, connection: Any, writer: Any, task: Any
) -> web.BaseRequest:
    """Create a request; an unknown HTTP version is replaced by the newest supported one."""
    if message.version in SUPPORTED_VERSIONS:
        return web.BaseRequest(message, payload, connection, writer, task, connection.loop)
    supported = message._replace(version=HttpVersion11)
    return _UnsupportedVersion(supported, payload, connection, writer, task, connection.loop)


class _UnsupportedVersion(web.BaseRequest):
    """A request with an unsupported HTTP version."""


class Connection(web.RequestHandler, BufferedProtocol):
    """A connection with an inactivity timeout in every phase.

    It reads small pieces, and pauses after a long parse, so that other connections get their turns. The
    framing of a body is limited to the size of a head.
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
        self.on_lost: Callable[[], None] | None = None  # called when a stream's client disconnects
        self._host = host
        self._read_buffer = server.read_buffer
        self._content: StreamReader | None = None  # the body being read
        self._content_bytes = self._framing_bytes = 0  # the framing bytes received since the last content
        self._phase = Phase.IDLE
        self._started_seconds = self.quiet_since_seconds = (
            loop.time()
        )  # start of the head; time of the last byte or response
        self._unsent_bytes = 0  # the number of unsent bytes at the last check
        self._drops_input = False  # set by a refusal, when the start of the next request is unknown
        self._has_ended = False  # half-closed: the client may still read

    # Callbacks of the transport

    def connection_made(self, transport: BaseTransport) -> None:
        """Start the connection."""
        super().connection_made(transport)
        scheme = "https" if self.ssl_context is not None else "http"
        server, client = (cast(Any, end) or ("", 0) for end in (self.sockname, self.peername))
        self.peers = Peers(scheme, *server[:2], *client[:2])
        self._host.connections.add(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        """End the connection, and make room for another."""
        super().connection_lost(exc)
        self._host.connections.discard(self)
        if self.on_lost is not None:
            self.on_lost()
        self._host.on_connection_end()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next read."""
        return self._read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Parse the data in the buffer, which all connections share."""
        data = bytes(self._read_buffer[:nbytes])
        self._read_buffer[:nbytes] = bytes(nbytes)
        self.data_received(data)

    def data_received(self, data: bytes) -> None:
        """Parse received data; after a refusal, drop it."""
        if self._drops_input:
            return
        self.quiet_since_seconds = began_seconds = self.loop.time()
        if self._phase is Phase.IDLE:
            self._phase, self._started_seconds = Phase.HEAD, began_seconds
        super().data_received(data)
        if self._content is not None:
            self._limit_framing(self._content, len(data))
        parse_seconds = self.loop.time() - began_seconds
        if parse_seconds > PARSE_SECONDS and self.transport is not None and self.transport.is_reading():
            self.transport.pause_reading()
            self.loop.call_later(parse_seconds * PAUSE_FACTOR, self._resume_reading)

    def _resume_reading(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    def _limit_framing(self, content: StreamReader, length: int) -> None:
        """Limit the bytes of chunk framing, extensions and trailers between two pieces of content."""
        if content.total_bytes != self._content_bytes:
            self._content_bytes, self._framing_bytes = content.total_bytes, 0
            return
        self._framing_bytes += length
        if self._framing_bytes > HEAD_BYTES_MAX and not content.is_eof():
            content.set_exception(
                RefusedRequest(431, f"a chunk's size or a trailer is over {HEAD_BYTES_MAX} bytes")
            )

    def eof_received(self) -> bool:  # type: ignore[override]  # asyncio's signature
        """Answer the requests sent before the client half-closed, and end any stream."""
        self._has_ended = True
        if self.on_lost is not None or self._phase is Phase.BODY or self.ssl_context is not None:
            return False
        if self._phase is not Phase.ANSWERING:
            self._close_soon()
        return True

    def _close_soon(self) -> None:
        """Close the connection, unless a complete request is about to be answered."""
        self.loop.call_later(HALF_CLOSED_SECONDS, self._close_if_quiet)

    def _close_if_quiet(self) -> None:
        if self.transport is None or self._phase is Phase.ANSWERING:
            return
        waits_for_next = self._waiter is not None and not self._waiter.done() and not self._messages
        is_quiet = self.loop.time() - self.quiet_since_seconds >= HALF_CLOSED_SECONDS
        if not waits_for_next or not is_quiet:  # the loop may have been busy in the meantime
            self._close_soon()
        else:
            self.transport.close()

    # Request handling: aiohttp passes one request at a time

    async def answer_request(self, http: web.BaseRequest) -> web.StreamResponse:
        """Read the body of a request, and answer the request."""
        started_seconds, reply = self.quiet_since_seconds, PendingReply(self, http)
        try:
            request = _convert_request(http)
            if not http.body_exists:
                self._phase = Phase.ANSWERING
                return await self._host.answer(request, reply)
            with self._host.receive(request.path) as body:
                self._phase = Phase.BODY
                await self._read(http, body)
                self._phase = Phase.ANSWERING
                received = request._replace(body=body.content(), length=body.length)
                return await self._host.answer(received, reply)
        except RefusedRequest as refused:
            self._drops_input = True
            return reply.refuse(refused.status, refused.value)
        finally:
            self._phase, self.quiet_since_seconds = Phase.IDLE, self.loop.time()
            self._host.count(reply.status, self.quiet_since_seconds - started_seconds)
            if self._has_ended:
                self._close_soon()

    async def _read(self, http: web.BaseRequest, body: Body) -> None:
        """Read a body to its end, even if it will be dropped.

        Raises:
            RefusedRequest: the body is too long for any path.
            ConnectionResetError: the client has disconnected.
        """
        if http.headers.get(TRANSFER_ENCODING, "chunked").lower() != "chunked":
            raise RefusedRequest(501, "the only supported Transfer-Encoding is chunked")
        length = http.content_length or 0
        if length > REQUEST_BYTES_MAX:
            raise RefusedRequest.for_body()
        if (
            EXPECT in http.headers
            and http.version is HttpVersion11
            and not self._accept_body(http, body, length)
        ):
            return
        self._content, self._content_bytes, self._framing_bytes = http.content, 0, 0
        try:
            while not http.content.at_eof():
                body.add(await self._read_piece(http.content))
                if body.length > REQUEST_BYTES_MAX:
                    raise RefusedRequest.for_body()
        finally:
            self._content = None

    def _accept_body(self, http: web.BaseRequest, body: Body, length: int) -> bool:
        """Answer ``Expect: 100-continue``; if the body is too long, do not answer, and return False."""
        if length > body.bytes_max:  # the request will be refused
            body.length, self._drops_input = length, True
            return False
        if http.headers[EXPECT].lower() == "100-continue" and self.transport is not None:
            self.transport.write(CONTINUE_RESPONSE)
        return True

    async def _read_piece(self, content: StreamReader) -> bytes:
        if content.is_eof():
            return await content.readany()
        if self._has_ended:
            raise ConnectionResetError("the client closed the connection before the end of its request")
        async with timeout(IDLE_SECONDS):
            return await content.readany()

    async def linger(self) -> None:
        """Stop sending, drop all input, and return once the client has disconnected or had time to read."""
        self._drops_input, transport = True, self.transport
        if transport is not None and transport.can_write_eof():  # TLS has no half-closed connections
            with suppress(OSError):  # the client has disconnected
                transport.write_eof()
        disconnected: Future[None] = self.loop.create_future()
        self.on_lost = lambda: None if disconnected.done() else disconnected.set_result(None)
        with suppress(TimeoutError):
            async with timeout(REFUSAL_SECONDS):
                await disconnected

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer input that is not HTTP, or a failure of the server."""
        self._drops_input = True
        if isinstance(exc, ConnectionError | TimeoutError) or status == HTTPStatus.GATEWAY_TIMEOUT:
            raise ConnectionResetError from exc  # the client has disconnected
        problem = 500, "the sandbox failed; see its log"
        if isinstance(exc, HttpProcessingError | web.RequestPayloadError):
            problem = _describe_bad_request(exc)
        else:
            log.error("a request could not be answered", exc_info=exc)
        self._host.count(problem[0], 0.0)
        return PendingReply(self, request).refuse(*problem)

    # Time limits

    @property
    def is_closed(self) -> bool:
        """Whether sending is no longer possible."""
        return self.transport is None or self.transport.is_closing()

    @property
    def closes_after_response(self) -> bool:
        """Whether to close the connection after this response."""
        return self._drops_input or self._host.closes_connections

    def is_inactive(self) -> bool:
        """Return whether the connection has been inactive for a while, with no request to answer."""
        now, limits = self.loop.time(), self._host.limits
        quiet_seconds = now - self.quiet_since_seconds
        if self._phase is Phase.IDLE:
            return quiet_seconds >= (
                limits.unread_seconds if self._count_unsent() else limits.inactive_seconds
            )
        is_slow = self._phase is Phase.HEAD and now - self._started_seconds >= limits.head_seconds
        return self._phase is not Phase.ANSWERING and (is_slow or quiet_seconds >= limits.half_open_seconds)

    def close_if_stale(self) -> None:
        """Close the connection if the client has neither sent nor read any data for too long."""
        unsent_bytes = self._count_unsent()
        if 0 < unsent_bytes != self._unsent_bytes:  # the client is slow, but still reading
            self._unsent_bytes, self.quiet_since_seconds = unsent_bytes, self.loop.time()
        is_quiet = self.loop.time() - self.quiet_since_seconds >= IDLE_SECONDS
        if is_quiet and self._phase is not Phase.ANSWERING:
            self.abort()

    def close_if_unused(self) -> None:
        """Close the connection, unless a request is in progress."""
        if self._phase is Phase.IDLE and self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """Close the connection now; unsent data is lost."""
        if self.transport is not None:
            self.transport.abort()

    def _count_unsent(self) -> int:
        return 0 if self.transport is None else self.transport.get_write_buffer_size()


def _describe_bad_request(error: BaseException) -> tuple[int, str]:
    """Return the status and message for input that is not HTTP."""
    if isinstance(error, LineTooLong) or "Too many headers" in str(error):
        return 431, RefusedRequest.for_head().value
    if isinstance(error, BadHttpMethod) and "HTTPS" in error.message:
        log_once("a client tried https, but this server speaks only http; serve --tls adds https")
    return 400, "this is not a valid HTTP request"


def _convert_request(http: web.BaseRequest) -> Request:
    """Convert a request, without its body.

    Raises:
        RefusedRequest: the head of the request is invalid or unsupported.
    """
    if isinstance(http, _UnsupportedVersion):
        raise RefusedRequest(505, "this server speaks HTTP/1.0 and HTTP/1.1")
    headers = [(name.lower(), value) for name, value in http.raw_headers]
    if sum([len(name) + len(value) for name, value in headers]) > HEAD_BYTES_MAX:
        raise RefusedRequest.for_head()
    target, version = http.raw_path, "1.1"
    if target[0] != "/":
        target, headers = _split_absolute_form(http, headers)
    if http.version is HttpVersion10:
        version = "1.0"
    elif HOST not in http.headers:
        raise RefusedRequest(400, "the header Host is missing")
    return Request(http.method, target.encode(errors="surrogateescape"), version, headers, b"", 0)


def _split_absolute_form(
    http: web.BaseRequest, headers: list[tuple[bytes, bytes]]
) -> tuple[str, list[tuple[bytes, bytes]]]:
    """Return path and headers for a request in absolute form; its host overrides Host (RFC 9112, 3.2.2)."""
    if http.method == METH_CONNECT:
        raise RefusedRequest(400, "this server is not a proxy")
    authority = urlsplit(http.raw_path).netloc.rpartition("@")[2].encode(errors="surrogateescape")
    others = [header for header in headers if header[0] != b"host"]
    return http.rel_url.raw_path_qs, [*others, (b"host", authority)] if authority else headers
