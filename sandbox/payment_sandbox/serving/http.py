"""Serves one application over HTTP on one port: accepts connections, limits them, and closes them."""

import asyncio
import socket
from asyncio import AbstractEventLoop, Future, Task, TimerHandle
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ssl import SSLError
from threading import Thread
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from payment_sandbox.serving.binding import url_of
from payment_sandbox.serving.connection import ConnectionFactory, Limits, log_once
from payment_sandbox.serving.gateway import Gateway
from payment_sandbox.serving.real_loop import RealTimeLoop
from payment_sandbox.serving.threads import start
from payment_sandbox.web.site import SharedCluster
from payment_sandbox.web.statistics import Statistics

if TYPE_CHECKING:
    from ssl import SSLContext

    from payment_sandbox.serving.wsgi import Application

OPEN_FILES_LIMIT: Final = 16_384
CONNECTIONS_MIN: Final = 16
OTHER_FILES: Final = 64  # reserved for webhooks in flight, a state file and other uses
FULL_CHECK_SECONDS: Final = 0.1  # the time between a full server's checks for inactive connections
STOP_SECONDS: Final = 1.0
FINISH_CHECK_SECONDS: Final = 0.005  # the time between checks for unanswered requests
STALE_CHECK_SECONDS: Final = 5.0  # the time between checks for stale connections
SILENT_SECONDS_MAX: Final = 10.0  # browsers preconnect, and may never use the connection
TLS_HANDSHAKE_BYTE: Final = b"\x16"  # the first byte of a TLS handshake; no HTTP method starts with it
HANDSHAKE_SECONDS: Final = 5.0
HANDSHAKES_MAX: Final = 256  # each unfinished handshake takes a third of a mebibyte
UNTRUSTED_HINT: Final = "the client may not trust the certificate; see /docs/https/"


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
        self._limits = limits or Limits()
        self._cluster = cluster
        self._statistics = statistics or Statistics()
        host, self.port = bound.getsockname()[:2]
        self.url = url_of(host, self.port)
        self._loop: AbstractEventLoop | None = None
        self._gateway: Gateway | None = None
        self._acceptor: _Acceptor | None = None
        self._thread: Thread | None = None

    def start(self, application: "Application") -> None:
        """Serve on a background thread."""
        loop = self._loop = RealTimeLoop()
        acceptor = _Acceptor(
            self._socket, application, loop, self._limits, self._tls, self._statistics, self._cluster
        )
        self._gateway, self._acceptor = acceptor.gateway, acceptor
        self._thread = Thread(target=_run, args=(loop, acceptor), name="server", daemon=True)
        start(self._thread)

    def finish(self, within_seconds: float) -> None:
        """Stop accepting connections, and close each connection once its request is answered."""
        if self._loop is not None and self._acceptor is not None:
            with suppress(RuntimeError, TimeoutError):  # the loop has stopped, or the timeout has passed
                finishing = asyncio.run_coroutine_threadsafe(self._acceptor.finish(), self._loop)
                finishing.result(within_seconds)

    def stop(self) -> None:
        """Close all connections, without waiting for requests in progress."""
        if self._loop is not None and self._thread is not None and self._gateway is not None:
            self._gateway.stop()
            with suppress(RuntimeError):  # already stopped
                self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(STOP_SECONDS)
        self._socket.close()


class _AcceptedConnection(NamedTuple):
    """An accepted connection whose protocol is unknown, because its first byte has not arrived."""

    socket: socket.socket
    at_seconds: float


