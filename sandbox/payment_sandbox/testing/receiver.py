"""A real HTTP server for webhooks, for tests without their own shop."""

import json
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from typing import Any, NamedTuple

from payment_sandbox.serving.threads import start

NO_WEBHOOK = 400


class ReceivedWebhook(NamedTuple):
    """One webhook as received."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def order_id(self) -> str:
        """Return the id of the order whose status changed."""
        order_id: str = self.body["order_id"]
        return order_id


class WebhookReceiver:
    """Records webhooks and answers 200, or the status set by ``answer_with``."""

    def __init__(self) -> None:
        self.received: list[ReceivedWebhook] = []
        self._came = Condition()
        self._status = 200
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                status = receiver._take(self.path, dict(self.headers.items()), self.rfile.read(length))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 (the name in the base class)
                pass

        class Listener(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

        self._server = Listener(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/webhook"
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,), name="receiver", daemon=True)
        start(self._thread)

    def answer_with(self, status: int) -> None:
        """Answer with this status from now on."""
        self._status = status

    def wait_for(self, order_id: str, timeout_seconds: float = 10.0) -> ReceivedWebhook:
        """Return an order's first webhook as soon as it arrives.

        Raises:
            TimeoutError: none arrived; the message names the orders whose webhooks did.
        """

        def found() -> ReceivedWebhook | None:
            return next((webhook for webhook in self.received if webhook.order_id == order_id), None)

        with self._came:
            if not self._came.wait_for(lambda: found() is not None, timeout_seconds):
                others = sorted({webhook.order_id for webhook in self.received})
                raise TimeoutError(
                    f"no webhook for order {order_id} within {timeout_seconds:g} seconds; for: {others}"
                )
            webhook = found()
        assert webhook is not None, "just found"
        return webhook

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _take(self, path: str, headers: dict[str, str], raw: bytes) -> int:
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        if not isinstance(body, dict) or not isinstance(body.get("order_id"), str):
            return NO_WEBHOOK
        with self._came:
            self.received.append(ReceivedWebhook(path, headers, body))
            self._came.notify_all()
        return self._status
