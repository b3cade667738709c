"""Serves one application over HTTP on one port, with aiohttp."""

import asyncio
import logging
import socket
from contextlib import suppress
from functools import partial
from ssl import SSLError
from threading import Thread
from typing import TYPE_CHECKING, Final

from aiohttp.web_server import Server

from payment_sandbox.loading import lazy
from payment_sandbox.serving.binding import url_of
from payment_sandbox.serving.connection import (
    READ_BYTES,
    Connection,
    ConnectionPlaces,
    create_request,
    log_once,
)
from payment_sandbox.serving.gateway import Gateway, Limits
from payment_sandbox.serving.real_loop import RealTimeLoop
from payment_sandbox.serving.threads import start

if TYPE_CHECKING:
    import resource
    from ssl import SSLContext

    from payment_sandbox.serving.app import SandboxApp
else:
    resource = lazy("resource")


OPEN_FILES_LIMIT: Final = 16_384
CONNECTIONS_MIN: Final = 16
ACCEPTS_MAX: Final = 32  # in one iteration of the loop, so that a crowd delays no client before it
OTHER_FILES: Final = 64  # reserved for webhooks in flight, a state file and other uses
FULL_SECONDS: Final = 0.1  # the pause of a server that can open no more files
STOP_SECONDS: Final = 1.0
TLS_HANDSHAKE_BYTE: Final = b"\x16"  # the first byte of a TLS handshake; no HTTP method starts with it
TLS_HEAD_BYTES: Final = 5  # of a TLS message: its kind, its version and, in two bytes, its length
TLS_MESSAGE_BYTES_MAX: Final = 1 << 14
HANDSHAKE_SECONDS: Final = 5.0  # browsers preconnect, and may never send this byte
HANDSHAKES_MAX: Final = 256  # each unfinished handshake takes a third of a mebibyte
UNTRUSTED_HINT: Final = "the client may not trust the certificate; see payment-sandbox docs operation#https"

log = logging.getLogger(__name__)


class HttpServer:
    """Serves on a bound port; connections wait until ``start``."""

    def __init__(
        self,
        bound: socket.socket,
        tls: "SSLContext | None" = None,
        limits: Limits | None = None,
    ) -> None:
        """Create a server; with ``tls``, the port detects https and http by a client's first byte."""
        self._socket = bound
        self._tls = tls
        self._limits = _fit_to_open_files(limits or Limits())
        host, self.port = bound.getsockname()[:2]
        self.url = url_of(host, self.port)
        self._loop: asyncio.AbstractEventLoop = RealTimeLoop()
        self._stopping = asyncio.Event()
        self._places = ConnectionPlaces(self._limits.connections)
        self._handshakes = ConnectionPlaces(HANDSHAKES_MAX)
        self._accepting: asyncio.Task[None] | None = None
        self._connecting: set[asyncio.Task[None]] = set()  # accepted, but not yet connections
        self._gateway: Gateway | None = None
        self._server: Server | None = None
        self._thread: Thread | None = None

    def start(self, application: "SandboxApp") -> None:
        """Serve on a background thread."""
        self._gateway = Gateway(application, self._loop, self._limits)
        self._server = Server(
            self._gateway.answer, request_factory=create_request, handler_cancellation=True, loop=self._loop
        )
        self._thread = Thread(target=self._run, args=(self._server,), name="server", daemon=True)
        start(self._thread)

    def stop(self) -> None:
        """Close all connections."""
        if self._thread is not None and self._gateway is not None:
            self._gateway.stop()
            with suppress(RuntimeError):  # already stopped
                self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join(STOP_SECONDS)
        else:
            self._loop.close()
        self._socket.close()

    def _run(self, server: Server) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:  # cancels all tasks at the end
            runner.run(self._serve(server))

    async def _serve(self, server: Server) -> None:
        self._accepting = self._loop.create_task(self._accept(server))
        await self._stopping.wait()
        beginning = [self._accepting, *self._connecting]
        for task in beginning:
            task.cancel()
        await asyncio.wait(beginning)  # none of them becomes a connection after the next lines
        for connection in server.connections:
            if connection.transport is not None:
                connection.transport.abort()
        await asyncio.sleep(0)  # closes the sockets

    async def _accept(self, server: Server) -> None:
        """Accept connections; while too many are open, all others wait in the backlog.

        Unlike with ``sock_accept``, ending this loses no connection.
        """
        buffer = memoryview(bytearray(READ_BYTES))
        accepted_count = 0
        while True:
            try:
                accepted, _ = self._socket.accept()
            except BlockingIOError:
                await self._until_readable(self._socket)
                continue
            except OSError:  # too many open files, or the client has disconnected
                await asyncio.sleep(FULL_SECONDS)
                continue
            accepted.setblocking(False)
            connection = Connection(server, self._loop, self._places, buffer)
            task = self._loop.create_task(self._connect(accepted, connection))
            self._connecting.add(task)
            task.add_done_callback(partial(self._end_connecting, accepted, connection))
            await self._places.add(connection, task.cancel)
            accepted_count += 1
            if accepted_count % ACCEPTS_MAX == 0:
                await asyncio.sleep(0)

    def _end_connecting(
        self, accepted: socket.socket, connection: Connection, task: "asyncio.Task[None]"
    ) -> None:
        """Close what has not become a connection."""
        self._connecting.discard(task)
        self._handshakes.remove(connection)
        if not task.cancelled() and task.exception() is None:
            return
        accepted.close()
        self._places.remove(connection)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, SSLError):
            log_once(f"a client aborted the TLS handshake ({error.reason}): {UNTRUSTED_HINT}")
        elif not isinstance(
            error, OSError | None
        ):  # the client has disconnected, or been silent for too long
            log.error("a connection could not be accepted", exc_info=error)

    async def _connect(self, accepted: socket.socket, connection: Connection) -> None:
        """Begin a connection with the scheme of its first byte."""
        if self._tls is None or not await self._begins_with_tls(accepted):
            await self._loop.connect_accepted_socket(lambda: connection, accepted)
            return
        task = asyncio.current_task()
        assert task is not None, "a connection begins in a task"
        await self._handshakes.add(connection, task.cancel)
        await self._loop.connect_accepted_socket(
            lambda: connection, accepted, ssl=self._tls, ssl_handshake_timeout=HANDSHAKE_SECONDS
        )

    async def _begins_with_tls(self, accepted: socket.socket) -> bool:
        """Return whether the client of a new connection starts with TLS, once its first message is whole.

        Before that, a handshake takes neither memory nor time. The data is peeked at, not read.

        Raises:
            TimeoutError: the client has not sent it for a while.
            OSError: the connection has failed.
        """
        async with asyncio.timeout(HANDSHAKE_SECONDS):
            is_tls = await self._peek(accepted, 1) == TLS_HANDSHAKE_BYTE
            if is_tls:
                head = await self._peek(accepted, TLS_HEAD_BYTES)
                length = min(int.from_bytes(head[3:]), TLS_MESSAGE_BYTES_MAX)
                await self._peek(accepted, TLS_HEAD_BYTES + length)
                accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
        return is_tls

    async def _peek(self, accepted: socket.socket, length: int) -> bytes:
        """Wait for this many bytes, or for the last ones; some systems wait for the first one only."""
        with suppress(OSError):
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, length)
        await self._until_readable(accepted)
        return accepted.recv(length, socket.MSG_PEEK)

    async def _until_readable(self, waiting: socket.socket) -> None:
        readable = asyncio.Event()
        self._loop.add_reader(waiting, readable.set)
        try:
            await readable.wait()
        finally:
            self._loop.remove_reader(waiting)


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
