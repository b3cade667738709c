"""Calls an ASGI application as if it were a WSGI application, for a browser that knows only these."""

from collections.abc import Iterable
from http.client import responses
from typing import TYPE_CHECKING, Any, Final

from payment_sandbox.testing.calling import CALLING_LOOP
from payment_sandbox.testing.environments import body_of
from payment_sandbox.testing.loops import LoopThread
from payment_sandbox.testing.shops.asgi import BODY, START, AsgiShop, Exchanged, Message
from payment_sandbox.testing.shops.interfaces import shop_of
from payment_sandbox.testing.shops.posted import Posted

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse

SECONDS_MAX: Final = 30.0
PREFIX: Final = "HTTP_"
CHUNKED: Final = "HTTP_TRANSFER_ENCODING"  # the body is passed on whole


class _Asked(Exchanged):
    """A request of any method, with its whole response."""

    def __init__(self, application: Any, environ: dict[str, Any]) -> None:
        self._environ = environ
        headers = [
            (name.removeprefix(PREFIX).replace("_", "-"), str(value))
            for name, value in environ.items()
            if (name.startswith(PREFIX) and name != CHUNKED) or name == "CONTENT_TYPE"
        ]
        url = f"{environ['wsgi.url_scheme']}://{environ['HTTP_HOST']}{environ['PATH_INFO']}"
        super().__init__(application, Posted(url, headers, body_of(environ)), lambda status: None)
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        self.pieces: list[bytes] = []

    def _scope(self) -> dict[str, Any]:
        query = self._environ.get("QUERY_STRING", "").encode("latin-1")
        return {**super()._scope(), "method": self._environ["REQUEST_METHOD"], "query_string": query}

    async def _send(self, message: Message) -> None:
        if message["type"] == START:
            self.status = int(message["status"])
            self.headers = [
                (name.decode("latin-1"), value.decode("latin-1")) for name, value in message["headers"]
            ]
        elif message["type"] == BODY:
            self.pieces.append(message.get("body", b""))
        await super()._send(message)


class AsgiBridge:
    """An ASGI application as a WSGI application: all requests run on one event loop, at the same time."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self._loop: LoopThread | None = None

    def __call__(self, environ: dict[str, Any], start_response: "StartResponse") -> Iterable[bytes]:
        """Answer one request, on the loop of an ``async`` test, or on one of its own."""
        asked = _Asked(self._application, environ)
        (CALLING_LOOP.get() or self._own_loop()).run(asked.run, SECONDS_MAX)
        start_response(f"{asked.status} {responses.get(asked.status, '')}", asked.headers)
        return asked.pieces

    def _own_loop(self) -> LoopThread:
        self._loop = self._loop or LoopThread()
        return self._loop

    def close(self) -> None:
        """Stop its loop."""
        if self._loop is not None:
            self._loop.close()


def bridged(application: Any) -> AsgiBridge | None:
    """A bridge to an ASGI application; None for a WSGI application, which needs none.

    Raises:
        TypeError: it is something else.
    """
    return AsgiBridge(application) if isinstance(shop_of(application), AsgiShop) else None
