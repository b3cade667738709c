"""Serves one application over HTTP on one port, with aiohttp."""

import asyncio
import logging
import socket
from contextlib import suppress
from functools import lru_cache
from ssl import SSLError
from threading import Thread
from typing import TYPE_CHECKING, Final

from aiohttp import web_protocol, web_request, web_response, web_server
from aiohttp.http_exceptions import BadHttpMethod, HttpProcessingError, LineTooLong

from payment_sandbox.loading import lazy
from payment_sandbox.serving.binding import url_of
from payment_sandbox.serving.gateway import HEAD_BYTES_MAX, HEAD_TOO_LONG, Gateway, Limits
from payment_sandbox.serving.real_loop import RealTimeLoop
from payment_sandbox.serving.replies import error
from payment_sandbox.serving.threads import start
from payment_sandbox.web.site import SharedCluster
from payment_sandbox.web.statistics import Statistics

if TYPE_CHECKING:
    import resource
    from ssl import SSLContext

    from flask import Response

    from payment_sandbox.serving.app import SandboxApp
else:
    resource = lazy("resource")


OPEN_FILES_LIMIT: Final = 16_384
CONNECTIONS_MIN: Final = 16
OTHER_FILES: Final = 64  # reserved for webhooks in flight, a state file and other uses
FULL_SECONDS: Final = 0.1  # the pause of a server that can open no more files
IDLE_SECONDS: Final = 75.0  # the longest wait for a complete request line and headers
READ_BYTES: Final = 1 << 14  # asyncio reads 256 KiB; parsing that much in one-byte chunks takes 25 ms
LINGER_SECONDS: Final = 2.0  # to close with unread data would destroy the response to it
STOP_SECONDS: Final = 1.0
ARRIVAL_SECONDS: Final = 0.05  # the time for requests in the buffers of the system to arrive
TLS_HANDSHAKE_BYTE: Final = b"\x16"  # the first byte of a TLS handshake; no HTTP method starts with it
HANDSHAKE_SECONDS: Final = 5.0  # browsers preconnect, and may never send this byte
HANDSHAKES_MAX: Final = 256  # each unfinished handshake takes a third of a mebibyte
UNTRUSTED_HINT: Final = "the client may not trust the certificate; see /docs/operation/#https"
JSON: Final = "application/json"
HTTPS_HINT: Final = "a client tried https, but this server speaks only http; serve --tls adds https"

log = logging.getLogger(__name__)


@lru_cache(maxsize=16)
def log_once(problem: str) -> None:
    """Log a problem only once, because clients repeat the problem and report it unclearly."""
    log.warning("%s", problem)


class HttpServer:
    """Serves on a bound port; connections wait until ``start``."""

    def __init__(
        self,
        bound: socket.socket,
        tls: "SSLContext | None" = None,
        limits: Limits | None = None,
        cluster: SharedCluster | None = None,
        statistics: Statistics | None = None,
    ) -> None:
        """Create a server; with ``tls``, the port detects https and http by a client's first byte.

        ``cluster`` is the cluster of the server, if any.
        """
        self._socket = bound
        self._tls = tls
        self._limits = _fit_to_open_files(limits or Limits())
        self._cluster = cluster
        self._statistics = statistics or Statistics()
        host, self.port = bound.getsockname()[:2]
        self.url = url_of(host, self.port)
        self._loop: asyncio.AbstractEventLoop = RealTimeLoop()
        self._stopping = asyncio.Event()
        self._free = asyncio.Semaphore(self._limits.connections)
        self._handshakes = asyncio.Semaphore(HANDSHAKES_MAX)
        self._accepting: asyncio.Task[None] | None = None
        self._connecting: set[asyncio.Task[None]] = set()  # accepted, but not yet connections
        self._gateway: Gateway | None = None
        self._connections: _JsonServer | None = None
        self._thread: Thread | None = None

    def start(self, application: "SandboxApp") -> None:
        """Serve on a background thread."""
        cluster = self._cluster
        is_draining = None if cluster is None else lambda: cluster.is_draining
        self._gateway = Gateway(application, self._loop, self._limits, self._statistics, is_draining)
        self._connections = _JsonServer(self._gateway, self._loop, self._free)
        self._thread = Thread(target=self._run, name="server", daemon=True)
        start(self._thread)

    def stop(self, finish_seconds: float = 0.0) -> None:
        """Close all connections, after up to ``finish_seconds`` for the requests in progress."""
        if self._thread is not None and self._gateway is not None:
            if finish_seconds:
                with suppress(RuntimeError, TimeoutError):  # the loop has stopped, or the time has passed
                    finishing = asyncio.run_coroutine_threadsafe(self._finish(finish_seconds), self._loop)
                    finishing.result(finish_seconds)
            self._gateway.stop()
            with suppress(RuntimeError):  # already stopped
                self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join(STOP_SECONDS)
        else:
            self._loop.close()
        self._socket.close()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:  # cancels all tasks at the end
            runner.run(self._serve())

    async def _serve(self) -> None:
        assert self._connections is not None, "the server was not started"
        self._accepting = self._loop.create_task(self._accept(self._connections))
        await self._stopping.wait()
        for connection in self._connections.connections:
            if connection.transport is not None:
                connection.transport.abort()

    async def _finish(self, within_seconds: float) -> None:
        """Accept no more connections, and finish the requests in progress."""
        await asyncio.sleep(ARRIVAL_SECONDS)
        if self._accepting is not None:
            self._accepting.cancel()
        await asyncio.sleep(ARRIVAL_SECONDS)
        if self._connections is not None:
            self._connections.pre_shutdown()
            await self._connections.shutdown(within_seconds)

    async def _accept(self, connections: "_JsonServer") -> None:
        """Accept connections; while all that are allowed are in use, new ones wait in the backlog."""
        while True:
            await self._free.acquire()
            try:
                accepted = await self._next_connection()
            except OSError:  # too many open files, or the client has disconnected
                self._free.release()
                await asyncio.sleep(FULL_SECONDS)
                continue
            task = self._loop.create_task(self._connect(accepted, connections))
            self._connecting.add(task)
            task.add_done_callback(self._connecting.discard)

    async def _next_connection(self) -> socket.socket:
        """Accept a connection; unlike that of ``sock_accept``, a cancelled wait loses no connection."""
        while True:
            try:
                accepted, _ = self._socket.accept()
            except BlockingIOError:
                await self._wait_until_readable(self._socket)
            else:
                accepted.setblocking(False)
                return accepted

    async def _wait_until_readable(self, waiting: socket.socket) -> None:
        readable = asyncio.Event()
        self._loop.add_reader(waiting, readable.set)
        try:
            await readable.wait()
        finally:
            self._loop.remove_reader(waiting)

    async def _connect(self, accepted: socket.socket, connections: "_JsonServer") -> None:
        """Begin a connection with the scheme of its first byte."""
        try:
            if self._tls is None or not await self._begins_with_tls(accepted):
                await self._loop.connect_accepted_socket(connections, accepted)
                return
            async with self._handshakes:
                await self._loop.connect_accepted_socket(
                    connections, accepted, ssl=self._tls, ssl_handshake_timeout=HANDSHAKE_SECONDS
                )
                return
        except SSLError as error:
            log_once(f"a client aborted the TLS handshake ({error.reason}): {UNTRUSTED_HINT}")
        except OSError:  # the client has disconnected, or been silent for too long
            pass
        accepted.close()
        self._free.release()

    async def _begins_with_tls(self, accepted: socket.socket) -> bool:
        """Return whether the client of a new connection starts with TLS; the first byte is peeked, not read.

        Raises:
            TimeoutError: the client has sent nothing for a while.
            OSError: the connection has failed.
        """
        async with asyncio.timeout(HANDSHAKE_SECONDS):
            await self._wait_until_readable(accepted)
        return accepted.recv(1, socket.MSG_PEEK) == TLS_HANDSHAKE_BYTE


