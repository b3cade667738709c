"""One HTTP connection: its requests are parsed, handed over and answered one by one, in order."""

import logging
import re
import socket
import struct
from asyncio import AbstractEventLoop, Future, Protocol, Transport, timeout
from collections import deque
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from typing import Protocol as Interface

from httptools import HttpParserError, HttpParserInvalidMethodError, HttpParserUpgrade, HttpRequestParser

from payment_sandbox.serving.realtime import wall_now
from payment_sandbox.serving.wsgi import REQUEST_BYTES_MAX, Answer, Head, Peers, Request, error
from payment_sandbox.web.statistics import Statistics

HANDSHAKE: Final = b"\x16"  # the first byte of TLS; no HTTP method begins with it
SILENT_SECONDS_MAX: Final = 10.0  # browsers open connections that they may never use


async def begins_with_tls(accepted: socket.socket, loop: AbstractEventLoop) -> bool:
    """Whether a new connection's client speaks TLS; its byte stays to be read.

    Raises:
        TimeoutError: the client has sent nothing for a while.
        OSError: the connection has failed.
    """
    readable: Future[None] = loop.create_future()

    def note() -> None:
        if not readable.done():
            readable.set_result(None)

    loop.add_reader(accepted, note)
    try:
        async with timeout(SILENT_SECONDS_MAX):
            await readable
        return accepted.recv(1, socket.MSG_PEEK) == HANDSHAKE
    finally:
        loop.remove_reader(accepted)


HEAD_BYTES_MAX: Final = 16 << 10  # of a request line with its headers
AHEAD_MAX: Final = 16  # requests that a client may send before it has read the responses to earlier ones
IDLE_SECONDS: Final = 60
REFUSAL_SECONDS: Final = 1.0  # closing with unread data would destroy the response
VERSIONS: Final = ("1.0", "1.1")
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"
STAND_IN: Final = b"PATCH"  # for the parser, which knows only registered methods
UNKNOWN_METHOD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}) \S+ HTTP/1\.[01]\r?\n")

log = logging.getLogger(__name__)


@lru_cache(maxsize=16)
def say_once(problem: str) -> None:
    """Log what the client may not say clearly; once, because it comes again."""
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


class Refused(Exception):
    """A request that is refused before its body is read; nothing after it on the connection is read."""

    def __init__(self, status: int, value: str) -> None:
        super().__init__(value)
        self.answer = error(status, value)


class Host(Interface):
    """What a connection needs of its server."""

    limits: Limits
    connections: "set[Connection]"
    statistics: Statistics

    @property
    def others_wait(self) -> bool:
        """Whether connections end with their responses: clients wait for room, or should go elsewhere."""
        ...

    def serve(self, request: Request, response: "Response") -> None:
        """Answer a request, now or later."""
        ...

    def keep(self, path: bytes, before: int, length: int) -> bool:
        """Whether to keep a piece of a body of which ``before`` bytes were kept."""
        ...

    def release(self, path: bytes, length: int) -> None:
        """Note that this much of a body is needed no longer."""
        ...

    def lost(self) -> None:
        """A connection has ended."""
        ...


