"""Webhooks for a listener arrive, even if the listener fails."""

from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest

from payment_sandbox.delivery.receivers import ProjectListener, listener_of
from tests.support.driver import Sandbox, card
from tests.support.shop import Shop

FORWARD = "http://localhost:3000/webhook"


@pytest.fixture
def forwarding(project: Callable[..., Sandbox]) -> Sandbox:
    """A project whose webhooks wait for a listener."""
    sandbox = project()
    sandbox.project_in_process.forward_webhooks(FORWARD)
    return sandbox


def poll_offers(sandbox: Sandbox, listener: str = "one", timeout: float = 5) -> list[dict[str, Any]]:
    """Poll as a listener, and return the offered webhooks."""
    items: list[dict[str, Any]] = sandbox.post(
        "/control/listener/next/", {"timeout": timeout, "listener": listener}
    ).json()["items"]
    return items


def send_answer(sandbox: Sandbox, offer: dict[str, Any], status: int = 200) -> bool:
    """Send an answer to an offer, and return whether it is recorded."""
    response = sandbox.post("/control/listener/answers/", {"id": offer["id"], "status": status})
    recorded: bool = response.json()["recorded"]
    return recorded


def listener_in(sandbox: Sandbox) -> ProjectListener:
    """Return the listener of the project."""
    return listener_of(sandbox.project_in_process)


def attempts(sandbox: Sandbox) -> list[Any]:
    """Return the response statuses of all attempts."""
    webhooks = sandbox.webhooks()
    return [attempt["response"]["status"] for item in webhooks for attempt in item["attempts"]]


def test_an_unanswered_webhook_is_offered_again(forwarding: Sandbox) -> None:
    """An unanswered webhook is offered to the next listener, because the first may have been killed."""
    forwarding.place(card(payment_method="bank-transfer"))
    (first,) = poll_offers(forwarding)
    (second,) = poll_offers(forwarding, "two")
    assert second["id"] == first["id"]
    assert send_answer(forwarding, second)
    assert attempts(forwarding) == [200]


def test_a_newer_call_replaces_a_waiting_call(forwarding: Sandbox) -> None:
    """A newer call of the listener ends the older waiting call, and gets the webhook."""
    listener = listener_in(forwarding)
    before = listener._newest_call
    older = Thread(target=poll_offers, args=(forwarding, "one", 30))
    older.start()
    with listener._changed:
        assert listener._changed.wait_for(lambda: listener._newest_call > before, 60)
    newer = Thread(target=lambda: send_answer(forwarding, poll_offers(forwarding)[0]))
    newer.start()
    older.join(60)
    assert not older.is_alive()
    forwarding.place(card(payment_method="bank-transfer"))
    newer.join(60)
    forwarding.get("/control/wait/?idle=1")
    assert attempts(forwarding) == [200]


