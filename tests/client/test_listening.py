"""The listener: whatever restarts, no webhook is lost and none comes twice."""

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
from payment_sandbox.serving.posting import webhook_poster
from tests.support.driver import Sandbox, card
from tests.support.nursery import Nursery
from tests.support.ports import free_port
from tests.support.shop import Received, Shop


class Listening:
    """A listener on a thread, and what it told."""

    def __init__(self, client: SandboxClient, url: str) -> None:
        self.told: SimpleQueue[ForwardedWebhook] = SimpleQueue()  # shortly after the server knows
        self.connected = Event()
        self.error: Exception | None = None
        self.listener = Listener(
            client, url, on_forwarded=self.told.put, on_server=self._note, send=webhook_poster()
        )
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.listener.run()
        except SandboxError as error:
            self.error = error
            self.connected.set()

    def _note(self, why: str | None) -> None:
        if why is None:
            self.connected.set()
        else:
            self.connected.clear()

    def stop(self) -> None:
        self.listener.stop()
        self._thread.join(20)
        assert not self._thread.is_alive()


def settle(client: SandboxClient) -> None:
    """Move the clock from attempt to attempt until the listener, which comes back, has delivered everything."""
    with closing(client.events()) as events:
        client.clock.advance(until="idle")
        while client.webhooks(state="pending"):
            next(event for event in events if event.kind == "webhook")
            client.clock.advance(until="idle")


@pytest.fixture
def listen(sandbox: Sandbox) -> Iterator[Callable[[str], Listening]]:
    """Starts listeners and ends them."""
    made: list[Listening] = []

    def start(url: str) -> Listening:
        made.append(Listening(SandboxClient(sandbox.url, sandbox.key), url))
        assert made[-1].connected.wait(10)
        return made[-1]

    yield start
    sandbox.delete("/control/project/")  # ends the calls that wait
    for listening in made:
        listening.stop()


def test_the_shop_gets_webhooks_that_the_server_could_not_send(
    client: SandboxClient, shop: Shop, listen: Callable[[str], Listening]
) -> None:
    """With the same body and headers, and the answer counts as the shop's."""
    shop.says = b"thanks"
    listening = listen(shop.url)
    order = trigger(client, "paid")["order"]
    assert shop.orders() == [order["id"]] * 2
    (first, second) = client.webhooks(order["id"])
    assert (first["state"], second["state"], second["url"]) == ("delivered", "delivered", shop.url)
    answered = second["attempts"][0]["response"]
    assert answered is not None
    assert (answered["status"], answered["body"]) == (200, "thanks")
    assert "payment-sandbox" in shop.received[0].headers["User-Agent"]
    assert [listening.told.get(timeout=10).reply.status for _ in range(2)] == [200, 200]


def test_the_shop_s_failures_are_retried(
    client: SandboxClient, shop: Shop, listen: Callable[[str], Listening]
) -> None:
    """Every two minutes, as if the server had sent them; a redirect is warned about."""
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


def test_an_address_of_the_order_is_forwarded_too(
    sandbox: Sandbox, client: SandboxClient, shop: Shop, listen: Callable[[str], Listening]
) -> None:
    """The server may not reach that either."""
    listen(shop.url)
    order = sandbox.place(card(), webhook_url="http://shop.invalid/webhook")
    client.act(order["id"], "customer", "pay")
    client.wait(webhook=order["id"])
    assert set(shop.orders()) == {order["id"]}


@pytest.mark.rule("A48")
def test_webhooks_wait_for_a_listener(
    client: SandboxClient, shop: Shop, listen: Callable[[str], Listening]
) -> None:
    """That has been told of; they cost no attempt, and come when it is there."""
    client.change_settings(forward_to=shop.url)
    order = trigger(client, "paid")["order"]
    client.clock.advance("PT1H")
    assert [len(webhook["attempts"]) for webhook in client.webhooks()] == [0, 0]
    listen(shop.url)
    client.wait(webhook=order["id"])
    client.wait(idle=True)
    assert shop.orders() == [order["id"]] * 2
    assert [len(webhook["attempts"]) for webhook in client.webhooks()] == [1, 1]


