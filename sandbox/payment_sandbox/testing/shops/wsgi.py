"""A merchant's WSGI application, called as a server would."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from payment_sandbox.orders.webhooks import BODY_KEPT_BYTES, Told
from payment_sandbox.testing.calling import CALLING_LOOP
from payment_sandbox.testing.environments import Head, environment, opened
from payment_sandbox.testing.shops.posted import Posted
from payment_sandbox.testing.shops.tracebacks import handled_here

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


class WsgiShop:
    """A merchant's WSGI application."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application

    def answer(self, posted: Posted, answered: Callable[[int], None]) -> Told:
        """Deliver one webhook; report its status with the first chunk; return its body, cut.

        If a test on an event loop awaits the call which led to it, the application runs on that thread.
        """
        found: list[Told] = []
        loop = CALLING_LOOP.get()
        if loop is None:
            return self._answer(posted, answered)
        loop.call(lambda: found.append(self._answer(posted, answered)))
        return found[0]

    def _answer(self, posted: Posted, answered: Callable[[int], None]) -> Told:
        environ = environment("POST", posted.url, posted.headers, posted.body)
        heads: list[Head] = []
        body = b""
        handled_here()
        with opened(self._application, environ, heads.append) as pieces:
            for piece in pieces:
                body += piece
                if body:  # servers send nothing earlier: until then an error can still become a 500
                    answered(_code(heads))
                if len(body) >= BODY_KEPT_BYTES:
                    break
        answered(_code(heads))
        location = next((value for name, value in heads[-1].headers if name.lower() == "location"), None)
        return Told(body[:BODY_KEPT_BYTES], location=location)

    def close(self) -> None:
        """Nothing to close."""


def _code(heads: list[Head]) -> int:
    if not heads:
        raise RuntimeError("the application did not call start_response")
    return heads[-1].code
