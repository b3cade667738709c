"""Webhooks for a listener arrive, even if the listener fails."""

from collections.abc import Callable, Iterator
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


@pytest.fixture
def start_polling(forwarding: Sandbox) -> Iterator[Callable[..., Thread]]:
    """Start waiting calls, like those of listeners that have disconnected."""
    started: list[Thread] = []

    def poll(listener: str = "one") -> Thread:
        thread = Thread(target=poll_offers, args=(forwarding, listener, 30))
        thread.start()
        started.append(thread)
        relay = relay_of(forwarding)
        with relay._changed:
            assert relay._changed.wait_for(lambda: relay._waiting_calls > 0, 60)
        return thread

    yield poll
    forwarding.delete("/control/project/")
    for thread in started:
        thread.join(60)


def test_an_unanswered_webhook_is_offered_again(forwarding: Sandbox) -> None:
    """An unanswered webhook is offered to the next listener, because the first may have been killed."""
    forwarding.place(card(payment_method="bank-transfer"))
    (first,) = poll_offers(forwarding)
    (second,) = poll_offers(forwarding, "two")
    assert second["id"] == first["id"]
    assert send_answer(forwarding, second)
    assert attempts(forwarding) == [200]


def test_a_newer_call_replaces_a_waiting_call(
    forwarding: Sandbox, start_polling: Callable[..., Thread]
) -> None:
    """A newer call of the listener ends the older waiting call, and gets the webhook."""
    older = start_polling()
    newer = Thread(target=lambda: send_answer(forwarding, poll_offers(forwarding)[0]))
    newer.start()
    older.join(60)
    assert not older.is_alive()
    forwarding.place(card(payment_method="bank-transfer"))
    newer.join(60)
    forwarding.get("/control/wait/?idle=1")
    assert attempts(forwarding) == [200]


def test_a_listener_that_was_replaced_is_told(forwarding: Sandbox) -> None:
    """A replaced listener gets no webhooks, and is told that it was replaced."""
    poll_offers(forwarding, "one", 0)
    poll_offers(forwarding, "two", 0)
    response = forwarding.post("/control/listener/next/", {"timeout": 30, "listener": "one"}).json()
    assert response == {"items": [], "replaced": True}


def test_late_calls_of_a_listener_that_has_left_change_nothing(sandbox: Sandbox) -> None:
    """Calls of a listener that arrive after it has left do not set ``forward_to`` again."""
    body = {"timeout": 0, "listener": "one", "forward_to": FORWARD}
    sandbox.post("/control/listener/next/", body)
    for late_body in [body | {"leaves": True}, body, body | {"timeout": 30}]:
        response = sandbox.post("/control/listener/next/", late_body).json()
        assert response == {"items": [], "replaced": True}
        assert sandbox.get("/control/project/").json()["settings"]["forward_to"] is None
    sandbox.post("/control/listener/next/", body | {"listener": "two"})
    assert sandbox.get("/control/project/").json()["settings"]["forward_to"] == FORWARD


def test_a_listener_may_leave_before_its_first_call_arrives(sandbox: Sandbox) -> None:
    """A listener that leaves before its first call arrives never sets ``forward_to``."""
    body = {"timeout": 0, "listener": "one", "forward_to": FORWARD}
    sandbox.post("/control/listener/next/", body | {"leaves": True})
    assert sandbox.post("/control/listener/next/", body).json()["replaced"]
    assert sandbox.get("/control/project/").json()["settings"]["forward_to"] is None


def test_a_replaced_listener_that_leaves_changes_nothing(sandbox: Sandbox) -> None:
    """A replaced listener that leaves does not affect the newer listener or its URL."""
    mine, other = ({"timeout": 0, "listener": name, "forward_to": FORWARD + name} for name in ("one", "two"))
    sandbox.post("/control/listener/next/", mine)
    sandbox.post("/control/listener/next/", other)
    sandbox.post("/control/listener/next/", mine | {"leaves": True})
    assert sandbox.get("/control/project/").json()["settings"]["forward_to"] == FORWARD + "two"
    assert not sandbox.post("/control/listener/next/", other).json()["replaced"]


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
