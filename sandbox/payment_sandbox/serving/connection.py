"""Connections: aiohttp's, with half-closed ones, small reads, and the application's format of errors."""

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

from aiohttp import web_protocol, web_request, web_response, web_server
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpVersion11, RawRequestMessage
from aiohttp.http_exceptions import BadHttpMethod, HttpProcessingError, LineTooLong
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from payment_sandbox.serving.replies import error

if TYPE_CHECKING:
    from werkzeug.wrappers import Response

HEAD_BYTES_MAX: Final = 16 << 10  # the limit for the headers of a request
HEAD_TOO_LONG: Final = f"the request line and headers are over {HEAD_BYTES_MAX} bytes"
IDLE_SECONDS: Final = 75.0  # the longest wait for a complete request line and headers
READ_BYTES: Final = 1 << 14  # asyncio reads 256 KiB; parsing that much in one-byte chunks takes 25 ms
LINGER_SECONDS: Final = 2.0  # to close with unread data would destroy the response to it
LEAVING_MAX: Final = 8  # closed connections whose calls end in one iteration of the loop
JSON: Final = "application/json"
HTTPS_HINT: Final = "a client tried https, but this server speaks only http; serve --tls adds https"
LAST_INPUT: Final = (
    web_protocol._ErrInfo(400, ConnectionResetError("the client sends no more requests"), ""),
    EMPTY_PAYLOAD,
)
"""The end of the queue of requests on a connection whose client has closed its sending side."""

log = logging.getLogger(__name__)


@lru_cache(maxsize=16)
def log_once(problem: str) -> None:
    """Log a problem only once, because clients repeat the problem and report it unclearly."""
    log.warning("%s", problem)


class Gradually:
    """Does work for a crowd in small parts on the event loop, so that others are served in between."""

    def __init__(self, at_once: int) -> None:
        """``at_once`` is the number of works in one iteration of the loop."""
        self._at_once = at_once
        self._works: deque[Callable[[], object]] = deque()

    def add(self, work: Callable[[], object]) -> None:
        """Do this work in one of the next iterations, after all that were added before."""
        self._works.append(work)
        if len(self._works) == 1:
            asyncio.get_running_loop().call_soon(self._do_some)

    def _do_some(self) -> None:
        for _ in range(min(self._at_once, len(self._works))):
            self._works.popleft()()
        if self._works:
            asyncio.get_running_loop().call_soon(self._do_some)