def test_without_a_listener_the_server_sends_again(client: SandboxClient, shop: Shop) -> None:
    """Once the setting is emptied, also what has waited."""
    client.change_settings(forward_to="http://shop.invalid/", webhook_url=shop.url)
    order = trigger(client, "paid")["order"]
    assert shop.orders() == []
    client.change_settings(forward_to=None)
    client.wait(webhook=order["id"])
    assert shop.orders()[0] == order["id"]


def test_a_webhook_sent_again_by_hand_is_delivered_again(
    client: SandboxClient, shop: Shop, listen: Callable[[str], Listening]
) -> None:
    """Although the shop has had it."""
    listen(shop.url)
    order = trigger(client, "expired")["order"]
    client.redeliver(client.webhooks(order["id"])[0]["id"])
    assert shop.orders() == [order["id"]] * 2


def test_duplicates_of_a_scenario_arrive(
    client: SandboxClient, shop: Shop, listen: Callable[[str], Listening]
) -> None:
    """Each copy is delivered."""
    listen(shop.url)
    client.faults(webhooks=[{"when": {"status": "expired"}, "then": {"duplicate": 3}}])
    trigger(client, "expired")
    assert len(shop.received) == 3


def test_a_wrong_key_ends_the_listener(sandbox: Sandbox, shop: Shop) -> None:
    """It would never work."""
    listening = Listening(SandboxClient(sandbox.url, "no-such-key"), shop.url)
    assert listening.connected.wait(10)
    listening.stop()
    assert isinstance(listening.error, SandboxError)
    assert listening.error.status == 401


def test_an_answer_that_nobody_asked_for_is_not_recorded(client: SandboxClient) -> None:
    """Such as one that comes after a restart of the server."""
    told = client.call("POST", "/control/listener/answers/", {"id": "unknown", "status": 200})
    assert told == {"recorded": False}


def test_kills_of_server_and_shop_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    """The server is killed while the shop handles a webhook, which it then does not get again."""
    port, shop_port = free_port(), free_port()
    nursery = Nursery(tmp_path / "state.db", port)
    life = nursery.begin()
    shop = Shop(shop_port)
    answered: Counter[str] = Counter()
    killed = Event()

    def kill_while_handling(received: Received) -> int:
        if len(shop.received) % 5 == 3:
            nursery.kill(life)
            killed.set()
        answered[received.body["order_id"]] += 1
        return 200

    shop.answer = kill_while_handling
    client = SandboxClient(life.url, "sandbox-key")
    listening = Listening(client, shop.url)
    assert listening.connected.wait(10)
    orders: list[str] = []
    lives = 0
    try:
        while lives < 12:
            killed.clear()
            try:
                orders.append(client.call("POST", "/v1/orders/", ORDER)["id"])
                client.act(orders[-1], "customer", "pay")
                client.wait(idle=True, timeout_seconds=20)
            except (OSError, SandboxError):
                assert killed.wait(10)
            if killed.is_set():
                lives += 1
                life = nursery.begin()
            if lives % 4 == 3:  # the shop restarts, and is away for a while
                shop.close()
                trigger(client, "expired")
                received = shop.received
                shop = Shop(shop_port)
                shop.received, shop.answer = received, kill_while_handling
                lives += 1
        shop.answer = lambda received: answered.update([received.body["order_id"]]) or 200
        settle(client)
        webhooks = client.webhooks()
        assert {webhook["state"] for webhook in webhooks} == {"delivered"}
        assert answered == Counter(webhook["order_id"] for webhook in webhooks)
        assert len(webhooks) > lives
    finally:
        nursery.close()
        listening.stop()
        shop.close()


ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}
