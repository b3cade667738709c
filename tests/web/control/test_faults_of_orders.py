"""Faults of one order apply to its webhooks only and end with the order."""

from typing import Any

import pytest

from tests.support.driver import Sandbox, card
from tests.support.shop import Shop

TWICE = {"duplicate": 2}


def set_webhook_rule(sandbox: Sandbox, then: dict[str, Any], **when: Any) -> None:
    """Set a rule for webhooks."""
    answer = sandbox.put("/control/faults/", {"webhooks": [{"when": when, "then": then}]})
    assert answer.status_code == 200, answer.text


def read_rules(sandbox: Sandbox) -> list[dict[str, Any]]:
    """Return the active rules for webhooks."""
    webhook_rules: list[dict[str, Any]] = sandbox.get("/control/faults/").json()["webhooks"]
    return webhook_rules


def test_only_the_webhooks_of_this_order_are_duplicated(watched: Sandbox, shop: Shop) -> None:
    """The rule is deleted once the order is paid and its webhooks are acknowledged; others stay, with their counts."""
    order, other = watched.place(card()), watched.place(card())
    written = [
        {"when": {"status": "expired"}, "then": {"drop": True}},
        {"when": {"order_id": order["id"]}, "then": TWICE},
        {"when": {"status": "error"}, "then": {"delay": "PT1M"}},
    ]
    faults = [{"when": {"path": "/v1/orders/", "nth": 2}, "then": {"status": 503}}]
    watched.put("/control/faults/", {"webhooks": written, "faults": faults})
    assert watched.create(card()).status_code == 201
    watched.pay(other)
    watched.settle()
    assert len(read_rules(watched)) == 3
    watched.pay(order)
    watched.settle()
    assert (shop.orders().count(other["id"]), shop.orders().count(order["id"])) == (2, 4)
    counted = watched.get("/control/faults/").json()
    assert [rule.pop("matches") for rule in (*counted["faults"], *counted["webhooks"])] == [1, 0, 0]
    assert counted == {"webhooks": [written[0], written[2]], "faults": faults}
    assert watched.create(card()).status_code == 503


def test_the_rule_stays_until_all_webhooks_are_answered(watched: Sandbox, shop: Shop) -> None:
    """The rule remains while webhooks of the order are retried."""
    order = watched.place(card())
    set_webhook_rule(watched, {"answer": 503}, order_id=order["id"], status="completed")
    watched.pay(order)
    watched.advance("PT10M")
    assert (len(shop.received), len(read_rules(watched))) == (1, 1)
    watched.advance("PT10M")
    assert read_rules(watched) == []


def test_the_rule_stays_while_money_is_reserved(watched: Sandbox, shop: Shop) -> None:
    """The rule remains for the webhook of an authorization that can still expire."""
    order = watched.place(card(capture_mode="manual"))
    set_webhook_rule(watched, {"drop": True}, order_id=order["id"], status="expired")
    watched.pay(order)
    watched.settle()
    assert (len(shop.received), len(read_rules(watched))) == (2, 1)
    watched.advance("P60D")
    assert watched.read(order)["status"] == "expired"
    assert (len(shop.received), read_rules(watched)) == (2, [])


@pytest.mark.rule("CTL-10")
def test_a_snapshot_has_the_rule_with_its_order(sandbox: Sandbox) -> None:
    """A snapshot restores the rule with its order, whose cancellation ends it even without a webhook."""
    order = sandbox.place(card())
    set_webhook_rule(sandbox, TWICE, order_id=order["id"])
    state = sandbox.get("/control/state/").json()
    sandbox.post("/control/reset/")
    assert read_rules(sandbox) == []
    assert sandbox.put("/control/state/", state).status_code == 200
    assert len(read_rules(sandbox)) == 1
    sandbox.delete(f"/v1/orders/{order['id']}/")
    assert read_rules(sandbox) == []
