"""A merchant's shop: an HTTP server that records webhooks and answers as configured."""

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, NamedTuple

from payment_sandbox.orders.webhooks import ReceiverAnswer, WebhookRequest


class Received(NamedTuple):
    """A received webhook."""

    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.raw)
        return parsed


Answer = Callable[[Received], int | tuple[int, dict[str, str]]]


class ShopInServer:
    """A shop in the server's process, which answers 200 to everything."""

    def __call__(
        self, request: WebhookRequest, on_status: Callable[[int], None], timeout_seconds: float, /
    ) -> ReceiverAnswer:
        on_status(200)
        return ReceiverAnswer()

    def locate_handler(self, thread_id: int) -> str | None:
        """Return None: a handler is never late."""
        return None

    def report_late_handler(self, location: str, timeout_seconds: float) -> None:
        """Report nothing."""


class Shop:
    """A shop that answers 200 unless ``answer`` is set."""

    def __init__(self, port: int = 0, *, keeps_alive: bool = False) -> None:
        self.received: list[Received] = []
        self.answer: Answer = lambda received: 200
        self.says = b"noted"
        shop = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1" if keeps_alive else "HTTP/1.0"

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                raw = self.rfile.read(length)
                if len(raw) < length:
                    return  # the sender was killed while sending
                received = Received(self.path, dict(self.headers.items()), raw)
                shop.received.append(received)
                answer = shop.answer(received)
                status, headers = answer if isinstance(answer, tuple) else (answer, {})
                try:
                    self.send_response(status)
                    length_header = {"Content-Length": str(len(shop.says))} if keeps_alive else {}
                    for name, value in {**length_header, **headers}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(shop.says)
                except OSError:
                    pass  # the courier may close the connection early

            def do_GET(self) -> None:
                self.do_POST()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

        self._server = Server(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/webhook"
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def hold(self, status: int = 200, late: int = 500, seconds: float = 60) -> tuple[Event, Event]:
        """Hold all answers; return the event of an arrival, and the one that releases them with ``status``.

        Without a release they are ``late``; the courier waits for five seconds.
        """
        arrived, released = Event(), Event()

        def answer(received: Received) -> int:
            arrived.set()
            return status if released.wait(seconds) else late

        self.answer = answer
        return arrived, released

    def tell(self, event: Event, after: int = 1) -> None:
        """Set ``event`` on every webhook, starting with number ``after``."""

        def note(received: Received) -> int:
            if len(self.received) >= after:
                event.set()
            return 200

        self.answer = note

    def orders(self) -> list[str]:
        """Return the order ids of the webhooks in the order of arrival."""
        return [received.body["order_id"] for received in self.received]

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
