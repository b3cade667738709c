"""Webhooks that a listener takes: whatever goes wrong with it, they arrive."""

from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import pytest

from payment_sandbox.projects.relay import Relay
from tests.support.driver import Sandbox, card
from tests.support.shop import Shop

FORWARD = "http://localhost:3000/webhook"


@pytest.fixture
def forwarding(project: Callable[..., Sandbox]) -> Sandbox:
    """A project whose webhooks wait for a listener."""
    return project(forward_to=FORWARD)


def taken(sandbox: Sandbox, listener: str = "one", timeout: float = 5) -> list[dict[str, Any]]:
    """What a listener gets."""
    items: list[dict[str, Any]] = sandbox.post(
        "/control/listener/next/", {"timeout": timeout, "listener": listener}
    ).json()["items"]
    return items


def answered(sandbox: Sandbox, offer: dict[str, Any], status: int = 200) -> bool:
    """Whether an answer is recorded."""
    told = sandbox.post("/control/listener/answers/", {"id": offer["id"], "status": status})
    recorded: bool = told.json()["recorded"]
    return recorded


def relay_of(sandbox: Sandbox) -> Relay:
    """What the server keeps for listeners."""
    found = sandbox.server.registry.find(sandbox.key)
    assert found is not None
    return found.relay


def attempts(sandbox: Sandbox) -> list[Any]:
    """The statuses of all attempts."""
    found = sandbox.webhooks()
    return [attempt["response"]["status"] for item in found for attempt in item["attempts"]]


@pytest.fixture
def polling(forwarding: Sandbox) -> Iterator[Callable[..., Thread]]:
    """Starts calls that wait, as those of listeners that have gone."""
    started: list[Thread] = []

    def poll(listener: str = "one") -> Thread:
        thread = Thread(target=taken, args=(forwarding, listener, 30))
        thread.start()
        started.append(thread)
        relay = relay_of(forwarding)
        with relay._changed:
            assert relay._changed.wait_for(lambda: relay._waiting_calls > 0, 10)
        return thread

    yield poll
    forwarding.delete("/control/project/")
    for thread in started:
        thread.join(10)


def test_a_webhook_that_was_taken_and_not_answered_is_offered_again(forwarding: Sandbox) -> None:
    """To whoever comes next: the first listener may have been killed."""
    forwarding.place(card(payment_method="bank-transfer"))
    (first,) = taken(forwarding)
    (again,) = taken(forwarding, "two")
    assert again["id"] == first["id"]
    assert answered(forwarding, again)
    assert attempts(forwarding) == [200]


def test_a_call_that_still_waits_takes_nothing_from_a_later_one(
    forwarding: Sandbox, polling: Callable[..., Thread]
) -> None:
    """Nobody tells the server that its client has gone."""
    dead = polling()
    alive = Thread(target=lambda: answered(forwarding, taken(forwarding)[0]))
    alive.start()
    dead.join(10)
    assert not dead.is_alive()
    forwarding.place(card(payment_method="bank-transfer"))
    alive.join(10)
    forwarding.get("/control/wait/?idle=1")
    assert attempts(forwarding) == [200]


def test_a_listener_that_was_replaced_is_told(forwarding: Sandbox) -> None:
    """It would take webhooks from the newer one in turn."""
    taken(forwarding, "one", 0)
    taken(forwarding, "two", 0)
    told = forwarding.post("/control/listener/next/", {"timeout": 30, "listener": "one"}).json()
    assert told == {"items": [], "replaced": True}


def test_a_late_call_of_a_listener_that_has_left_changes_nothing(sandbox: Sandbox) -> None:
    """Whoever is interrupted while a call is on its way leaves, and that call arrives afterwards."""
    body = {"timeout": 0, "listener": "one", "forward_to": FORWARD}
    sandbox.post("/control/listener/next/", body)
    for late in [body | {"leaves": True}, body, body | {"timeout": 30}]:
        told = sandbox.post("/control/listener/next/", late).json()
        assert told == {"items": [], "replaced": True}
        assert sandbox.get("/control/project/").json()["settings"]["forward_to"] is None
    sandbox.post("/control/listener/next/", body | {"listener": "two"})
    assert sandbox.get("/control/project/").json()["settings"]["forward_to"] == FORWARD


def test_a_listener_may_leave_before_its_first_call_arrives(sandbox: Sandbox) -> None:
    """Its address was never set then, and is not set later."""
    body = {"timeout": 0, "listener": "one", "forward_to": FORWARD}
    sandbox.post("/control/listener/next/", body | {"leaves": True})
    assert sandbox.post("/control/listener/next/", body).json()["replaced"]
    assert sandbox.get("/control/project/").json()["settings"]["forward_to"] is None


