"""Calls an ASGI application, on the test's event loop or on a separate loop."""

from collections.abc import Awaitable, Callable, MutableMapping
from threading import Thread, local
from typing import Any, Final
from urllib.parse import unquote_to_bytes, urlsplit

from payment_sandbox.loading import load_module
from payment_sandbox.orders.webhooks import ATTEMPT_BODY_BYTES, ReceiverAnswer, WebhookRequest
from payment_sandbox.serving.binding import port_of
from payment_sandbox.serving.threads import start
from payment_sandbox.testing.environments import host_of
from payment_sandbox.testing.loops import (
    CALLING_LOOP,
    LoopThread,
    OwnLoop,
    TimeLimitExceeded,
    has_running_loop,
    new_event,
    run_within,
)
from payment_sandbox.testing.shops.shop_requests import is_django
from payment_sandbox.testing.shops.tracebacks import add_note, describe_late_failure, set_handler_thread

Message = MutableMapping[str, Any]
Application = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]
OWN_LOOP_NOTE: Final = (
    "the shop ran on an event loop of its own, because this call blocked the test's event loop: "
    "use await payment_sandbox.aio.act(...) and the like"
)
RESPONSE_START: Final = "http.response.start"
RESPONSE_BODY: Final = "http.response.body"


class AsgiExchange:
    """One request to an ASGI application, and its response."""

    def __init__(
        self, application: Application, post: WebhookRequest, on_status: Callable[[int], None]
    ) -> None:
        self._application = application
        self.post = post
        self._on_status = on_status
        self.error: BaseException | None = None
        self.status: int | None = None
        self.location: str | None = None
        self._is_sent = self.is_whole = False
        self._ended: Any = None
        self.body = b""

    async def run(self) -> None:
        """Call the application."""
        self._ended = new_event()
        set_handler_thread()
        try:
            await self._application(self._scope(), self._receive, self._send)
        except BaseException as error:
            self.error = error
            raise
        if not self.is_whole:
            raise RuntimeError("the application ended without a complete response")

    def _scope(self) -> dict[str, Any]:
        parts = urlsplit(self.post.url)
        path = parts.path or "/"
        sent = {"host": host_of(parts), "content-length": str(len(self.post.body))}
        sent |= {name.lower(): value for name, value in self.post.headers.items()}
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in sent.items()]
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": parts.scheme,
            "path": unquote_to_bytes(path).decode(errors="replace"),
            "raw_path": path.encode(),
            "query_string": parts.query.encode(),
            "root_path": "",
            "headers": headers,
            "client": ("127.0.0.1", 0),
            "server": (parts.hostname or "", port_of(parts)),
            "extensions": {},
        }

    async def _receive(self) -> Message:
        if self._is_sent:
            await self._ended.wait()
            return {"type": "http.disconnect"}
        self._is_sent = True
        return {"type": "http.request", "body": self.post.body, "more_body": False}

    async def _send(self, message: Message) -> None:
        if message["type"] == RESPONSE_START:
            self.status = int(message["status"])
            headers = {bytes(name).lower(): bytes(value) for name, value in message.get("headers", ())}
            self.location = headers.get(b"location", b"").decode("latin-1") or None
        elif message["type"] == RESPONSE_BODY:
            if self.status is None:
                raise RuntimeError("the application sent a body before its status")
            self.body = (self.body + message.get("body", b""))[:ATTEMPT_BODY_BYTES]
            self.is_whole = not message.get("more_body", False)
            if self.body or self.is_whole:
                self._on_status(self.status)
            if self.is_whole:
                self._ended.set()


class AsgiShop:
    """A merchant's ASGI application."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._thread_local = local()  # the loop of each thread that waits for webhooks
        self._loop_thread: LoopThread | None = None
        self._loops: list[OwnLoop | LoopThread] = []

    def answer(
        self, post: WebhookRequest, on_status: Callable[[int], None], timeout_seconds: float
    ) -> ReceiverAnswer:
        """Deliver one webhook; report the status; return the truncated body of the answer.

        The application runs on the event loop that awaits the call behind the webhook. If no loop awaits the
        call, the application runs on a loop of this thread, shared by all webhooks.
        """
        exchange = AsgiExchange(self._application, post, on_status)
        failure = None
        try:
            loop = CALLING_LOOP.get()
            if loop is not None:
                loop.run(exchange.run, timeout_seconds)
            elif has_running_loop():
                add_note(OWN_LOOP_NOTE)
                if self._loop_thread is None:
                    self._loop_thread = LoopThread()
                    self._loops.append(self._loop_thread)
                self._loop_thread.run(exchange.run, timeout_seconds)
            elif is_django(self._application):
                # so that Django's synchronous views run on this thread
                load_module("asgiref.sync").async_to_sync(run_within)(exchange.run, timeout_seconds)
            else:
                own: OwnLoop | None = getattr(self._thread_local, "loop", None)
                if own is None:
                    own = self._thread_local.loop = OwnLoop()
                    self._loops.append(own)
                own.run(exchange.run, timeout_seconds)
        except TimeLimitExceeded as late:
            if exchange.is_whole:
                return ReceiverAnswer(exchange.body, location=exchange.location)
            if exchange.error is not late:  # shows where the coroutine was cancelled
                late.__cause__ = exchange.error
            raise
        except Exception as error:
            if not exchange.is_whole:
                raise
            failure = describe_late_failure(error, exchange.status)
        return ReceiverAnswer(exchange.body, failure, location=exchange.location)

    def close(self) -> None:
        """Close the event loops."""
        loops, self._loops = self._loops, []
        for loop in loops:
            if has_running_loop():  # on this thread, other loops cannot run to end their tasks
                closing = Thread(target=loop.close, name="shop")
                start(closing)
                closing.join()
            else:
                loop.close()