class ConnectionPlaces:
    """Limits connections; a new one may take the place of the one that has waited for its client longest."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._all: set[object] = set()
        self.waiting: OrderedDict[object, Callable[[], object]] = OrderedDict()
        """What closes each connection that waits for its client, the longest wait first."""
        self._changed = asyncio.Event()
        self.leaving = Gradually(LEAVING_MAX)

    async def add(self, connection: object, close: Callable[[], object]) -> None:
        """Add a connection, which waits for its client; return once there are not too many."""
        self._all.add(connection)
        self.wait(connection, close)
        while len(self._all) > self._total:
            oldest = next((other for other in self.waiting if other is not connection), None)
            if oldest is not None:
                close = self.waiting[oldest]
                self.remove(oldest)
                close()
            else:
                self._changed.clear()
                await self._changed.wait()

    def remove(self, connection: object) -> None:
        """Remove a closed connection."""
        self.waiting.pop(connection, None)
        self._all.discard(connection)
        self._changed.set()

    def wait(self, connection: object, close: Callable[[], object]) -> None:
        """Note that a connection waits for its client from now on; ``close`` takes its place away."""
        if connection in self._all:
            self.waiting[connection] = close
            self.waiting.move_to_end(connection)
            self._changed.set()


def create_request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: web_protocol.RequestHandler,
    writer: AbstractStreamWriter,
    task: "asyncio.Task[None]",
) -> web_request.BaseRequest:
    """Create a request; the error for one that is not HTTP has the version of this server."""
    if message is web_protocol.ERROR:
        message = message._replace(version=HttpVersion11)
    return web_request.BaseRequest(message, payload, protocol, writer, task, asyncio.get_running_loop())


class Connection(web_protocol.RequestHandler, asyncio.BufferedProtocol):
    """A connection that reads little at once, because small chunks take long to parse."""

    is_half_closed = False  # the client has closed its sending side
    stream_wakeup: asyncio.Event | None = None  # set while an event stream is sent

    def __init__(
        self,
        server: web_server.Server,
        loop: asyncio.AbstractEventLoop,
        places: ConnectionPlaces,
        buffer: memoryview,
    ) -> None:
        """``buffer`` is shared by all connections, because received data is parsed at once."""
        super().__init__(
            server,
            loop=loop,
            access_log=None,  # type: ignore[arg-type]  # None disables it
            auto_decompress=False,
            keepalive_timeout=IDLE_SECONDS,
            lingering_time=LINGER_SECONDS,
            max_line_size=HEAD_BYTES_MAX,
            max_field_size=HEAD_BYTES_MAX,
        )
        self.places = places
        self._buffer = buffer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the first request."""
        super().connection_made(transport)
        self.places.wait(self, self.abort)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Let another connection take the place."""
        self.places.remove(self)
        self.places.leaving.add(partial(super().connection_lost, exc))

    def abort(self) -> None:
        """Close the connection, without what has not been sent."""
        if self.transport is not None:
            self.transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next read."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Parse the data in the buffer, and wipe it, because the buffer outlives projects."""
        data = bytes(self._buffer[:nbytes])
        self._buffer[:nbytes] = bytes(nbytes)
        if self in self.places.waiting:
            self.places.waiting.move_to_end(self)
        self.data_received(data)

    def eof_received(self) -> bool:  # type: ignore[override]  # asyncio expects it
        """Answer the requests that have arrived whole, then close; TLS connections cannot stay half open."""
        request, is_idle = self._current_request, self._waiter is not None and not self._waiter.done()
        is_body_cut = request is not None and not request.content.is_eof()
        if is_idle or is_body_cut or self.transport is None or not self.transport.can_write_eof():
            return False
        self.is_half_closed = True
        self._messages.append(LAST_INPUT)
        if self.stream_wakeup is not None:
            self.stream_wakeup.set()
        return True

    def handle_error(
        self,
        request: web_request.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web_response.StreamResponse:
        """Answer input that is not HTTP, or a failure of the server, and close the connection.

        Raises:
            ConnectionError: the response has begun, so closing the connection is the only answer.
        """
        if isinstance(exc, ConnectionError):
            raise exc
        problem = error(500, "the sandbox failed; see its log")
        if isinstance(exc, LineTooLong) or "Too many headers" in str(exc):
            problem = error(431, HEAD_TOO_LONG)
        elif isinstance(exc, HttpProcessingError | web_protocol.RequestPayloadError):
            problem = error(400, "this is not a valid HTTP request")
        else:
            log.error("a request could not be answered", exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("the response has begun")
        if isinstance(exc, BadHttpMethod) and "HTTPS" in exc.message:
            log_once(HTTPS_HINT)
        self.close()  # ignores the rest of the input
        return _LastResponse(problem, request.transport)


class _LastResponse(web_response.Response):
    """The response to invalid input, sent while the client may still be sending."""

    def __init__(self, problem: "Response", transport: asyncio.Transport | None) -> None:
        super().__init__(body=problem.get_data(), status=problem.status_code, content_type=JSON)
        self._transport = transport
        self.force_close()

    async def write_eof(self, data: bytes = b"") -> None:
        """Send the response, and give the client time to read it; a disconnection cancels this."""
        await super().write_eof(data)
        if self._transport is not None and self._transport.can_write_eof():
            with suppress(OSError):  # the client has disconnected
                self._transport.write_eof()
        await asyncio.sleep(LINGER_SECONDS)
