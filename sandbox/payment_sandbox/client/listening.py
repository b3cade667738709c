"""Forwards a project's webhooks to a shop that the server cannot reach."""

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from secrets import token_hex
from threading import Event
from typing import Any, Final, NamedTuple, cast

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.errors import SandboxError
from payment_sandbox.orders.webhooks import TIMEOUT_SECONDS, Reply, WebhookRequest

RECONNECT_SECONDS: Final = 0.2  # the pause between two connection attempts
UNCONFIRMED_MAX: Final = 10_000
CONCURRENT_MAX: Final = 16  # webhooks delivered at the same time
POLL_SECONDS: Final = 10
TIMEOUT_SECONDS_MAX: Final = 60.0
WEBHOOK_HEADERS: Final = ("Content-Type", "Accept", "User-Agent")
"""The only headers of a webhook that the server decides."""

Json = dict[str, Any]


class ListenerReplaced(Exception):
    """Another listener has taken over the webhooks of the project."""


class ForwardedWebhook(NamedTuple):
    """A forwarded webhook with the shop's answer or a delivery error."""

    offer: Json
    reply: Reply

    def as_mapping(self) -> Json:
        """Return the webhook and its answer as JSON."""
        reply = self.reply
        return {
            **{name: self.offer[name] for name in ("at", "order_id", "number", "url")},
            "order_status": self.offer["status"],
            "status": reply.status,
            "error": reply.error,
            "warning": reply.warning,
            "duration_ms": round(reply.duration_ms, 3),
        }


class UnconfirmedReplies:
    """The shop's answers that the server has not confirmed.

    A server that is killed before it records the shop's answer offers the same webhook again.
    """

    def __init__(self) -> None:
        self._replies: OrderedDict[str, Reply] = OrderedDict()  # unconfirmed answers by attempt
        self._delivered: OrderedDict[str, Reply] = OrderedDict()  # answers by webhook

    def find(self, offer: Json) -> Reply | None:
        """Return the answer to this attempt, or to an earlier successful attempt of the same webhook."""
        known = self._replies.get(offer["id"])
        return known or (None if offer["by_hand"] else self._delivered.get(offer["webhook"]))

    def add(self, offer: Json, reply: Reply) -> None:
        """Store an answer until the server confirms it."""
        self._replies[offer["id"]] = reply
        if reply.is_delivered:
            self._delivered[offer["webhook"]] = reply
        for replies in (self._replies, self._delivered):
            while len(replies) > UNCONFIRMED_MAX:
                replies.popitem(last=False)

    def confirm(self, offer: Json) -> None:
        """Drop an answer recorded by the server."""
        self._replies.pop(offer["id"], None)
        self._delivered.pop(offer["webhook"], None)


class Listener:
    """Forwards the webhooks of one project until stopped; survives restarts of server and shop.

    Whatever address and headers a server names, webhooks go to the URL of the listener only, with the headers
    of the sandbox.
    """

    def __init__(
        self,
        sandbox: SandboxClient,
        url: str,
        *,
        on_forwarded: Callable[[ForwardedWebhook], None],
        on_server: Callable[[str | None], None],
        send: Callable[[WebhookRequest, float], Reply],
    ) -> None:
        """Forward with ``send``, which delivers to the shop.

        ``on_server`` is called with the reason for a connection failure, and with None after
        reconnecting.
        """
        self._sandbox = sandbox
        self._url = url
        self._on_forwarded = on_forwarded
        self._on_server = on_server
        self._send = send
        self._unconfirmed = UnconfirmedReplies()
        self._name = token_hex(8)
        self._is_connected = False
        self._failure: str | None = None  # reason for the last connection failure
        self._stopped = Event()

    def run(self) -> None:
        """Forward webhooks until ``stop``.

        Raises:
            SandboxError: the server refuses the key or the address.
            ListenerReplaced: another listener has taken over.
        """
        with ThreadPoolExecutor(CONCURRENT_MAX, thread_name_prefix="forward") as senders:
            while not self._stopped.is_set():
                try:
                    list(senders.map(self._forward, self._fetch_next()))
                except OSError as error:  # the base class of all network errors
                    self._wait_to_reconnect(str(error))
                except SandboxError as refused:
                    is_transient = refused.status >= 500 and not refused.is_foreign
                    if not is_transient:  # else the server is stopping, or has too many waiting calls
                        raise
                    self._wait_to_reconnect(str(refused))

    def stop(self) -> None:
        """Stop after the deliveries in flight."""
        self._stopped.set()

    def disconnect(self) -> None:
        """Return delivery to the server."""
        self._ask(0, leaves=True)

    def _fetch_next(self) -> list[Json]:
        """Fetch the next webhooks; the first call after an interruption only registers the address."""
        timeout = POLL_SECONDS if self._is_connected else 0
        answer = self._ask(timeout)
        if answer["replaced"]:
            raise ListenerReplaced
        if not self._is_connected:
            self._is_connected, self._failure = True, None
            self._on_server(None)
        return cast("list[Json]", answer["items"])

    def _ask(self, timeout_seconds: float, *, leaves: bool | None = None) -> Any:
        return self._sandbox.next_offers(
            timeout_seconds=timeout_seconds, listener=self._name, forward_to=self._url, leaves=leaves
        )

    def _wait_to_reconnect(self, reason: str) -> None:
        if reason != self._failure:
            self._on_server(reason)
        self._is_connected, self._failure = False, reason
        self._stopped.wait(RECONNECT_SECONDS)

    def _forward(self, offer: Json) -> None:
        reply = self._unconfirmed.find(offer)
        if reply is not None:
            self._report_answer(offer, reply)
            return
        headers = {name: value for name, value in offer["headers"].items() if name.title() in WEBHOOK_HEADERS}
        request = WebhookRequest(self._url, headers, offer["body"].encode())
        seconds = float(offer.get("timeout_seconds", TIMEOUT_SECONDS))  # older servers do not name it
        reply = self._send(request, max(0.1, min(seconds, TIMEOUT_SECONDS_MAX)))
        self._unconfirmed.add(offer, reply)
        try:
            self._report_answer(offer, reply)
        finally:
            self._on_forwarded(ForwardedWebhook({**offer, "url": self._url}, reply))

    def _report_answer(self, offer: Json, reply: Reply) -> None:
        """Report the shop's answer to the server."""
        is_recorded = self._sandbox.report_answer(
            offer["id"],
            status=reply.status,
            body=reply.body,
            error=reply.error,
            warning=reply.warning,
            duration_ms=reply.duration_ms,
        )
        if is_recorded:
            self._unconfirmed.confirm(offer)
