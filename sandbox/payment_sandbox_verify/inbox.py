"""The receiver of webhooks: it accepts whatever a service sends."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from payment_sandbox.client.receiver import WebhookEndpoint
from payment_sandbox_verify.answer import media_type_of, parse_json

RECEIVED_MAX: Final = 100_000


class Received(NamedTuple):
    """A request that arrived: ``data`` is its body if that is JSON."""

    path: str
    method: str
    media_type: str
    has_authorization: bool
    data: Any


class Inbox(WebhookEndpoint):
    """An address for webhooks that records requests of any method and form."""

    methods = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

    received: list[Received]

    def _receive(self, method: str, path: str, headers: Mapping[str, str], raw: bytes) -> int:
        """Record a request."""
        by_name = {name.lower(): value for name, value in headers.items()}
        media_type = media_type_of(by_name.get("content-type", ""))
        self.record(Received(path, method, media_type, "authorization" in by_name, parse_json(raw)))
        return self._answer()

    def record(self, request: Received) -> None:
        """Record a request, which ``wait_for`` returns."""
        with self._arrived:
            if len(self.received) < RECEIVED_MAX:
                self.received.append(request)
            self._arrived.notify_all()

    def wait_for(self, matches: Callable[[Received], bool], count: int, seconds: float) -> list[Received]:
        """Return the requests that match, once as many as ``count`` have arrived or the time is over."""

        def matching() -> list[Received]:
            return [each for each in self.received if matches(each)]

        with self._arrived:
            self._arrived.wait_for(lambda: len(matching()) >= count, seconds)
            return matching()