class _Acceptor:
    """Accepts connections up to a limit, and makes room by closing inactive ones."""

    def __init__(
        self,
        listening_socket: socket.socket,
        application: "Application",
        loop: AbstractEventLoop,
        limits: Limits,
        tls: "SSLContext | None",
        statistics: Statistics,
        cluster: SharedCluster | None,
    ) -> None:
        self._tls = tls
        self._listening_socket = listening_socket
        self._loop = loop
        self._limit = connections_max = _connections_max(limits.connections)
        limits = limits._replace(
            connections=connections_max,  # at least an eighth is free for calls that neither wait nor watch
            waiting=min(limits.waiting, connections_max // 4),
            watching=min(limits.watching, connections_max * 5 // 8),
        )
        self.gateway = Gateway(application, loop, self._resume, limits, statistics, cluster)
        self._connections = ConnectionFactory(self.gateway, loop)
        self._accepted: dict[Task[object], _AcceptedConnection] = {}  # accepted, but not yet connections
        self._handshakes: dict[Task[object], None] = {}  # unfinished TLS handshakes, oldest first
        self._handshake_slots = asyncio.Semaphore(HANDSHAKES_MAX)
        self._pause: TimerHandle | None = None  # set while the server is full

    def open(self) -> None:
        """Start accepting connections."""
        self._loop.add_reader(self._listening_socket, self._accept)

    def close_stale(self) -> None:
        """Close connections whose clients have neither sent nor read data for too long, periodically."""
        for connection in list(self.gateway.connections):
            connection.close_if_stale()
        self._loop.call_later(STALE_CHECK_SECONDS, self.close_stale)

    async def finish(self) -> None:
        """Stop accepting connections, and return once all requests are answered."""
        self._accept()  # accepts the connections in the backlog
        self._loop.remove_reader(self._listening_socket)
        while self.gateway.connections or self._accepted:
            self.gateway.is_full = True
            for connection in list(self.gateway.connections):
                connection.close_if_unused()
            await asyncio.sleep(FINISH_CHECK_SECONDS)

    async def close(self) -> None:
        """Drop all connections and their running tasks."""
        self._loop.remove_reader(self._listening_socket)
        for connection in list(self.gateway.connections):
            connection.abort()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        while self.gateway.connections or self._accepted:  # their ends are reported in the next iteration
            await asyncio.sleep(0)

    def _accept(self) -> None:
        """Accept connections from the backlog, up to the limit; called while the backlog is not empty."""
        if self._room <= 0:
            self._wait_for_room()
        for _ in range(self._room):
            try:
                accepted, _ = self._listening_socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # too many open files
                self._wait_for_room()
                return
            accepted.setblocking(False)
            task = self._loop.create_task(self._on_accept(accepted))
            self._accepted[task] = _AcceptedConnection(accepted, self._loop.time())
            task.add_done_callback(self._begin)

    @property
    def _room(self) -> int:
        return self._limit - len(self.gateway.connections) - len(self._accepted)

    def _wait_for_room(self) -> None:
        """Close inactive connections now, and active ones after their next responses."""
        self._loop.remove_reader(self._listening_socket)
        self._close_inactive()
        self._pause = self._loop.call_later(FULL_CHECK_SECONDS, self._resume)
        self.gateway.is_full = True

    async def _on_accept(self, accepted: socket.socket) -> None:
        if self._tls is None or not await _begins_with_tls(accepted, self._loop):
            await self._loop.connect_accepted_socket(self._connections, accepted)
            return
        with self._handshake():
            async with self._handshake_slots:  # an aborted handshake frees its memory in the next iteration
                await self._loop.connect_accepted_socket(
                    self._connections, accepted, ssl=self._tls, ssl_handshake_timeout=HANDSHAKE_SECONDS
                )

    @contextmanager
    def _handshake(self) -> Iterator[None]:
        """Count a TLS handshake; if there are too many, abort the oldest: honest clients are quick."""
        task = cast("Task[object]", asyncio.current_task())
        self._handshakes[task] = None
        if len(self._handshakes) > HANDSHAKES_MAX:
            oldest = next(iter(self._handshakes))
            del self._handshakes[oldest]
            oldest.cancel()
        try:
            yield
        finally:
            self._handshakes.pop(task, None)

    def _begin(self, task: "Task[object]") -> None:
        accepted = self._accepted.pop(task).socket
        if task.cancelled() or task.exception() is not None:
            accepted.close()
        if not task.cancelled() and isinstance(task.exception(), SSLError):
            reason = cast(SSLError, task.exception()).reason
            log_once(f"a client aborted the TLS handshake ({reason}): {UNTRUSTED_HINT}")

    def _resume(self) -> None:
        """Check again for room."""
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
            self.gateway.is_full = False
            self.open()

    def _close_inactive(self) -> None:
        """Close inactive connections, oldest first; if there are none, new connections wait."""
        inactive = [connection for connection in self.gateway.connections if connection.is_inactive()]
        inactive.sort(key=lambda connection: connection.quiet_since_seconds)
        for connection in inactive[: len(inactive) // 2 + 1]:
            connection.abort()  # no data is in flight, or the client is not reading it
        before = self._loop.time() - self.gateway.limits.inactive_seconds
        silent = [task for task, accepted in self._accepted.items() if accepted.at_seconds < before]
        for task in silent[: len(silent) // 2 + 1]:
            task.cancel()  # the client has not sent a byte


async def _begins_with_tls(accepted: socket.socket, loop: AbstractEventLoop) -> bool:
    """Return whether the client of a new connection starts with TLS; the first byte is peeked, not read.

    Raises:
        TimeoutError: the client has sent nothing for a while.
        OSError: the connection has failed.
    """
    readable: Future[None] = loop.create_future()

    def on_readable() -> None:
        if not readable.done():
            readable.set_result(None)

    loop.add_reader(accepted, on_readable)
    try:
        async with asyncio.timeout(SILENT_SECONDS_MAX):
            await readable
        return accepted.recv(1, socket.MSG_PEEK) == TLS_HANDSHAKE_BYTE
    finally:
        loop.remove_reader(accepted)


def _run(loop: AbstractEventLoop, acceptor: _Acceptor) -> None:
    """Serve until the loop is stopped, then close everything."""
    asyncio.set_event_loop(loop)
    acceptor.open()
    acceptor.close_stale()
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(acceptor.close())
        loop.close()


def raise_open_files_limit() -> None:
    """Raise the open-file limit of this process as far as the system allows, up to what a server can use."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return
    limit = OPEN_FILES_LIMIT if hard == resource.RLIM_INFINITY else min(OPEN_FILES_LIMIT, hard)
    if limit > soft:
        with suppress(ValueError, OSError):  # some systems refuse the limit that they report
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def _connections_max(connections_max: int) -> int:
    """Reduce the limit if too few files may be open; in tests, clients may share this process."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return connections_max
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return connections_max
    return max(CONNECTIONS_MIN, min(connections_max, (files - OTHER_FILES) // 2))
