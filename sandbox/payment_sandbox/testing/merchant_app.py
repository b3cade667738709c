"""Webhooks for a merchant's application in this process."""

from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING

from payment_sandbox.orders.webhooks import BODY_KEPT_BYTES, TIMEOUT_SECONDS, WebhookRequest
from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox.serving.threads import unmasked
from payment_sandbox.testing.wsgi import Head, environment, opened

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


class Receiver:
    """Delivers a project's webhooks to a merchant's WSGI application."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application
        self._tests_thread = get_ident()
        self._begun_seconds: dict[int, float] = {}  # of running handlers, by thread

    def __call__(self, request: WebhookRequest, answered: Callable[[int], None]) -> bytes:
        """Deliver one webhook; report its status with the first chunk, and truncate its body."""
        here = get_ident()
        outer = self._begun_seconds.get(here)  # of a handler whose call led to this webhook
        self._begun_seconds[here] = monotonic_seconds()
        try:
            environ = environment("POST", request.url, request.headers.items(), request.body)
            heads: list[Head] = []
            body = b""
            with unmasked(), opened(self._application, environ, heads.append) as pieces:
                for piece in pieces:
                    body += piece
                    if body:  # servers send nothing earlier: until then an error can still become a 500
                        answered(_code(heads))
                    if len(body) >= BODY_KEPT_BYTES:
                        break
            answered(_code(heads))
            return body[:BODY_KEPT_BYTES]
        finally:
            del self._begun_seconds[here]
            if outer is not None:
                self._begun_seconds[here] = outer

    def may_have_called(self) -> bool:
        """Whether the calling thread may belong to a webhook handler, which must not wait for webhooks.

        The test's own thread does not, unless it runs the handler itself. A handler that has timed out no
        longer counts.
        """
        here = get_ident()
        begun = self._begun_seconds.copy()
        if here in begun or here == self._tests_thread:
            return here in begun
        latest = monotonic_seconds() - TIMEOUT_SECONDS
        return any(seconds > latest for seconds in begun.values())


def _code(heads: list[Head]) -> int:
    if not heads:
        raise RuntimeError("the application did not call start_response")
    return heads[-1].code
