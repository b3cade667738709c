"""A server that is killed at any moment keeps everything that it has acknowledged."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import pytest
import requests

from tests.support.nursery import Nursery
from tests.support.shop import Shop

RUNS = 3
KILLS_PER_RUN = 26  # 78 in all
CLIENTS = 4
KEY = "sandbox-key"
pytestmark = pytest.mark.prove


class Books:
    """Acknowledged facts: for each order, the minimum that must hold from then on."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.orders: dict[str, dict[str, Any]] = {}
        self.fact_count = 0
        self.target_reached = Event()
        self.target_count = 0

    def note(self, order_id: str, **facts: Any) -> None:
        """Record an acknowledged fact."""
        with self._lock:
            self.orders.setdefault(order_id, {}).update(facts)
            self.fact_count += 1
            if self.fact_count >= self.target_count:
                self.target_reached.set()

    def await_facts(self, count: int) -> None:
        """Wait until this many more facts are acknowledged."""
        with self._lock:
            self.target_count = self.fact_count + count
            self.target_reached.clear()
        assert self.target_reached.wait(120)


def trade(url: str, books: Books, number: int) -> None:
    """Create, authorize, capture in parts and refund orders until the server is killed."""
    with requests.Session() as http:
        http.trust_env, http.auth = False, (KEY, "")

        def post(path: str, body: Any) -> dict[str, Any]:
            answer = http.post(f"{url}{path}", json=body)
            assert answer.status_code in (200, 201), answer.text
            parsed: dict[str, Any] = answer.json()
            return parsed

        try:
            while True:
                transaction = {"payment_method": "credit-card", "capture_mode": "manual"}
                order = post(
                    "/v1/orders/", {"currency": "EUR", "amount": 1000, "transactions": [transaction]}
                )
                order_id = order["id"]
                books.note(order_id, client=number)
                post(f"/control/orders/{order_id}/act/", {"actor": "customer", "action": "pay"})
                books.note(order_id, authorized=True)
                captures = (
                    f"/v1/orders/{order_id}/transactions/{order['transactions'][0]['id']}/captures/amount/"
                )
                for captured in (300, 700):
                    post(captures, {"amount": 300 if captured == 300 else 400})
                    books.note(order_id, captured=captured)
                refund = post(f"/v1/orders/{order_id}/refunds/", {"amount": 100})
                books.note(order_id, refund=refund["id"])
        except (requests.RequestException, ValueError):
            return  # killed: a request in flight was not acknowledged


def check(url: str, books: Books) -> None:
    """Assert that every acknowledged fact still holds."""
    with requests.Session() as http:
        http.trust_env, http.auth = False, (KEY, "")
        for order_id, facts in books.orders.items():
            answer = http.get(f"{url}/v1/orders/{order_id}/?fields[]=amount_details")
            assert answer.status_code == 200, f"order {order_id} is lost: {facts}"
            order = answer.json()
            if facts.get("authorized"):
                assert order["status"] == "completed", (order_id, facts)
            assert order["amount_details"]["captured"] >= facts.get("captured", 0), (order_id, facts)
            if "refund" in facts:
                assert http.get(f"{url}/v1/orders/{facts['refund']}/").status_code == 200, facts
                assert "has-refunds" in order["flags"]


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Nursery]:
    """A state file whose server is killed and restarted."""
    created = Nursery(tmp_path / "state.db")
    yield created
    created.close()


def call_control(url: str, path: str, method: str, body: Any) -> None:
    """Make a control call."""
    answer = requests.request(method, f"{url}{path}", json=body, auth=(KEY, ""))
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("run", range(RUNS))
def test_a_killed_server_has_lost_nothing(nursery: Nursery, shop: Shop, run: int) -> None:
    """Killed under load at irregular moments, the server loses nothing and delivers every webhook."""
    books = Books()
    process = nursery.begin()
    call_control(process.url, "/control/project/", "PATCH", {"webhook_url": shop.url})
    for kill in range(KILLS_PER_RUN):
        clients = [Thread(target=trade, args=(process.url, books, number)) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        books.await_facts(1 + (run * 7 + kill * 5) % 23)
        nursery.kill(process)
        for client in clients:
            client.join()
        process = nursery.begin()
        check(process.url, books)
    call_control(process.url, "/control/clock/advance/", "POST", {"until": "idle"})
    # A kill can also interrupt a webhook.
    delivered = {received.body["order_id"] for received in list(shop.received) if received.raw}
    for order_id, facts in books.orders.items():
        assert order_id in delivered or not facts.get("authorized"), (order_id, facts)
        assert facts.get("refund", order_id) in delivered or "refund" not in facts
    nursery.kill(process)
