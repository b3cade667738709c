"""Webhooks for a listener arrive, even if the listener fails."""

from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest

from payment_sandbox.projects.outbox import OutboxEntry
from payment_sandbox.projects.relay import Relay
from tests.support.driver import Sandbox, card
from tests.support.shop import Shop

FORWARD = "http://localhost:3000/webhook"


@pytest.fixture
def forwarding(project: Callable[..., Sandbox]) -> Sandbox:
    """A project whose webhooks wait for a listener."""
    return project(forward_to=FORWARD)


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


def relay_of(sandbox: Sandbox) -> Relay:
    """Return the relay of the project."""
    project = sandbox.project_in_process
    return project.relay


def awaiting_listener(sandbox: Sandbox) -> list[OutboxEntry]:
    """Return the webhooks that await a listener."""
    project = sandbox.project_in_process
    return project.epoch.outbox._awaiting_listener


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
    older = Thread(target=poll_offers, args=(forwarding, "one", 30))
    older.start()
    relay = relay_of(forwarding)
    with relay._changed:
        assert relay._changed.wait_for(lambda: relay._waiting_calls > 0, 60)
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
        address = sandbox.get("/control/project/").json()["settings"]["forward_to"]
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


def test_an_open_offer_outlives_the_end_of_the_forwarding(forwarding: Sandbox, shop: Shop) -> None:
    """If forwarding ends during an offer, the server sends the webhook after the listener's timeout."""
    order = forwarding.place(card(payment_method="bank-transfer"), webhook_url=shop.url)
    assert len(poll_offers(forwarding)) == 1
    forwarding.settings(forward_to=None)
    forwarding.get(f"/control/wait/?webhook={order['id']}&timeout=30")
    assert shop.orders() == [order["id"]]


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
    assert (relay_of(forwarding)._offered, awaiting_listener(forwarding)) == ({}, [])


def test_each_call_of_a_listener_sets_its_url(sandbox: Sandbox) -> None:
    """Each call of a listener sets ``forward_to``, also after a restored snapshot."""
    state = sandbox.get("/control/state/").json()
    body = {"timeout": 0, "forward_to": FORWARD}
    sandbox.post("/control/listener/next/", body)
    sandbox.put("/control/state/", state)
    assert sandbox.get("/control/project/").json()["settings"]["forward_to"] is None
    sandbox.post("/control/listener/next/", body)
    assert sandbox.get("/control/project/").json()["settings"]["forward_to"] == FORWARD


def test_long_texts_of_a_listener_are_truncated(forwarding: Sandbox) -> None:
    """Long texts from a listener are truncated before they are stored."""
    forwarding.place(card(payment_method="bank-transfer"))
    (offer,) = poll_offers(forwarding)
    answer = {"id": offer["id"], "error": "x" * 10_000, "warning": "y" * 10_000}
    assert forwarding.post("/control/listener/answers/", answer).json() == {"recorded": True}
    attempt = forwarding.webhooks()[0]["attempts"][0]
    assert (attempt["error"], attempt["warning"]) == ("x" * 500, "y" * 500)


def test_repeated_redeliveries_are_queued_once(forwarding: Sandbox) -> None:
    """Repeated redeliveries without a listener are queued once."""
    forwarding.place(card(payment_method="bank-transfer"))
    (webhook,) = forwarding.webhooks()
    for _ in range(5):
        assert forwarding.post(f"/control/webhooks/{webhook['id']}/redeliver/").status_code == 200
    forwarding.get("/control/wait/?idle=1")
    assert sorted(entry.queued.forced for entry in awaiting_listener(forwarding)) == [False, True]
    offers = poll_offers(forwarding)
    assert all(send_answer(forwarding, offer) for offer in offers)
