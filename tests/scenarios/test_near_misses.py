"""The journal shows which rule decided an attempt, or the nearest rule and its unmet conditions."""

from typing import Any

import pytest

from tests.support.driver import Sandbox, by, card

PAYS = {"customer": "pays"}


def decision(sandbox: Sandbox, *rules: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Place a card order under a scenario with these rules, and return its decision in the journal."""
    sandbox.put("/control/scenario/", {"name": "mine", "rules": list(rules)})
    order = sandbox.place(card(), **fields)
    (entry,) = sandbox.get(f"/control/journal/?order_id={order['id']}").json()["items"]
    journaled: dict[str, Any] = entry["decision"]
    return journaled


DIFFERENT = [
    ({"payment_method": "wallet-qr"}, "payment_method", ["wallet-qr"], ["credit-card"]),
    ({"amount": 999}, "amount", 999, 1000),
    ({"amount": {"gt": 5, "lt": 1000}}, "amount", {"gt": 5, "lt": 1000}, 1000),
    ({"attempt": 2}, "attempt", 2, 1),
    ({"merchant_order_id": "a-*"}, "merchant_order_id", "a-*", None),
    ({"customer": {"country": "BE"}}, "customer.country", "BE", "NL"),
]


@pytest.mark.parametrize(("when", "condition", "expected", "actual"), DIFFERENT)
def test_a_near_miss_shows_the_unmet_condition(
    sandbox: Sandbox, when: dict[str, Any], condition: str, expected: Any, actual: Any
) -> None:
    """The nearest rule is shown with its unmet condition, the expected and the actual value."""
    result = decision(sandbox, {"when": when, "then": PAYS}, customer={"country": "NL"})
    differs = [{"condition": condition, "expected": expected, "actual": actual}]
    assert result == {"scenario": "mine", "rule": None, "nearest": {"rule": 0, "differs": differs}}


def test_the_nearest_differs_least_and_agrees_most(sandbox: Sandbox) -> None:
    """The nearest rule has the fewest unmet and the most met conditions; where a rule matches, it is named instead."""
    country = {"country": "NL"}
    result = decision(
        sandbox,
        {"when": {"amount": 5, "attempt": 2}, "then": PAYS},
        {"when": {"amount": 5}, "then": PAYS},
        {"when": {"amount": 5, "payment_method": "credit-card", "customer": country}, "then": PAYS},
        customer=country,
    )
    assert result["nearest"]["rule"] == 2
    matched = decision(sandbox, {"when": {"amount": 5}, "then": PAYS}, {"then": PAYS})
    assert matched == {"scenario": "mine", "rule": 1}


def test_a_spent_rule_is_shown_as_spent(sandbox: Sandbox) -> None:
    """A rule whose ``times`` are used up is shown as spent."""
    decision(sandbox, {"times": 1, "then": PAYS})
    order = sandbox.place(card())
    (entry,) = sandbox.get(f"/control/journal/?order_id={order['id']}").json()["items"]
    assert entry["decision"]["nearest"]["differs"] == [
        {"condition": "times", "expected": 1, "actual": "spent"}
    ]


@pytest.mark.rule("A38")
def test_an_outcome_of_another_method_is_shown(sandbox: Sandbox) -> None:
    """A rule with an outcome of another payment method does not match, and the decision says why."""
    result = decision(sandbox, {"then": {"screening": "declined"}})
    differs = [{"condition": "then", "expected": ["customer"], "actual": ["screening"]}]
    assert result["nearest"] == {"rule": 0, "differs": differs}


def test_a_scenario_without_rules_has_no_nearest_rule(sandbox: Sandbox) -> None:
    """Without rules there is no nearest rule; a request without an attempt has no decision."""
    assert decision(sandbox) == {"scenario": "mine", "rule": None, "nearest": None}
    hosted_order = sandbox.place()
    (entry,) = sandbox.get(f"/control/journal/?order_id={hosted_order['id']}").json()["items"]
    assert entry["decision"] is None


def test_a_refund_has_its_own_decision(sandbox: Sandbox) -> None:
    """Rules for payments do not match refunds."""
    order = sandbox.place(by("wallet-web"))
    sandbox.acted(order, "customer pay")
    sandbox.put("/control/scenario/", {"name": "mine", "rules": [{"then": PAYS}]})
    refund = sandbox.post(f"/v1/orders/{order['id']}/refunds/", {}).json()
    (entry,) = sandbox.get(f"/control/journal/?order_id={refund['id']}").json()["items"]
    differs = entry["decision"]["nearest"]["differs"]
    assert {"condition": "refund", "expected": False, "actual": True} in differs