class Connection(Protocol):
    """A connection that closes when nothing has come for a while, whatever it is in the middle of."""

    transport: Transport
    peers: "Peers"

    def __init__(self, host: Host, loop: AbstractEventLoop) -> None:
        self.loop = loop
        self.is_held_up = False  # the client does not read what was sent
        self._host = host
        self._parser = HttpRequestParser(self)
        self._requests: deque[Request | Refused] = deque()  # that have come, but are not answered yet
        self._response: Response | None = None  # to the request that is being answered
        self._drained: list[Future[None]] = []
        self._timer: Any = None
        self._is_in_head = self._is_in_request = self._is_deaf = False
        self._head_bytes = 0  # in segments that hold nothing else
        self._count = 0  # of whole requests
        self._method: str | None = None  # if the parser does not know it
        self._begin()
        self._unsent_bytes = 0  # when it was last looked at
        self._begun_seconds = self.quiet_since_seconds = loop.time()

    def _begin(self) -> None:
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._pieces: list[bytes] = []
        self._kept = self._length = 0

    # What the transport reports

    def connection_made(self, transport: Any) -> None:
        """Begin; a client that sends nothing is not kept for long."""
        self.transport = transport
        scheme = "https" if transport.get_extra_info("sslcontext") is not None else "http"
        server, client = transport.get_extra_info("sockname"), transport.get_extra_info("peername")
        self.peers = Peers(scheme, *(server or ("", 0))[:2], *(client or ("", 0))[:2])
        self._host.connections.add(self)
        self._limit_idleness()

    def connection_lost(self, exc: Exception | None) -> None:
        """End, and make room for another connection."""
        self._cancel_timer()
        self._host.connections.discard(self)
        self._let_go()
        while self._requests:
            self._release(self._requests.popleft())
        self._host.release(self._path, self._kept)
        self._kept = 0
        if self._response is not None:
            self._response.lost()
        self._host.lost()

    def pause_writing(self) -> None:
        """The client reads more slowly than it is sent to."""
        self.is_held_up = True

    def resume_writing(self) -> None:
        """The client has read most of what was sent."""
        self.is_held_up = False
        self._let_go()
        self._next()

    def data_received(self, data: bytes) -> None:
        """Parse what has come; after a refusal, only drain it."""
        if self._is_deaf:
            return
        self._cancel_timer()
        self.quiet_since_seconds = self.loop.time()
        before = self._count
        is_all_head = self._is_in_head or not self._is_in_request
        self._parse(data)
        if self._is_in_head and is_all_head and self._count == before:
            self._limit_head(len(data))
        self._next()
        if self._response is None and not self.is_closed:
            self._limit_idleness()

    def _parse(self, data: bytes) -> None:
        """Parse it, or refuse it and whatever comes after it."""
        try:
            self._feed(data)
        except Refused as refused:
            self._refuse(refused)
        except HttpParserError:
            if data.startswith(HANDSHAKE):
                say_once("a client speaks https, and this server only http; serve --tls speaks both")
            self._refuse(Refused(400, "this is not a valid HTTP request"))  # the next one's start is unknown

    def _limit_head(self, length: int) -> None:
        """Refuse a head that never ends before it fills the memory."""
        self._head_bytes += length
        if self._head_bytes > HEAD_BYTES_MAX and not self._is_deaf:
            self._refuse(HEAD_TOO_LARGE)

    def _feed(self, data: bytes) -> None:
        is_between, before = not self._is_in_request, self._count
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as offer:
            self._feed(self._without_offer() + data[offer.args[0] :])
        except HttpParserInvalidMethodError:
            unknown = UNKNOWN_METHOD.match(data)
            if unknown is None or not is_between or self._count != before:
                raise  # what is unknown does not begin here
            self._method = unknown[1].decode()  # the application says which methods there are
            self._parser = HttpRequestParser(self)
            self._feed(STAND_IN + data[unknown.end(1) :])
        except HttpParserError as wrong:
            if isinstance(wrong.__context__, Refused):
                raise wrong.__context__ from None
            raise

    def _without_offer(self) -> bytes:
        """The head again, for a new parser: the offered protocol is not accepted, and a body may follow."""
        if self._parser.get_method() == b"CONNECT":
            raise HttpParserError("this is no proxy")
        without = [pair for pair in self._headers if pair[0] not in (b"upgrade", b"connection")]
        head = [b"%s %s HTTP/1.1" % (self._parser.get_method(), self._target)]
        head += [b"%s: %s" % pair for pair in without]
        self._parser = HttpRequestParser(self)
        return b"\r\n".join([*head, b"", b""])

    # What the parser reports

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._begin()
        self._is_in_head = self._is_in_request = True
        self._begun_seconds = self.loop.time()
        self._head_bytes = 0

    def on_url(self, url: bytes) -> None:
        """A piece of the target."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header."""
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Refuse a request by its head, unless it comes once more without its offer of a protocol."""
        self._is_in_head = False
        if self._parser.should_upgrade():
            return
        if self._parser.get_http_version() not in VERSIONS:
            raise Refused(505, "this server speaks HTTP/1.0 and HTTP/1.1")
        self._refuse_by_head()
        is_first = self._response is None and not self._requests
        if is_first and dict(self._headers).get(b"expect", b"").lower() == b"100-continue":
            self.transport.write(CONTINUE)

    def _refuse_by_head(self) -> None:
        headers = dict(self._headers)
        length = len(self._target) + sum(len(name) + len(value) for name, value in self._headers)
        if length > HEAD_BYTES_MAX:
            raise HEAD_TOO_LARGE
        if int(headers.get(b"content-length", b"0")) > REQUEST_BYTES_MAX:
            raise BODY_TOO_LARGE
        codings = [value.lower() for name, value in self._headers if name == b"transfer-encoding"]
        if codings not in ([], [b"chunked"]):
            raise Refused(501, "the only Transfer-Encoding that is supported is chunked")
        if b"host" not in headers and self._parser.get_http_version() == "1.1":
            raise Refused(400, "the header Host is missing")

    def on_body(self, body: bytes) -> None:
        """A piece of the body, which is read to its end even if nobody will use it."""
        if self._kept == self._length and self._host.keep(self._path, self._kept, len(body)):
            self._pieces.append(body)
            self._kept += len(body)
        self._length += len(body)
        if self._length > REQUEST_BYTES_MAX:
            raise BODY_TOO_LARGE

    @property
    def _path(self) -> bytes:
        return self._target.partition(b"?")[0]

    def on_message_complete(self) -> None:
        """The whole request has come."""
        if self._parser.should_upgrade():
            return
        self._is_in_request = False
        self._count += 1
        method, self._method = self._method or self._parser.get_method().decode(), None
        body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        version, stays_open = self._parser.get_http_version(), self._parser.should_keep_alive()
        self._requests.append(
            Request(method, self._target, version, self._headers, body, self._length, stays_open)
        )
        self._begin()
        if len(self._requests) == AHEAD_MAX:
            self.transport.pause_reading()

    # One request after the other

    def _next(self) -> None:
        """Have the next request answered, once the client has read the responses before it."""
        if self._response is not None or not self._requests or self.is_held_up or self.is_closed:
            return
        request = self._requests.popleft()
        if len(self._requests) == AHEAD_MAX - 1 and not self._is_deaf:
            self.transport.resume_reading()
        if isinstance(request, Refused):
            self._end_with(request.answer)
            return
        self._response = Response(self, request)
        self._host.serve(request, self._response)

    def responded(self, request: Request, *, stays_open: bool) -> None:
        """A response has been sent, or given up."""
        self._release(request)
        self._response = None
        self.quiet_since_seconds = self.loop.time()
        if not stays_open:
            self._is_deaf = True
            self.transport.close()
        elif self._requests:
            self.loop.call_soon(self._next)  # after the requests of others
        elif not self.is_closed:
            self._limit_idleness()

    def _release(self, request: Request | Refused) -> None:
        if isinstance(request, Request):
            self._host.release(request.path, len(request.body))

    def _refuse(self, refused: Refused) -> None:
        """Read no more; the refusal is sent after the responses to the requests before it."""
        self._is_deaf = True
        self._requests.append(refused)
        self._next()

    def _end_with(self, answer: Answer) -> None:
        """Send an error and close: at once if the client does the same, else when it had time to read it."""
        assert answer.head is not None, "an error has one"
        head = Head(answer.head.status, [*answer.head.headers, ("Connection", "close")])
        self.transport.write(head_bytes(head, "1.1") + answer.body)
        if self.transport.can_write_eof():  # TLS has no half-closed connections
            self.transport.write_eof()
        self.loop.call_later(REFUSAL_SECONDS, self.transport.close)

    # Time limits

    @property
    def is_closed(self) -> bool:
        """Whether nothing more can be sent."""
        return self.transport.is_closing()

    @property
    def makes_room(self) -> bool:
        """Whether to close after this response, because no other request is on its way."""
        return self._host.others_wait and not self._requests and not self._is_in_request

    def is_forgotten(self) -> bool:
        """Whether nothing has happened for a while, and no request waits for its response."""
        if self._response is not None:
            return False
        now, limits = self.loop.time(), self._host.limits
        quiet_seconds = now - self.quiet_since_seconds
        if self._is_in_request:
            is_slow = self._is_in_head and now - self._begun_seconds >= limits.head_seconds
            return is_slow or quiet_seconds >= limits.half_open_seconds
        is_sending = self.transport.get_write_buffer_size() > 0
        return quiet_seconds >= (limits.unread_seconds if is_sending else limits.forgotten_seconds)

    def count(self, status: int, begun_seconds: float) -> None:
        """Count a response."""
        self._host.statistics.answered(status, self.loop.time() - begun_seconds)

    def close_if_unused(self) -> None:
        """Close, unless a request is under way."""
        if self._response is None and not self._requests and not self._is_in_request and not self.is_closed:
            self.transport.close()

    async def drained(self) -> None:
        """Return once the client has read most of what was sent, or has gone."""
        if self.is_held_up and not self.is_closed:
            drained: Future[None] = self.loop.create_future()
            self._drained.append(drained)
            await drained

    def _let_go(self) -> None:
        drained, self._drained = self._drained, []
        for future in drained:
            if not future.done():
                future.set_result(None)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _limit_idleness(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(IDLE_SECONDS, self._end_if_idle)

    def _end_if_idle(self) -> None:
        """Close a connection that was idle for too long, also if the client does not read what was sent."""
        self._timer = None
        unsent_bytes = self.transport.get_write_buffer_size()
        if 0 < unsent_bytes != self._unsent_bytes:  # the client is slow, but reads
            self._unsent_bytes = unsent_bytes
            self._limit_idleness()
        elif self._response is None:
            self.transport.abort()


class Response:
    """One response on its way."""

    __slots__ = (
        "_begun_seconds",
        "_connection",
        "_is_chunked",
        "_request",
        "_status",
        "_stays_open",
        "has_begun",
        "on_end",
        "on_lost",
        "shown_cut",
    )

    def __init__(self, connection: Connection, request: Request) -> None:
        self._connection = connection
        self._request = request
        self._stays_open = request.stays_open
        self._is_chunked = False
        self._status = 0  # until it is sent
        self._begun_seconds = connection.loop.time()
        self.has_begun = False
        self.on_lost: Any = None  # called when the client goes before the end
        self.on_end: Any = None  # called once, at the end
        self.shown_cut: Any = None  # how an answer that is cut is passed on to the server that has the client

    @property
    def peers(self) -> "Peers":
        """Both ends of its connection."""
        return self._connection.peers

    @property
    def is_closed(self) -> bool:
        """Whether nothing more can be sent."""
        return self._connection.is_closed

    async def drained(self) -> None:
        """Return once the client has read most of what was sent, or has gone."""
        await self._connection.drained()

    def send(self, answer: Answer) -> None:
        """Send a whole response, or as much as there is of it before the connection is cut.

        Raises:
            ValueError: it has no head, or a header that HTTP does not allow.
        """
        if answer.is_cut and self.shown_cut is not None:
            answer = self.shown_cut(answer)
        if answer.is_cut and not answer.body:
            self.reset()
            return
        if answer.head is None:
            raise ValueError("the application did not call start_response")
        body = b"" if self._has_no_body(answer.head) else answer.body
        data = self._head(answer.head) + body
        if not self.is_closed:
            self._connection.transport.write(data)
        self._end(stays_open=self._stays_open and not answer.is_cut)

    def begin(self, head: Head) -> None:
        """Begin a response of unknown length; for HTTP/1.0 it ends with the connection.

        Raises:
            ValueError: it has a header that HTTP does not allow.
        """
        self._is_chunked = self._request.version != "1.0"
        headers = [*head.headers, ("Transfer-Encoding", "chunked")] if self._is_chunked else head.headers
        self._write(self._head(Head(head.status, headers)))
        self.has_begun = True

    def send_piece(self, piece: bytes) -> None:
        """Send a piece of a response that has begun."""
        if piece and self._request.method != "HEAD":
            self._write(b"%x\r\n%s\r\n" % (len(piece), piece) if self._is_chunked else piece)

    def end(self) -> None:
        """End a response of unknown length: after an end mark, the client may go on with the connection."""
        if self._is_chunked and self._request.method != "HEAD":
            self._write(LAST_CHUNK)
        self._end(stays_open=self._is_chunked and self._stays_open)

    def cut(self) -> None:
        """Close once what is on its way has been sent, although the response is incomplete."""
        self._end(stays_open=False)

    def reset(self) -> None:
        """Break the connection, with a TCP reset; what was not yet sent is lost."""
        transport = self._connection.transport
        raw: socket.socket | None = transport.get_extra_info("socket")
        if raw is not None and not transport.is_closing():
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
        self._end(stays_open=False)

    def lost(self) -> None:
        """The client has gone."""
        if self.on_lost is not None:
            self.on_lost()

    def _end(self, *, stays_open: bool) -> None:
        on_end, self.on_end = self.on_end, None
        if on_end is not None:
            on_end()
        self._connection.count(self._status, self._begun_seconds)
        if self._connection._response is self:
            self._connection.responded(self._request, stays_open=stays_open)

    def _write(self, data: bytes) -> None:
        if not self.is_closed:
            self._connection.transport.write(data)

    def _head(self, head: Head) -> bytes:
        version, self._status = self._request.version, head.status
        self._stays_open = self._stays_open and not self._connection.makes_room
        if self._stays_open and version != "1.0":
            return head_bytes(head, version)
        kept = "keep-alive" if self._stays_open and head.has_length else "close"
        return head_bytes(Head(head.status, [*head.headers, ("Connection", kept)]), version)

    def _has_no_body(self, head: Head) -> bool:
        return self._request.method == "HEAD" or head.status in (204, 304)


def head_bytes(head: Head, version: str) -> bytes:
    """The status line and headers of a response, with its date and server.

    Raises:
        ValueError: a header has a character that HTTP does not allow.
    """
    now = int(wall_now().timestamp())
    lines = [_status_line(version, head.status)]
    lines += [f"{name.lower()}: {value}".encode("latin-1") for name, value in head.headers]
    lines += [_date(now), b"server: payment-orders-sandbox", b"", b""]
    data = b"\r\n".join(lines)
    if data.count(b"\n") != len(lines) - 1 or data.count(b"\r") != len(lines) - 1 or b"\0" in data:
        raise ValueError(f"a header has a character that HTTP does not allow: {head.headers}")
    return data


@lru_cache(maxsize=64)
def _status_line(version: str, status: int) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return f"HTTP/{version} {status} {phrase}".encode()


@lru_cache(maxsize=1)
def _date(second: int) -> bytes:
    return f"date: {formatdate(second, usegmt=True)}".encode()


HEAD_TOO_LARGE: Final = Refused(431, f"the request line and headers are over {HEAD_BYTES_MAX} bytes")
BODY_TOO_LARGE: Final = Refused(413, f"the body is over {REQUEST_BYTES_MAX - 1} bytes")