class _JsonServer(web_server.Server):
    """aiohttp's server, with errors in the format of the application's errors."""

    def __init__(self, gateway: Gateway, loop: asyncio.AbstractEventLoop, free: asyncio.Semaphore) -> None:
        """``free`` counts the connections that may still be opened."""
        super().__init__(gateway.answer, handler_cancellation=True, loop=loop)
        self._event_loop = loop
        self._free = free
        self._buffer = memoryview(bytearray(READ_BYTES))  # shared, as received data is parsed immediately

    def __call__(self) -> web_protocol.RequestHandler:
        """Create the protocol of a new connection."""
        connection = _Connection(
            self,
            loop=self._event_loop,
            access_log=None,  # type: ignore[arg-type]  # None disables it
            auto_decompress=False,
            keepalive_timeout=IDLE_SECONDS,
            lingering_time=LINGER_SECONDS,
            max_line_size=HEAD_BYTES_MAX,
            max_field_size=HEAD_BYTES_MAX,
        )
        connection.buffer = self._buffer
        return connection

    def connection_lost(self, handler: web_protocol.RequestHandler, exc: BaseException | None = None) -> None:
        """Let another connection take the place of a closed one."""
        super().connection_lost(handler, exc)
        self._free.release()


class _Connection(web_protocol.RequestHandler, asyncio.BufferedProtocol):
    """A connection that reads little at once, because small chunks take long to parse."""

    buffer: memoryview

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next read."""
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Parse the data in the buffer, and wipe it, because the buffer outlives projects."""
        data = bytes(self.buffer[:nbytes])
        self.buffer[:nbytes] = bytes(nbytes)
        self.data_received(data)

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


def raise_open_files_limit() -> None:
    """Raise the open-file limit of this process as far as the system allows, up to what a server can use."""
    with suppress(ImportError, ValueError, OSError):  # Windows has no limit; some systems refuse theirs
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        limit = OPEN_FILES_LIMIT if hard == resource.RLIM_INFINITY else min(OPEN_FILES_LIMIT, hard)
        if limit > soft != resource.RLIM_INFINITY:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def _fit_to_open_files(limits: Limits) -> Limits:
    """Reduce the limits if too few files may be open; in tests, clients may share this process."""
    connections_max = limits.connections
    with suppress(ImportError):  # Windows has no such limit
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if files != resource.RLIM_INFINITY:
            connections_max = max(CONNECTIONS_MIN, min(connections_max, (files - OTHER_FILES) // 2))
    return limits._replace(
        connections=connections_max,  # at least an eighth is free for calls that neither wait nor watch
        waiting=min(limits.waiting, connections_max // 4),
        watching=min(limits.watching, connections_max * 5 // 8),
    )
