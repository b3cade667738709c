"""Every advance ends: if the shop never becomes idle, the response lists the webhooks in flight."""

from threading import Condition, Event, Thread
from typing import Any

import pytest
import requests

from payment_sandbox.projects.outbox import EXTRA_DELIVERIES_MAX
from tests.support.driver import Sandbox, by, card
from tests.support.shop import Received, Shop


@pytest.fixture
def restless(watched: Sandbox, shop: Shop) -> Sandbox:
    """A project whose shop creates another order for each webhook."""

    def order_again(received: Received) -> int:
        body = {"currency": "EUR", "amount": 5, "transactions": [by("bank-transfer")]}
        requests.post(f"{watched.url}/v1/orders/", json=body, auth=(watched.key, ""))
        return 200

    shop.answer = order_again
    return watched


def test_a_shop_that_never_rests_holds_up_no_advance(restless: Sandbox, shop: Shop) -> None:
    """An advance waits for a limited number of further webhooks and lists those in flight."""
    restless.place(by("bank-transfer"))
    first = restless.post("/control/clock/advance/", {"by": "PT1H"}).json()
    second = restless.post("/control/clock/advance/", {"by": "PT1H"}).json()
    assert "stopped" not in first.keys() | second.keys(), "neither reached its time limit"
    assert len(first["events"]) > EXTRA_DELIVERIES_MAX
    assert second["from"] >= first["to"]
    assert first["under_way"][0].keys() == {"delivery_id", "order_id", "url"}
    assert first["under_way"][0]["url"] == shop.url
    shop.answer = lambda received: 200
    restless.settle()
    assert restless.post("/control/clock/advance/", {"by": "PT1H"}).json().keys() == {"from", "to", "events"}


@pytest.mark.prove
def test_an_advance_ends_beside_traffic(watched: Sandbox, shop: Shop) -> None:
    """An advance ends although orders are created faster than webhooks are sent; its own go first."""
    paid = watched.pay(watched.place(card(capture_mode="manual")))
    watched.settle()
    is_finished, order_created, created = Event(), Condition(), list[str]()

    def wait_for_orders(received: Received) -> int:
        with order_created:
            count_min = len(created) + 2
            order_created.wait_for(lambda: len(created) >= count_min or is_finished.is_set(), 10)
        return 200

    shop.answer = wait_for_orders

    def create() -> None:
        while not is_finished.is_set():
            order = watched.place(by("bank-transfer"))
            with order_created:
                created.append(order["id"])
                order_created.notify_all()

    clients = [Thread(target=create) for _ in range(2)]
    for client in clients:
        client.start()
    try:
        answer = watched.post("/control/clock/advance/", {"by": "P8D", "timeout": 600})
        assert watched.read(paid)["status"] == "expired"
    finally:
        is_finished.set()
        for client in clients:
            client.join()
        with order_created:
            order_created.notify_all()
    assert "stopped" not in answer.json()
    assert answer.json()["under_way"]
    delivered = [received.body["order_id"] for received in shop.received]
    assert delivered.count(paid["id"]) == 3, "processing, completed, expired"


@pytest.mark.parametrize("limit", [{"max_events": 1}, {"timeout": 0.3}])
def test_an_advance_stops_at_a_limit(watched: Sandbox, shop: Shop, limit: dict[str, Any]) -> None:
    """The limits are a number of events and real time; afterwards the clock can be advanced again."""
    _, answered = shop.hold()
    for minutes in (10, 20, 30):
        watched.place(card(expiration_period=f"PT{minutes}M"))
    stopped = watched.post("/control/clock/advance/", {"by": "P400D", **limit}).json()
    assert stopped["stopped"] is True
    assert stopped["under_way"][0]["url"] == shop.url
    answered.set()
    rest = watched.post("/control/clock/advance/", {"by": "P400D"}).json()
    assert "stopped" not in rest
    assert rest["to"] > stopped["to"]


@pytest.mark.parametrize(("mode", "answers"), [("frozen", [2, 2, 1]), ("running", [5])])
def test_an_advance_reports_all_events_that_it_causes(
    sandbox: Sandbox, mode: str, answers: list[int]
) -> None:
    """At its limit, an advance stops within a moment; a running clock would run the rest, which comes first."""
    orders = [sandbox.place(by("bank-transfer"))["id"] for _ in range(5)]
    snapshot = sandbox.get("/control/state/").json()
    moment = max(entry["at"] for entry in snapshot["agenda"])
    for entry in snapshot["agenda"]:
        entry["at"] = moment
    snapshot["clock_mode"] = mode
    sandbox.put("/control/state/", snapshot)
    reported: list[str] = []
    for count in answers:
        advanced = sandbox.post("/control/clock/advance/", {"until": "idle", "max_events": 2}).json()
        assert len(advanced["events"]) == count
        reported += (event["order_id"] for event in advanced["events"])
        sandbox.get("/control/wait/", params={"idle": 1, "timeout": 0.1})
        expired = {order for order in orders if sandbox.read(order)["status"] == "expired"}
        assert sorted(reported) == sorted(expired)
    assert len(reported) == 5


def test_an_answer_never_has_more_events_than_its_limit(watched: Sandbox) -> None:
    """Webhooks count, too: each expiry and each attempt is in one answer, and no answer has more than the limit."""
    orders = [watched.place(card(expiration_period="PT10M"))["id"] for _ in range(7)]
    snapshot = watched.get("/control/state/").json()
    for entry in snapshot["agenda"]:
        entry["at"] = snapshot["agenda"][0]["at"]
    watched.put("/control/state/", snapshot)
    reported: list[tuple[str, str]] = []
    is_stopped = True
    while is_stopped:
        advanced = watched.post("/control/clock/advance/", {"by": "PT1H", "max_events": 3}).json()
        is_stopped = "stopped" in advanced
        assert len(advanced["events"]) <= 3
        reported += ((event["kind"], event["order_id"]) for event in advanced["events"])
    expired = [order_id for kind, order_id in reported if kind == "expiry"]
    assert sorted(expired) == sorted(orders), reported
