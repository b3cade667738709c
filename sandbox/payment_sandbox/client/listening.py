"""Delivers a project's webhooks to a shop that the server cannot reach, and tells the server the answers."""

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from secrets import token_hex
from threading import Event
from typing import Any, Final, NamedTuple

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.errors import SandboxError
from payment_sandbox.orders.webhooks import Reply, WebhookRequest

AGAIN_SECONDS: Final = 0.2  # between two tries to reach the server
ANSWERS_KEPT_MAX: Final = 10_000
COPIES_MAX: Final = 16  # delivered at the same time
POLL_SECONDS: Final = 10
FORWARD_TO: Final = "forward_to"

Json = dict[str, Any]


class Replaced(Exception):
    """Another listener delivers the webhooks of the project now."""


class Forwarded(NamedTuple):
    """A webhook that was delivered, or not, and what the shop answered."""

    offer: Json
    reply: Reply

    def as_mapping(self) -> Json:
        """Its facts, for programs."""
        reply = self.reply
        return {
            **{name: self.offer[name] for name in ("at", "order_id", "number", "url")},
            "status": reply.status,
            "error": reply.error,
            "warning": reply.warning,
            "duration_ms": round(reply.duration_ms, 3),
        }


class Heard:
    """What the shop answered to webhooks whose answers the server may not have recorded yet.

    A server that is killed between the shop's answer and its own record offers the same webhook again.
    """

    def __init__(self) -> None:
        self._replies: OrderedDict[str, Reply] = OrderedDict()  # by attempt
        self._delivered: OrderedDict[str, Reply] = OrderedDict()  # by webhook

    def find(self, offer: Json) -> Reply | None:
        """The answer to this attempt, or to an earlier one of the same webhook that was delivered."""
        known = self._replies.get(offer["id"])
        return known or (None if offer["by_hand"] else self._delivered.get(offer["webhook"]))

    def keep(self, offer: Json, reply: Reply) -> None:
        """Keep an answer until the server has it."""
        self._replies[offer["id"]] = reply
        if reply.is_delivered:
            self._delivered[offer["webhook"]] = reply
        for kept in (self._replies, self._delivered):
            while len(kept) > ANSWERS_KEPT_MAX:
                kept.popitem(last=False)

    def forget(self, offer: Json) -> None:
        """The server has it."""
        self._replies.pop(offer["id"], None)
        self._delivered.pop(offer["webhook"], None)


class Listener:
    """Forwards the webhooks of one project until it is stopped, however often server and shop restart."""

    def __init__(
        self,
        sandbox: SandboxClient,
        url: str,
        *,
        on_forwarded: Callable[[Forwarded], None],
        on_server: Callable[[str | None], None],
        send: Callable[[WebhookRequest], Reply],
    ) -> None:
        """``send`` delivers to the shop.

        ``on_server`` is told why the server cannot be reached, and None once it can.
        """
        self._sandbox = sandbox
        self._url = url
        self._on_forwarded = on_forwarded
        self._on_server = on_server
        self._send = send
        self._heard = Heard()
        self._name = token_hex(8)
        self._is_connected = False
        self._trouble: str | None = None  # why the server cannot be reached
        self._stopped = Event()

    def run(self) -> None:
        """Forward webhooks until ``stop``.

        Raises:
            SandboxError: the server refuses the key or the address.
            Replaced: another listener has taken over.
        """
        with ThreadPoolExecutor(COPIES_MAX, thread_name_prefix="copy") as copies:
            while not self._stopped.is_set():
                try:
                    list(copies.map(self._forward, self._next()))
                except OSError as error:  # all network errors are
                    self._lost(str(error))
                except SandboxError as refused:
                    if not _is_passing(refused):
                        raise
                    self._lost(str(refused))

    def stop(self) -> None:
        """End soon; what is being delivered is answered first."""
        self._stopped.set()

    def leave(self) -> bool:
        """Have the server send webhooks by itself again; False if somebody has changed where they go."""
        self._call(timeout=0, leaves=True)
        return self._sandbox.project()["settings"].get(FORWARD_TO) is None

    def _next(self) -> list[Json]:
        """The next webhooks; a call after a break only announces where they go."""
        timeout = POLL_SECONDS if self._is_connected else 0
        answer = self._call(timeout=timeout)
        if answer["replaced"]:
            raise Replaced
        if not self._is_connected:
            self._is_connected, self._trouble = True, None
            self._on_server(None)
        items: list[Json] = answer["items"]
        return items

    def _call(self, **more: Any) -> Json:
        body = {"listener": self._name, FORWARD_TO: self._url, **more}
        answer: Json = self._sandbox.call("POST", "/control/listener/next/", body)
        return answer

    def _lost(self, why: str) -> None:
        if why != self._trouble:
            self._on_server(why)
        self._is_connected, self._trouble = False, why
        self._stopped.wait(AGAIN_SECONDS)

    def _forward(self, offer: Json) -> None:
        reply = self._heard.find(offer)
        if reply is not None:
            self._answer(offer, reply)
            return
        reply = self._send(WebhookRequest(offer["url"], offer["headers"], offer["body"].encode()))
        self._heard.keep(offer, reply)
        try:
            self._answer(offer, reply)
        finally:
            self._on_forwarded(Forwarded(offer, reply))

    def _answer(self, offer: Json, reply: Reply) -> None:
        """Tell the server what the shop answered."""
        body = {
            "id": offer["id"],
            "status": reply.status,
            "body": reply.body,
            "error": reply.error,
            "warning": reply.warning,
            "duration_ms": reply.duration_ms,
        }
        if self._sandbox.call("POST", "/control/listener/answers/", body)["recorded"]:
            self._heard.forget(offer)


def _is_passing(refused: SandboxError) -> bool:
    """Whether it may work in a moment: the server stops, or has too many calls that wait."""
    return refused.status >= 500 and not refused.is_foreign
