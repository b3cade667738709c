"""Serves one application over HTTP on one port; hides which HTTP server does it."""

import json
import logging
import socket
import struct
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from waitress import wasyncore
from waitress.channel import ClientDisconnected, HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.server import create_server
from waitress.task import ErrorTask, ThreadedTaskDispatcher, WSGITask

from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox.serving.threads import start
from payment_sandbox.web.errors import TYPE_OF_STATUS, error_body

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

THREADS_MIN: Final = 4
THREADS_MAX: Final = 512  # each blocking call holds one, and what it waits for needs another
REQUEST_BYTES_MAX: Final = (256 << 20) + 1  # a larger one is refused before it is read
IDLE_CONNECTION_SECONDS: Final = 60
CONNECTIONS_MAX: Final = 1000
CONNECTIONS_MIN: Final = 16
OTHER_FILES: Final = 64  # for webhooks in flight, a state file and the rest of this process
FORGOTTEN_SECONDS: Final = 1.0
STOP_SECONDS: Final = 1.0

logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # the pool grows, so its queue warnings are noise


class PortTaken(Exception):
    """The address cannot be bound."""


class GrowingDispatcher(ThreadedTaskDispatcher):  # type: ignore[misc]
    """A pool with one thread per request in progress, so that a blocking call never delays another."""

    def start_new_thread(self, target: Any, thread_no: int) -> None:
        """Add a thread to the pool."""
        start(Thread(target=target, args=(thread_no,), name=f"waitress-{thread_no}", daemon=True))

    def add_task(self, task: Any) -> None:
        """Queue a request and make sure a thread is free for it."""
        with self.lock:
            idle = len(self.threads) - self.stop_count - self.active_count
            wanted = len(self.threads) + 1 if idle <= len(self.queue) else 0
        if 0 < wanted <= THREADS_MAX:
            self.set_thread_count(wanted)
        super().add_task(task)


class CuttableTask(WSGITask):  # type: ignore[misc]
    """A request whose connection the application can cut, to simulate a broken network."""

    def get_environment(self) -> dict[str, Any]:
        """Let the application cut the connection."""
        environment: dict[str, Any] = super().get_environment()
        environment["sandbox.cut_off"] = self._cut_off
        return environment

    def _cut_off(self) -> None:
        """Drop the connection, with whatever was not yet sent.

        Raises:
            ClientDisconnected: always; the server then closes the connection.
        """
        abrupt = struct.pack("ii", 1, 0)
        if not self.wrote_header:
            self.channel.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, abrupt)
        raise ClientDisconnected


class JsonErrorTask(ErrorTask):  # type: ignore[misc]
    """Answers an invalid HTTP request with a JSON error, like all errors."""

    def execute(self) -> None:
        """Write the error and close the connection, as the start of the next request is unknown."""
        error = self.request.error
        kind = TYPE_OF_STATUS.get(error.code, "BadRequest")
        body = json.dumps(error_body(error.code, kind, str(error.body))).encode()
        self.status = f"{error.code} {error.reason}"
        self.response_headers += [("Content-Type", "application/json"), ("Connection", "close")]
        self.close_on_finish = True
        self.content_length = len(body)
        self.write(body)


class StrictParser(HTTPRequestParser):  # type: ignore[misc]
    """Refuses an invalid request line, which waitress 2 treats as a request without a method."""

    def parse_header(self, header: bytes) -> None:
        """Parse the request line and headers."""
        super().parse_header(header)
        if not self.command:
            raise ParsingError("Start line is invalid")


class JsonErrorChannel(HTTPChannel):  # type: ignore[misc]
    """A connection that also returns its errors as JSON."""

    parser_class = StrictParser
    task_class = CuttableTask
    error_task_class = JsonErrorTask
    idle_since_seconds: float | None = None  # None until the first response

    def service(self) -> None:
        """Handle the requests received so far."""
        super().service()
        self.idle_since_seconds = monotonic_seconds()

    def is_forgotten(self) -> bool:
        """Whether the connection has been idle in both directions for a while."""
        is_in_use = self.requests or self.request is not None or self.total_outbufs_len
        if is_in_use or self.idle_since_seconds is None:
            return False
        return monotonic_seconds() - self.idle_since_seconds >= FORGOTTEN_SECONDS


class HttpServer:
    """A port, bound on construction; connections wait until ``start``."""

    def __init__(self, host: str, port: int) -> None:
        """Bind; ``port`` 0 takes any free one.

        Raises:
            PortTaken: the address is in use or does not belong to this host.
        """
        self._socket = _bind(host, port)
        self.port: int = self._socket.getsockname()[1]
        self.url = _url(host, self.port)
        self._connections_max = _connections_max()
        self._map: dict[int, Any] = {}
        self._http: Any = None
        self._loop = Thread(target=self._run, name="server", daemon=True)
        self._stopping = False

    def start(self, application: "WSGIApplication") -> None:
        """Serve on background threads."""
        dispatcher = GrowingDispatcher()
        dispatcher.set_thread_count(THREADS_MIN)
        self._http = create_server(
            application,
            map=self._map,
            _dispatcher=dispatcher,
            sockets=[self._socket],
            max_request_body_size=REQUEST_BYTES_MAX,
            channel_timeout=IDLE_CONNECTION_SECONDS,
            connection_limit=self._connections_max,
            ident="payment-orders-sandbox",
            asyncore_use_poll=True,
            clear_untrusted_proxy_headers=True,  # the default, but waitress 2 warns if it is not explicit
        )
        self._http.channel_class = JsonErrorChannel
        start(self._loop)

    def stop(self) -> None:
        """Close all connections; requests still running end with their threads."""
        self._stopping = True
        if self._http is not None:
            self._http.pull_trigger()
            self._loop.join(STOP_SECONDS)
            self._http.task_dispatcher.shutdown(cancel_pending=True, timeout=STOP_SECONDS / 2)
            wasyncore.close_all(self._map, ignore_all=True)
        self._socket.close()

    def _run(self) -> None:
        while not self._stopping:
            wasyncore.poll2(1.0, self._map)
            if len(self._map) >= self._connections_max:
                self._close_forgotten()

    def _close_forgotten(self) -> None:
        """Close idle connections, longest idle first; if none is idle, new connections wait."""
        channels = [channel for channel in self._http.active_channels.values() if channel.is_forgotten()]
        channels.sort(key=lambda channel: channel.idle_since_seconds)
        for channel in channels[: len(channels) // 2 + 1]:
            channel.will_close = True


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _connections_max() -> int:
    """As many as the open-file limit allows; a test's client ends may be in this process, too."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return CONNECTIONS_MAX
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return CONNECTIONS_MAX
    return max(CONNECTIONS_MIN, min(CONNECTIONS_MAX, (files - OTHER_FILES) // 2))


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(1024)
    except (OSError, OverflowError) as error:
        bound.close()
        raise PortTaken(f"cannot listen on {host}:{port}: {error}") from error
    return bound
