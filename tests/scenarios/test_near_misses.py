"""The journal says which rule decided an attempt, or which came nearest and what differed."""

from typing import Any

import pytest
import requests

from tests.support.driver import Sandbox, by, card

PAYS = {"customer": "pays"}


def decision(sandbox: Sandbox, *rules: dict[str, Any], **order: Any) -> dict[str, Any]:
    """What the journal says of a card order under a scenario of these rules."""
    sandbox.put("/control/scenario/", {"name": "mine", "rules": list(rules)})
    placed = sandbox.place(card(), **order)
    (entry,) = sandbox.get(f"/control/journal/?order_id={placed['id']}").json()["items"]
    found: dict[str, Any] = entry["decision"]
    return found


def test_the_rule_that_decided_is_named(sandbox: Sandbox) -> None:
    """By its index, and nothing is near when one is there."""
    found = decision(sandbox, {"when": {"amount": 5}, "then": PAYS}, {"then": PAYS})
    assert found == {"scenario": "mine", "rule": 1}


DIFFERENT = [
    ({"payment_method": "wallet-qr"}, "payment_method", ["wallet-qr"], ["credit-card"]),
    ({"amount": 999}, "amount", 999, 1000),
    ({"amount": {"gt": 5, "lt": 1000}}, "amount", {"gt": 5, "lt": 1000}, 1000),
    ({"attempt": 2}, "attempt", 2, 1),
    ({"merchant_order_id": "a-*"}, "merchant_order_id", "a-*", None),
    ({"customer": {"country": "BE"}}, "customer.country", "BE", "NL"),
]


@pytest.mark.parametrize(("when", "condition", "expected", "actual"), DIFFERENT)
def test_a_rule_that_missed_says_in_what(
    sandbox: Sandbox, when: dict[str, Any], condition: str, expected: Any, actual: Any
) -> None:
    """As the rule says it, and as the attempt was."""
    found = decision(sandbox, {"when": when, "then": PAYS}, customer={"country": "NL"})
    differs = [{"condition": condition, "expected": expected, "actual": actual}]
    assert found == {"scenario": "mine", "rule": None, "nearest": {"rule": 0, "differs": differs}}


def test_the_nearest_differs_least_and_agrees_most(sandbox: Sandbox) -> None:
    """Of three rules, the one with one difference and most in common."""
    country = {"country": "NL"}
    found = decision(
        sandbox,
        {"when": {"amount": 5, "attempt": 2}, "then": PAYS},
        {"when": {"amount": 5}, "then": PAYS},
        {"when": {"amount": 5, "payment_method": "credit-card", "customer": country}, "then": PAYS},
        customer=country,
    )
    assert found["nearest"]["rule"] == 2


def test_a_rule_that_is_spent_says_so(sandbox: Sandbox) -> None:
    """Its conditions would hold."""
    decision(sandbox, {"times": 1, "then": PAYS})
    placed = sandbox.place(card())
    (entry,) = sandbox.get(f"/control/journal/?order_id={placed['id']}").json()["items"]
    assert entry["decision"]["nearest"]["differs"] == [
        {"condition": "times", "expected": 1, "actual": "spent"}
    ]


@pytest.mark.rule("A38")
def test_an_outcome_that_is_not_the_methods_says_so(sandbox: Sandbox) -> None:
    """A card waits for its customer, and no bank credits it."""
    found = decision(sandbox, {"then": {"screening": "declined"}})
    differs = [{"condition": "then", "expected": ["customer"], "actual": ["screening"]}]
    assert found["nearest"] == {"rule": 0, "differs": differs}


def test_a_scenario_without_rules_has_none_near(sandbox: Sandbox) -> None:
    """And a request that makes no attempt has no decision."""
    assert decision(sandbox) == {"scenario": "mine", "rule": None, "nearest": None}
    hosted = sandbox.place()
    (entry,) = sandbox.get(f"/control/journal/?order_id={hosted['id']}").json()["items"]
    assert entry["decision"] is None


def test_a_refund_has_a_decision_of_its_own(sandbox: Sandbox) -> None:
    """Rules of payments are not for it."""
    order = sandbox.place(by("wallet-web"))
    sandbox.acted(order, "customer pay")
    sandbox.put("/control/scenario/", {"name": "mine", "rules": [{"then": PAYS}]})
    refund = sandbox.post(f"/v1/orders/{order['id']}/refunds/", {}).json()
    (entry,) = sandbox.get(f"/control/journal/?order_id={refund['id']}").json()["items"]
    differs = entry["decision"]["nearest"]["differs"]
    assert {"condition": "refund", "expected": False, "actual": True} in differs


def test_the_event_stream_tells_each_decision(sandbox: Sandbox) -> None:
    """For attempts that no request of the merchant makes, such as a choice on the page."""
    order = sandbox.place()
    url, auth = f"{sandbox.url}/control/events/", (sandbox.key, "")
    with requests.get(url, auth=auth, stream=True, timeout=10) as stream:
        lines = stream.iter_lines(decode_unicode=True)
        assert next(lines) == ": watching"
        sandbox.acted(order, "customer choose", payment_method="wallet-web")
        assert any(line == "event: decision" for line in lines)
        data = next(lines)
    assert '"scenario": "default"' in data
    assert '"rule": null' in data
