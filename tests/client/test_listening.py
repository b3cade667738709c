"""The listener delivers each webhook exactly once, also across restarts of server and shop."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread

import pytest

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.errors import SandboxError
from payment_sandbox.client.listening import ForwardedWebhook, Listener
from payment_sandbox.client.triggers import trigger
from payment_sandbox.orders.webhooks import Reply, WebhookRequest
from payment_sandbox.serving.courier import post_webhook
from tests.client.nursery import Nursery
from tests.support.driver import Sandbox, card
from tests.support.ports import free_port
from tests.support.shop import Received, Shop


class Listening:
    """A listener on a thread, and its notifications."""

    def __init__(self, client: SandboxClient, url: str) -> None:
        # webhooks arrive in this queue shortly after the server has recorded them
        self.forwarded: SimpleQueue[ForwardedWebhook] = SimpleQueue()
        self.connected = Event()
        self.error: Exception | None = None
        self.listener = Listener(
            client, url, on_forwarded=self.forwarded.put, on_server=self._note, send=post_webhook
        )
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.listener.run()
        except SandboxError as error:
            self.error = error
            self.connected.set()

    def _note(self, reason: str | None) -> None:
        if reason is None:
            self.connected.set()
        else:
            self.connected.clear()

    def stop(self) -> None:
        self.listener.stop()
        self._thread.join(20)
        assert not self._thread.is_alive()


def settle(client: SandboxClient) -> None:
    """Advance the clock from attempt to attempt until the reconnected listener has delivered all webhooks."""
    with closing(client.events()) as events:
        client.clock.advance(until="idle")
        while client.webhooks(state="pending"):
            next(event for event in events if event.kind == "webhook")
            client.clock.advance(until="idle")


@pytest.fixture
def listen(sandbox: Sandbox) -> Iterator[Callable[[str], Listening]]:
    """A factory of listeners; they are stopped after the test."""
    listeners: list[Listening] = []

    def start(url: str) -> Listening:
        listeners.append(Listening(SandboxClient(sandbox.url, sandbox.key), url))
        assert listeners[-1].connected.wait(10)
        return listeners[-1]

    yield start
    sandbox.delete("/control/project/")  # ends waiting calls
    for listening in listeners:
        listening.stop()


def test_the_shop_gets_forwarded_webhooks(
    client: SandboxClient, shop: Shop, listen: Callable[[str], Listening]
) -> None:
    """The shop gets forwarded webhooks, and the server records its responses."""
    shop.says = b"thanks"
    listening = listen(shop.url)
    order = trigger(client, "paid")["order"]
    assert shop.orders() == [order["id"]] * 2
    (first, second) = client.webhooks(order["id"])
    assert (first["state"], second["state"], second["url"]) == ("delivered", "delivered", shop.url)
    response = second["attempts"][0]["response"]
    assert response is not None
    assert (response["status"], response["body"]) == (200, "thanks")
    assert "payment-sandbox" in shop.received[0].headers["User-Agent"]
    assert [listening.forwarded.get(timeout=60).reply.status for _ in range(2)] == [200, 200]


def test_the_shop_s_failures_are_retried(
    client: SandboxClient, shop: Shop, listen: Callable[[str], Listening]
) -> None:
    """Failed forwarded webhooks are retried every two minutes, and a redirect causes a warning."""
    statuses = iter([500, 302])
    shop.answer = lambda received: next(statuses, 200)
    listen(shop.url)
    order = trigger(client, "expired")["order"]
    (webhook,) = client.webhooks(order["id"])
    assert (webhook["state"], webhook["attempts"][0]["response"]["status"]) == ("pending", 500)  # type: ignore[index]
    client.clock.advance("PT2M")
    (webhook,) = client.webhooks(order["id"])
    assert webhook["state"] == "delivered"
    assert "redirects are not followed" in str(webhook["attempts"][1]["warning"])


def test_every_other_kind_of_webhook_is_forwarded(
    sandbox: Sandbox, client: SandboxClient, shop: Shop, listen: Callable[[str], Listening]
) -> None:
    """Webhooks to an order's own address, copies and manual redeliveries are forwarded, too."""
    listen(shop.url)
    client.faults(webhooks=[{"when": {"status": "completed"}, "then": {"duplicate": 3}}])
    order = sandbox.place(card(), webhook_url="http://shop.invalid/webhook")
    client.act(order["id"], "customer", "pay")
    client.wait(webhook=order["id"], idle=True)
    assert shop.orders() == [order["id"]] * 4
    client.redeliver(client.webhooks(order["id"])[0]["id"])
    assert shop.orders() == [order["id"]] * 5


