"""The fault of a replayed order applies to that order only and ends with it."""

from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, cast

import pytest
import requests

from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, card
from tests.support.nursery import Nursery
from tests.support.shop import Received, Shop
from tests.web.dashboard.test_again import create_paid, read_newest

NO_FAULTS: dict[str, Any] = {"faults": [], "webhooks": []}


def test_the_fault_remains_while_webhooks_wait(watched: Sandbox, shop: Shop) -> None:
    """The fault remains while the copy's webhooks have no listener, and does not affect other orders."""
    order = create_paid(watched)
    watched.patch("/control/project/", {"forward_to": shop.url})
    browser = Dashboard(watched)
    browser.press(browser.open(f"orders/{order['id']}/"), "again=webhook-twice")
    copy = read_newest(watched)
    (rule,) = watched.get("/control/faults/").json()["webhooks"]
    assert rule["when"] == {"order_id": copy["id"], "attempt": 1}
    other = watched.pay(watched.place(card()))
    shop.received.clear()
    watched.patch("/control/project/", {"forward_to": None})
    watched.settle()
    assert (shop.orders().count(copy["id"]), shop.orders().count(other["id"])) == (4, 2)
    assert watched.get("/control/faults/").json() == NO_FAULTS


def test_a_kill_leaves_other_orders_alone(tmp_path: Path, shop: Shop) -> None:
    """After a restart the fault still applies to the copy's webhooks only and ends with them."""
    nursery = Nursery(tmp_path / "state.db")
    try:
        process = nursery.begin()
        sandbox = Sandbox(cast("Any", process), webhook_url=shop.url)
        order = create_paid(sandbox)
        browser = Dashboard(sandbox)
        page = browser.open(f"orders/{order['id']}/")
        lock, killed = Lock(), list[Received]()

        def kill_once(received: Received) -> int:
            with lock:
                if not killed:
                    killed.append(received)
                    nursery.kill(process)
            return 200

        shop.received.clear()
        shop.answer = kill_once
        with suppress(requests.RequestException):
            browser.press(page, "again=webhook-twice")
        sandbox.url = nursery.begin().url
        copy = read_newest(sandbox)
        other = create_paid(sandbox)
        assert shop.orders().count(other["id"]) == 2
        # The first two webhooks may include one that was lost with the server.
        assert shop.orders().count(copy["id"]) in (5, 6)
        assert sandbox.get("/control/faults/").json() == NO_FAULTS
    finally:
        nursery.close()


@pytest.mark.parametrize("name", ["webhook-lost", "webhook-late", "slow-shop"])
def test_the_fault_of_an_authorization_ends_with_its_webhooks(
    watched: Sandbox, shop: Shop, name: str
) -> None:
    """The fault ends before the later capture, whose webhooks are sent normally."""
    order = watched.authorized(capture_mode="manual")
    watched.settle()
    browser = Dashboard(watched)
    browser.press(browser.open(f"orders/{order['id']}/"), f"again={name}")
    assert watched.get("/control/faults/").json() == NO_FAULTS
    assert read_newest(watched)["status"] == "completed"
