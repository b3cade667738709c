"""The receiver of webhooks: it accepts whatever a service sends, and records it with its time of arrival."""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Event, Thread
from typing import Any, Final, NamedTuple

from payment_sandbox.serving.threads import start
from payment_sandbox_verify.answer import parse_json

OK: Final = 200
BODY_BYTES_MAX: Final = 1 << 20
RECEIVED_MAX: Final = 100_000
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Received(NamedTuple):
    """A request that arrived: ``data`` is its body if that is JSON."""

    path: str
    method: str
    media_type: str
    has_authorization: bool
    data: Any


class Inbox:
    """An address for webhooks; it answers 200, or the statuses of ``answer_with``."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0, url: str | None = None) -> None:
        """Listen; ``url`` is the public address, if the service needs a different one.

        Raises:
            OSError: the port is in use, or the host is not an address of this computer.
        """
        self.received: list[Received] = []
        self._arrived = Condition()
        self._closed = Event()
        self._statuses: deque[int] = deque([OK])
        self._delay_seconds = 0.0

        class InboxServer(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

            def handle_error(self, *arguments: Any) -> None:
                """Ignore broken connections."""

        handler = type(
            "Handler", (_Handler,), {"inbox": self, **{f"do_{name}": _Handler.receive for name in METHODS}}
        )
        self._server = InboxServer((host, port), handler)
        self.url = url or f"http://{host}:{self._server.server_port}/webhook"
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,), name="inbox", daemon=True)
        start(self._thread)

    def answer_with(self, statuses: tuple[int, ...], delay_seconds: float = 0.0) -> None:
        """Answer with these statuses in turn, each after a delay; the last answers all later requests."""
        with self._arrived:
            self._statuses = deque(statuses)
            self._delay_seconds = delay_seconds

    def wait_for(self, matches: Callable[[Received], bool], count: int, seconds: float) -> list[Received]:
        """Return the requests that match, once as many as ``count`` have arrived or the time is over."""

        def matching() -> list[Received]:
            return [each for each in self.received if matches(each)]

        with self._arrived:
            self._arrived.wait_for(lambda: len(matching()) >= count, seconds)
            return matching()

    def close(self) -> None:
        """Stop listening."""
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def receive(self, request: Received) -> int:
        """Record a request, and return the status that answers it."""
        with self._arrived:
            if len(self.received) < RECEIVED_MAX:
                self.received.append(request)
            self._arrived.notify_all()
            status = self._statuses.popleft() if len(self._statuses) > 1 else self._statuses[0]
            delay_seconds = self._delay_seconds
        if delay_seconds:
            self._closed.wait(delay_seconds)
        return status


class _Handler(BaseHTTPRequestHandler):
    """Passes each request to the inbox."""

    inbox: Inbox
    timeout = 30

    def receive(self) -> None:
        """Read a request of any method, and answer it."""
        length = self.headers.get("Content-Length", "0")
        size = min(int(length), BODY_BYTES_MAX) if length.isascii() and length.isdigit() else 0
        media_type = self.headers.get("Content-Type", "").partition(";")[0].strip()
        status = self.inbox.receive(
            Received(
                self.path,
                self.command,
                media_type,
                "Authorization" in self.headers,
                parse_json(self.rfile.read(size)),
            )
        )
        with suppress(OSError):  # the service closed the connection
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

    def log_message(self, *arguments: Any) -> None:
        """Print nothing."""
