"""A real HTTP server for webhooks, for tests that have no shop of their own."""

import json
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Event, Thread
from typing import Any, Final, NamedTuple

from payment_sandbox.client.plain import to_seconds
from payment_sandbox.serving.threads import start

OK: Final = 200
BAD_REQUEST: Final = 400
STATUSES: Final = range(200, 600)
BODY_BYTES_MAX: Final = 1 << 20  # of a request


class ReceivedWebhook(NamedTuple):
    """One webhook as received."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def order_id(self) -> str:
        """The id of the order whose status changed."""
        order_id: str = self.body["order_id"]
        return order_id


class WebhookReceiver:
    """An address that records webhooks, and answers 200 or the statuses of ``answer_with``."""

    received: list[ReceivedWebhook]
    """The received webhooks, oldest first."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0, url: str | None = None) -> None:
        """Listen; ``url`` is the public address, if the server needs a different one.

        Raises:
            OSError: the port is in use, or the host is not an address of this computer.
        """
        self.received = []
        self._arrived = Condition()
        self._closed = Event()
        self._statuses: deque[int] = deque([OK])
        self._delay_seconds = 0.0

        class EndpointServer(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

            def handle_error(self, *arguments: object) -> None:
                """Ignore broken connections."""

        handler = type("Handler", (_Handler,), {"receive": self._receive})
        self._server = EndpointServer((host, port), handler)
        self.url = url or f"http://{host}:{self._server.server_port}/webhook"
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,), name="receiver", daemon=True)
        start(self._thread)

    def answer_with(self, *statuses: int, delay: float | timedelta = 0.0) -> None:
        """Answer with these statuses in turn; the last status applies to all later webhooks.

        ``answer_with(503, 503, 200)`` fails twice. Each answer is delayed by ``delay``, real seconds or a
        ``timedelta``.

        Raises:
            ValueError: there are no statuses, or a status is outside 200 to 599.
        """
        wrong = [status for status in statuses if status not in STATUSES]
        if wrong or not statuses:
            raise ValueError(
                f"answer_with takes statuses from {STATUSES[0]} to {STATUSES[-1]}, not {wrong or 'none'}"
            )
        with self._arrived:
            self._statuses = deque(statuses)
            self._delay_seconds = to_seconds(delay)

    def close(self) -> None:
        """Stop listening."""
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def clear(self) -> None:
        """Forget the received webhooks, and reset the answer to an immediate 200."""
        with self._arrived:
            self.received.clear()
            self._statuses, self._delay_seconds = deque([OK]), 0.0

    def wait_for(
        self, order_id: str, timeout_seconds: float | timedelta = 10.0, *, nth: int = 1
    ) -> ReceivedWebhook:
        """Return an order's first webhook, or its ``nth``, as soon as it arrives.

        Raises:
            TimeoutError: the webhook did not arrive; the message lists the received webhooks.
            ValueError: ``nth`` is less than 1.
        """
        if nth < 1:
            raise ValueError(f"nth is {nth}, but the first webhook is number 1")
        limit_seconds = to_seconds(timeout_seconds)

        def matching() -> list[ReceivedWebhook]:
            return [webhook for webhook in self.received if webhook.order_id == order_id]

        with self._arrived:
            if not self._arrived.wait_for(lambda: len(matching()) >= nth, limit_seconds):
                raise TimeoutError(self._missing_message(order_id, nth, len(matching()), limit_seconds))
            return matching()[nth - 1]

    def _missing_message(self, order_id: str, nth: int, count: int, limit_seconds: float) -> str:
        others = sorted({webhook.order_id for webhook in self.received} - {order_id})
        received = f"{count} of {nth} webhooks" if count else "no webhook"
        other_orders = f"; other orders with received webhooks: {', '.join(others)}" if others else ""
        return f"{received} for order {order_id} within {limit_seconds:g} seconds{other_orders}"

    def _receive(self, path: str, headers: Mapping[str, str], raw: bytes) -> int:
        """Record a webhook, and return the status of the answer; refuse a body that names no order."""
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict) or not isinstance(body.get("order_id"), str):
            return BAD_REQUEST
        with self._arrived:
            self.received.append(ReceivedWebhook(path, headers, body))
            self._arrived.notify_all()
            status = self._statuses.popleft() if len(self._statuses) > 1 else self._statuses[0]
            delay_seconds = self._delay_seconds
        if delay_seconds:
            self._closed.wait(delay_seconds)
        return status


class _Handler(BaseHTTPRequestHandler):
    """Passes each webhook to the receiver."""

    receive: Callable[[str, Mapping[str, str], bytes], int]
    timeout = 30

    def do_POST(self) -> None:
        """Read a webhook, and answer it."""
        length = self.headers.get("Content-Length", "0")
        size = min(int(length), BODY_BYTES_MAX) if length.isascii() and length.isdigit() else 0
        status = self.receive(self.path, dict(self.headers.items()), self.rfile.read(size))
        with suppress(OSError):  # the sandbox closed the connection
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Print nothing."""