def test_who_leaves_takes_nobody_elses_webhooks_away(sandbox: Sandbox) -> None:
    """Neither from a newer listener nor from another address."""
    mine, other = ({"timeout": 0, "listener": name, "forward_to": FORWARD + name} for name in ("one", "two"))
    sandbox.post("/control/listener/next/", mine)
    sandbox.post("/control/listener/next/", other)
    sandbox.post("/control/listener/next/", mine | {"leaves": True})
    assert sandbox.get("/control/project/").json()["settings"]["forward_to"] == FORWARD + "two"
    assert not sandbox.post("/control/listener/next/", other).json()["replaced"]


def test_leaving_ends_a_call_that_waits(forwarding: Sandbox, shop: Shop) -> None:
    """It would take the next webhook with it; the server sends that by itself."""
    body = {"listener": "one", "forward_to": FORWARD}
    got: list[list[dict[str, Any]]] = []
    waiting = Thread(target=lambda: got.append(taken(forwarding, "one", 30)))
    waiting.start()
    forwarding.post("/control/listener/next/", body | {"leaves": True})
    order = forwarding.place(card(payment_method="bank-transfer"), webhook_url=shop.url)
    forwarding.get(f"/control/wait/?webhook={order['id']}&timeout=30")
    waiting.join(10)
    assert (got, shop.orders()) == ([[]], [order["id"]])


def test_an_open_offer_outlives_the_end_of_the_forwarding(forwarding: Sandbox, shop: Shop) -> None:
    """The server sends it then, after the listener's seven seconds are over."""
    order = forwarding.place(card(payment_method="bank-transfer"), webhook_url=shop.url)
    assert len(taken(forwarding)) == 1
    forwarding.settings(forward_to=None)
    forwarding.get(f"/control/wait/?webhook={order['id']}&timeout=30")
    assert shop.orders() == [order["id"]]


def test_an_attempt_by_hand_is_told_from_the_one_under_way(forwarding: Sandbox) -> None:
    """Each gets its own answer."""
    forwarding.place(card(payment_method="bank-transfer"))
    (first,) = taken(forwarding)
    delivery = forwarding.webhooks()[0]["id"]
    again = Thread(target=forwarding.post, args=(f"/control/webhooks/{delivery}/redeliver/",))
    again.start()
    offers: dict[str, Any] = {}
    while len(offers) < 2:
        offers |= {offer["id"]: offer for offer in taken(forwarding)}
    by_hand = next(offer for offer in offers.values() if offer["by_hand"])
    assert by_hand["id"] != first["id"]
    assert (answered(forwarding, first, 503), answered(forwarding, by_hand, 200)) == (True, True)
    again.join(10)
    assert sorted(attempts(forwarding)) == [200, 503]


def test_a_reset_drops_what_was_offered_and_what_waits(forwarding: Sandbox) -> None:
    """The shop would not know the order."""
    forwarding.place(card(payment_method="bank-transfer"))
    (first,) = taken(forwarding)
    forwarding.place(card(payment_method="bank-transfer"))
    forwarding.post("/control/reset/")
    assert not answered(forwarding, first)
    assert taken(forwarding, timeout=0) == []
    relay = relay_of(forwarding)
    assert (relay._offered, relay._parked) == ({}, [])


def test_a_listener_says_where_webhooks_go(sandbox: Sandbox) -> None:
    """With each call: a restored snapshot or another client may have changed it."""
    state = sandbox.get("/control/state/").json()
    body = {"timeout": 0, "forward_to": FORWARD}
    sandbox.post("/control/listener/next/", body)
    sandbox.put("/control/state/", state)
    assert sandbox.get("/control/project/").json()["settings"]["forward_to"] is None
    sandbox.post("/control/listener/next/", body)
    assert sandbox.get("/control/project/").json()["settings"]["forward_to"] == FORWARD


def test_texts_of_a_listener_are_cut(forwarding: Sandbox) -> None:
    """They are kept for as long as the order."""
    forwarding.place(card(payment_method="bank-transfer"))
    (offer,) = taken(forwarding)
    answer = {"id": offer["id"], "error": "x" * 10_000, "warning": "y" * 10_000}
    assert forwarding.post("/control/listener/answers/", answer).json() == {"recorded": True}
    attempt = forwarding.webhooks()[0]["attempts"][0]
    assert (attempt["error"], attempt["warning"]) == ("x" * 500, "y" * 500)


def test_what_is_asked_for_again_and_again_waits_once(forwarding: Sandbox) -> None:
    """Nobody listens: what somebody wants to have sent once more is kept as it was asked for last."""
    forwarding.place(card(payment_method="bank-transfer"))
    (webhook,) = forwarding.webhooks()
    for _ in range(5):
        assert forwarding.post(f"/control/webhooks/{webhook['id']}/redeliver/").status_code == 200
    forwarding.get("/control/wait/?idle=1")
    assert sorted(queued.forced for _, queued in relay_of(forwarding)._parked) == [False, True]
    offers = taken(forwarding)
    assert all(answered(forwarding, offer) for offer in offers)
