"""Receives the webhooks that the service sends during a verification."""

import json
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from typing import Any, Final, NamedTuple

from payment_sandbox.serving.threads import start

BODY_BYTES_MAX: Final = 1 << 16
WAIT_SECONDS: Final = 10.0


class Arrived(NamedTuple):
    """A webhook as it arrived."""

    headers: Mapping[str, str]
    body: Any


class Receiver:
    """Listens for webhooks; ``url`` is the address under which the service reaches it."""

    def __init__(self, host: str, port: int, url: str | None = None) -> None:
        """Listen; ``port`` 0 takes any free one.

        Raises:
            OSError: the port is taken, or the host is none of this machine.
        """
        self._arrived: list[Arrived] = []
        self._came = Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = min(int(self.headers.get("Content-Length", 0)), BODY_BYTES_MAX)
                receiver._take(dict(self.headers.items()), self.rfile.read(length))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 (the name in the base class)
                pass

        self._server = ThreadingHTTPServer((host, port), Handler)
        self._server.daemon_threads = True
        self.url = url or f"http://{host}:{self._server.server_port}/webhook"
        start(Thread(target=self._server.serve_forever, args=(0.02,), name="verification", daemon=True))

    def webhook_of(self, order_id: str, nth: int = 1) -> Arrived | None:
        """The nth webhook of an order, as soon as it is there; None if it does not come in time."""

        def found() -> list[Arrived]:
            return [each for each in self._arrived if _order_id(each) == order_id]

        with self._came:
            self._came.wait_for(lambda: len(found()) >= nth, WAIT_SECONDS)
            return found()[nth - 1] if len(found()) >= nth else None

    @property
    def count(self) -> int:
        """How many webhooks have arrived."""
        return len(self._arrived)

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()

    def _take(self, headers: Mapping[str, str], content: bytes) -> None:
        try:
            body = json.loads(content)
        except ValueError:
            body = None
        with self._came:
            self._arrived.append(Arrived(headers, body))
            self._came.notify_all()


def _order_id(webhook: Arrived) -> Any:
    return webhook.body.get("order_id") if isinstance(webhook.body, dict) else None