@pytest.mark.rule("A48")
def test_webhooks_wait_for_a_listener(
    sandbox: Sandbox, client: SandboxClient, shop: Shop, listen: Callable[[str], Listening]
) -> None:
    """Without a sign-off, webhooks wait for the next listener without using up attempts."""
    sandbox.project_in_process.forward_webhooks(shop.url)
    order = trigger(client, "paid")["order"]
    client.clock.advance("PT1H")
    assert [len(webhook["attempts"]) for webhook in client.webhooks()] == [0, 0]
    listen(shop.url)
    client.wait(webhook=order["id"])
    client.wait(idle=True)
    assert shop.orders() == [order["id"]] * 2
    assert [len(webhook["attempts"]) for webhook in client.webhooks()] == [1, 1]


def test_a_listener_posts_to_its_own_address_only(
    sandbox: Sandbox, client: SandboxClient, shop: Shop, listen: Callable[[str], Listening]
) -> None:
    """Neither the project's settings nor a server's headers decide where a listener's machine sends requests."""
    listen(shop.url)
    sandbox.project_in_process.forward_webhooks(f"{shop.url}/delete-all")
    trigger(client, "paid")
    client.wait(idle=True)
    assert {received.path for received in shop.received} == {"/webhook"}
    sent: list[WebhookRequest] = []

    def send(request: WebhookRequest, timeout_seconds: float) -> Reply:
        sent.append(request)
        return Reply(1.0, status=200)

    forwarded: list[ForwardedWebhook] = []
    url = shop.url
    listener = Listener(client, url, on_forwarded=forwarded.append, on_server=print, send=send)
    offer = {
        **dict.fromkeys(("id", "webhook", "at", "order_id", "number", "status"), "x"),
        "by_hand": False,
        "url": "http://169.254.169.254/",
        "headers": {"Content-Type": "a/b", "Host": "x", "Authorization": "x", "Transfer-Encoding": "chunked"},
        "body": "{}",
    }
    listener._forward(offer)
    assert sent == [WebhookRequest(url, {"Content-Type": "a/b"}, b"{}")]
    assert forwarded[0].as_mapping()["url"] == url


def test_a_wrong_key_ends_the_listener(sandbox: Sandbox, shop: Shop) -> None:
    """A listener with a wrong key stops with an error."""
    listening = Listening(SandboxClient(sandbox.url, "no-such-key"), shop.url)
    assert listening.connected.wait(10)
    listening.stop()
    assert isinstance(listening.error, SandboxError)
    assert listening.error.status == 401


def test_kills_of_server_and_shop_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    """Webhooks are neither lost nor repeated if the server is killed while the shop handles one."""
    port, shop_port = free_port(), free_port()
    nursery = Nursery(tmp_path / "state.db", port)
    server = nursery.begin()
    shop = Shop(shop_port)
    handled: Counter[str] = Counter()
    killed = Event()

    def kill_while_handling(received: Received) -> int:
        if len(shop.received) % 5 == 3:
            nursery.kill(server)
            killed.set()
        handled[received.body["order_id"]] += 1
        return 200

    shop.answer = kill_while_handling
    client = SandboxClient(server.url, "sandbox-key")
    listening = Listening(client, shop.url)
    assert listening.connected.wait(10)
    orders: list[str] = []
    restarts = 0
    try:
        while restarts < 4:
            killed.clear()
            try:
                body = {"currency": "EUR", "amount": 1295, "transactions": [card()]}
                orders.append(client.call("POST", "/v1/orders/", body)["id"])
                client.act(orders[-1], "customer", "pay")
                client.wait(idle=True, timeout_seconds=20)
            except (OSError, SandboxError):
                assert killed.wait(10)
            if killed.is_set():
                restarts += 1
                server = nursery.begin()
            if restarts % 4 == 3:  # the shop restarts, and is unreachable for a while
                shop.close()
                trigger(client, "expired")
                received = shop.received
                shop = Shop(shop_port)
                shop.received, shop.answer = received, kill_while_handling
                restarts += 1
        shop.answer = lambda received: handled.update([received.body["order_id"]]) or 200
        settle(client)
        webhooks = client.webhooks()
        assert {webhook["state"] for webhook in webhooks} == {"delivered"}
        assert handled == Counter(webhook["order_id"] for webhook in webhooks)
        assert len(webhooks) > restarts
    finally:
        nursery.close()
        listening.stop()
        shop.close()
