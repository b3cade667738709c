"""Every advance ends: a shop that never comes to rest gets an answer that says what is under way."""

from typing import Any

import pytest
import requests

from tests.support.driver import Sandbox, by, card, violations
from tests.support.shop import Received, Shop


@pytest.fixture
def restless(watched: Sandbox, shop: Shop) -> Sandbox:
    """A project whose shop makes another order for each webhook."""

    def another(received: Received) -> int:
        body = {"currency": "EUR", "amount": 5, "transactions": [by("bank-transfer")]}
        requests.post(f"{watched.url}/v1/orders/", json=body, auth=(watched.key, ""), timeout=20)
        return 200

    shop.answer = another
    return watched


@pytest.mark.parametrize("limit", [{"max_events": 10}, {"timeout": 0.5}])
def test_a_shop_that_never_rests_stops_an_advance(
    restless: Sandbox, shop: Shop, limit: dict[str, Any]
) -> None:
    """By the number of events or by real time; the answer says what is under way, and the clock is free."""
    restless.place(by("bank-transfer"))
    for _ in range(2):
        answer = restless.post("/control/clock/advance/", {"by": "PT1H", **limit})
        assert answer.status_code == 200, answer.text
        stopped = answer.json()
        assert stopped["stopped"] is True
        (under_way, *_) = stopped["under_way"]
        assert under_way.keys() == {"delivery_id", "order_id", "url"}
        assert under_way["url"] == shop.url
    shop.answer = lambda received: 200
    rest = restless.post("/control/clock/advance/", {"by": "PT1H"}).json()
    assert "stopped" not in rest
    assert rest["to"] > stopped["to"]


def test_a_wrong_limit_is_refused(sandbox: Sandbox) -> None:
    """By its name and bounds."""
    for timeout in (0, -1, 601, "soon", None):
        answer = sandbox.post("/control/clock/advance/", {"by": "PT1H", "timeout": timeout})
        assert "timeout" in violations(answer)


def test_an_advance_that_comes_to_rest_says_nothing_of_limits(watched: Sandbox) -> None:
    """The common case."""
    watched.place(card())
    answer = watched.post("/control/clock/advance/", {"by": "PT1H", "timeout": 60, "max_events": 100}).json()
    assert answer.keys() == {"from", "to", "events"}