ONE, TWO = ({"timeout": 0, "listener": name, "forward_to": FORWARD + name} for name in ("one", "two"))
LEAVES = {"leaves": True}
CALLS: dict[str, list[tuple[dict[str, Any], bool, str | None]]] = {  # body, is replaced, address afterwards
    "late calls after leaving": [
        (ONE, False, "one"), (ONE | LEAVES, True, None), (ONE, True, None), (ONE | {"timeout": 30}, True, None),
        (TWO, False, "two"),
    ],
    "leaving before the first call": [(ONE | LEAVES, True, None), (ONE, True, None)],
    "leaving after another listener": [
        (ONE, False, "one"), (TWO, False, "two"), (ONE | {"timeout": 30}, True, "two"), (ONE | LEAVES, True, "two"),
        (TWO, False, "two"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("calls", CALLS.values(), ids=CALLS)
def test_only_the_newest_listener_that_has_not_left_sets_the_address(
    sandbox: Sandbox, calls: list[tuple[dict[str, Any], bool, str | None]]
) -> None:
    """Calls of other listeners return at once, say that the listener was replaced, and change nothing."""
    for body, is_replaced, name in calls:
        answer = sandbox.post("/control/listener/next/", body).json()
        assert (answer["items"], answer["replaced"]) == ([], is_replaced)
        address = sandbox.project_in_process.settings.forward_to
        assert address == (name and FORWARD + name)


def test_leaving_ends_a_waiting_call(forwarding: Sandbox, shop: Shop) -> None:
    """Leaving ends the listener's waiting call without a webhook; the server sends the next one itself."""
    body = {"listener": "one", "forward_to": FORWARD}
    polled: list[list[dict[str, Any]]] = []
    waiting = Thread(target=lambda: polled.append(poll_offers(forwarding, "one", 30)))
    waiting.start()
    forwarding.post("/control/listener/next/", body | {"leaves": True})
    order = forwarding.place(card(payment_method="bank-transfer"), webhook_url=shop.url)
    forwarding.get(f"/control/wait/?webhook={order['id']}&timeout=30")
    waiting.join(60)
    assert (polled, shop.orders()) == ([[]], [order["id"]])


def test_a_listener_stays_connected_when_a_snapshot_is_restored(forwarding: Sandbox) -> None:
    """The address of the project's listener is not that of the snapshot, which has none."""
    before = forwarding.project_in_process.settings.forward_to
    assert forwarding.put("/control/state/", forwarding.get("/control/state/").json()).status_code == 200
    assert forwarding.project_in_process.settings.forward_to == before is not None


def test_an_unanswered_offer_is_a_failed_attempt(forwarding: Sandbox, shop: Shop) -> None:
    """A listener that takes a webhook and reports no answer costs an attempt; the server makes the next one."""
    forwarding.settings(webhook_timeout=0.1)
    order = forwarding.place(card(payment_method="bank-transfer"), webhook_url=shop.url)
    assert len(poll_offers(forwarding)) == 1
    forwarding.project_in_process.forward_webhooks(None)
    forwarding.settle()
    (attempt,) = forwarding.webhooks()[0]["attempts"]
    assert attempt["error"] == "no answer within 0.1 seconds from the listener"
    forwarding.advance("PT2M")
    assert shop.orders() == [order["id"]]


def test_a_listener_that_does_not_take_a_webhook_is_gone(forwarding: Sandbox) -> None:
    """A listener that was killed between two calls takes nothing: the webhook is unsent, and a new one gets it."""
    forwarding.settings(webhook_timeout=0.1)
    assert poll_offers(forwarding, timeout=0) == []
    order = forwarding.place(card(payment_method="bank-transfer"))
    forwarding.settle()
    unsent = forwarding.webhooks(state="unsent")
    assert [(each["order_id"], each["url"], each["attempts"]) for each in unsent] == [
        (order["id"], FORWARD, [])
    ]
    (offer,) = poll_offers(forwarding, "two")
    assert send_answer(forwarding, offer)
    assert (attempts(forwarding), forwarding.webhooks(state="unsent")) == ([200], [])


@pytest.mark.rule("A48")
def test_unsent_webhooks_are_sent_in_order_or_by_the_server(forwarding: Sandbox, shop: Shop) -> None:
    """Without a listener, webhooks are unsent; the end of the forwarding sends them to their own address."""
    orders = [forwarding.place(card(payment_method="bank-transfer"), webhook_url=shop.url) for _ in range(3)]
    assert forwarding.get("/control/wait/?idle=1").status_code == 200, "nobody waits for an unsent webhook"
    forwarding.advance("PT1H")
    assert [each["attempts"] for each in forwarding.webhooks()] == [[], [], []]
    forwarding.project_in_process.forward_webhooks(None)
    forwarding.settle()
    assert shop.orders() == [order["id"] for order in orders]


def test_manual_and_scheduled_attempts_are_distinguished(forwarding: Sandbox) -> None:
    """A manual attempt and a scheduled attempt in flight get separate answers."""
    forwarding.place(card(payment_method="bank-transfer"))
    (first,) = poll_offers(forwarding)
    delivery = forwarding.webhooks()[0]["id"]
    redelivery = Thread(target=forwarding.post, args=(f"/control/webhooks/{delivery}/redeliver/",))
    redelivery.start()
    offers: dict[str, Any] = {}
    while len(offers) < 2:
        offers |= {offer["id"]: offer for offer in poll_offers(forwarding)}
    by_hand = next(offer for offer in offers.values() if offer["by_hand"])
    assert by_hand["id"] != first["id"]
    assert (send_answer(forwarding, first, 503), send_answer(forwarding, by_hand, 200)) == (True, True)
    redelivery.join(60)
    assert sorted(attempts(forwarding)) == [200, 503]


def test_a_reset_drops_offered_and_waiting_webhooks(forwarding: Sandbox) -> None:
    """A reset drops offered and waiting webhooks."""
    forwarding.place(card(payment_method="bank-transfer"))
    (first,) = poll_offers(forwarding)
    forwarding.place(card(payment_method="bank-transfer"))
    forwarding.post("/control/reset/")
    assert not send_answer(forwarding, first)
    assert poll_offers(forwarding, timeout=0) == []
    assert (listener_in(forwarding)._offered, forwarding.webhooks()) == ({}, [])


def test_a_resend_without_a_listener_is_unsent(forwarding: Sandbox) -> None:
    """A resend waits for a listener like any webhook, once; one with changes is a failed attempt."""
    forwarding.place(card(payment_method="bank-transfer"))
    (webhook,) = forwarding.webhooks()
    for body in ({}, {}, {"body": "{}"}):
        assert forwarding.post(f"/control/webhooks/{webhook['id']}/redeliver/", body).status_code == 200
    (webhook,) = forwarding.webhooks(state="unsent")
    assert [each["error"] for each in webhook["attempts"]] == ["not sent: no listener is connected"]
    (offer,) = poll_offers(forwarding)
    assert send_answer(forwarding, offer)
    assert forwarding.webhooks()[0]["state"] == "delivered"
