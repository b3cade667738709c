"""A server that is killed at any moment has lost nothing that it acknowledged."""

import os
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import pytest
import requests

from tests.support.nursery import Nursery
from tests.support.shop import Shop

RUNS = int(os.environ.get("SANDBOX_KILL_RUNS", "3"))
KILLS_PER_RUN = 26  # 208 in all, by default
CLIENTS = 4
KEY = "sandbox-key"
pytestmark = pytest.mark.prove
FINAL = ("completed", "cancelled", "error", "expired")


class Books:
    """What the merchant was told: per order the least that must be true from then on."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.orders: dict[str, dict[str, Any]] = {}
        self.told = 0
        self.reached = Event()
        self.aim = 0

    def note(self, order_id: str, **facts: Any) -> None:
        """An acknowledged fact."""
        with self._lock:
            self.orders.setdefault(order_id, {}).update(facts)
            self.told += 1
            if self.told >= self.aim:
                self.reached.set()

    def await_facts(self, count: int) -> None:
        """Until so many more are acknowledged."""
        with self._lock:
            self.aim = self.told + count
            self.reached.clear()
        assert self.reached.wait(30)


def trade(url: str, books: Books, number: int) -> None:
    """Order, authorize, capture in parts, refund, until the server is gone."""
    with requests.Session() as http:
        http.trust_env, http.auth = False, (KEY, "")

        def post(path: str, body: Any) -> dict[str, Any]:
            answer = http.post(f"{url}{path}", json=body, timeout=10)
            assert answer.status_code in (200, 201), answer.text
            found: dict[str, Any] = answer.json()
            return found

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
            return  # killed: what was on its way is nobody's promise


def check(url: str, books: Books) -> None:
    """Everything that was told is still so."""
    with requests.Session() as http:
        http.trust_env, http.auth = False, (KEY, "")
        for order_id, told in books.orders.items():
            answer = http.get(f"{url}/v1/orders/{order_id}/?fields[]=amount_details", timeout=10)
            assert answer.status_code == 200, f"order {order_id} is lost: {told}"
            order = answer.json()
            if told.get("authorized"):
                assert order["status"] == "completed", (order_id, told)
            assert order["amount_details"]["captured"] >= told.get("captured", 0), (order_id, told)
            if "refund" in told:
                assert http.get(f"{url}/v1/orders/{told['refund']}/", timeout=10).status_code == 200, told
                assert "has-refunds" in order["flags"]


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Nursery]:
    """A server that lives many lives."""
    made = Nursery(tmp_path / "state.db")
    yield made
    made.close()


def setting(url: str, path: str, method: str, body: Any) -> None:
    """A control call."""
    answer = requests.request(method, f"{url}{path}", json=body, auth=(KEY, ""), timeout=10)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("run", range(RUNS))
def test_a_killed_server_has_lost_nothing(nursery: Nursery, shop: Shop, run: int) -> None:
    """Under load, at moments that follow no pattern; at the end every webhook has come."""
    books = Books()
    life = nursery.begin()
    setting(life.url, "/control/project/", "PATCH", {"webhook_url": shop.url})
    for kill in range(KILLS_PER_RUN):
        clients = [Thread(target=trade, args=(life.url, books, number)) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        books.await_facts(1 + (run * 7 + kill * 5) % 23)
        nursery.kill(life)
        for client in clients:
            client.join()
        life = nursery.begin()
        check(life.url, books)
    setting(life.url, "/control/clock/advance/", "POST", {"until": "idle"})
    # A webhook can be cut in the middle by a kill, too.
    came = {received.body["order_id"] for received in list(shop.received) if received.raw}
    for order_id, told in books.orders.items():
        assert order_id in came or not told.get("authorized"), (order_id, told)
        assert told.get("refund", order_id) in came or "refund" not in told
    nursery.kill(life)
