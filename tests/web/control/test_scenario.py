"""A scenario can be activated, read and deactivated; its rules and their conditions decide attempts."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.driver import CUSTOMER, Sandbox, by, card, violations


@pytest.mark.rule("CTL-19")
def test_a_scenario_can_be_read_switched_and_left(sandbox: Sandbox) -> None:
    """A scenario is activated by name or as a document; deleting it restores the default."""
    assert sandbox.get("/control/scenario/").json()["name"] == "default"
    document = {
        "name": "mine",
        "description": "x",
        "rules": [{"then": {"customer": "pays", "after": "PT1M"}}],
    }
    assert sandbox.put("/control/scenario/", document).json() == document
    counted = sandbox.get("/control/scenario/").json()
    assert counted["rules"][0].pop("matches") == 0
    assert counted == document
    assert sandbox.put("/control/scenario/", {"name": "default"}).json()["name"] == "default"
    sandbox.put("/control/scenario/", document)
    assert sandbox.delete("/control/scenario/").json()["name"] == "default"
    assert set(violations(sandbox.put("/control/scenario/", {"name": "no-such"}))) == {"name"}


@pytest.mark.rule("SCN-05")
def test_attempts_under_way_keep_their_scenario(sandbox: Sandbox) -> None:
    """A new scenario applies to later attempts only."""
    sandbox.scenario({"then": {"customer": "pays", "after": "PT10M"}})
    before = sandbox.place(card())
    sandbox.scenario({"then": {"customer": "fails", "after": "PT5M"}})
    after = sandbox.place(card())
    sandbox.advance("PT10M")
    assert [sandbox.read(order)["status"] for order in (before, after)] == ["completed", "error"]


@pytest.mark.rule("SCN-07")
def test_a_scenarios_settings_hold_while_it_is_active(sandbox: Sandbox) -> None:
    """Afterwards the project's own settings apply; an invalid one refuses the scenario."""
    sandbox.scenario(settings={"mode": "live"})
    assert sandbox.place(by("bank-redirect-be"))["flags"] == []
    sandbox.delete("/control/scenario/")
    assert sandbox.create(by("bank-redirect-be")).status_code == 400
    answer = sandbox.put("/control/scenario/", {"name": "x", "settings": {"mode": "demo", "colour": 1}})
    assert set(violations(answer)) == {"settings.mode", "settings.colour"}
    assert sandbox.get("/control/scenario/").json()["name"] == "default"


@pytest.mark.rule("SCN-02")
def test_the_first_matching_rule_decides_and_is_spent(sandbox: Sandbox) -> None:
    """The first two orders are declined, the third is paid, and the fourth stays new."""
    fails, pays = ({"customer": outcome, "after": "PT1M"} for outcome in ("fails", "pays"))
    sandbox.scenario(
        {"when": {"payment_method": "credit-card"}, "times": 2, "then": fails},
        {"when": {"payment_method": ["credit-card", "wallet-qr"]}, "times": 1, "then": pays},
    )
    assert sandbox.create(card(), amount=0).status_code == 400, "a refused creation spends no rule"
    orders = [sandbox.place(card()) for _ in range(4)]
    sandbox.advance("PT1M")
    assert [sandbox.read(order)["status"] for order in orders] == ["error", "error", "completed", "new"]


@pytest.mark.rule("SCN-03")
def test_a_rule_can_name_the_attempt(sandbox: Sandbox) -> None:
    """The first attempt on an order fails, and the second is paid."""
    sandbox.scenario(
        {"when": {"attempt": 1}, "then": {"customer": "fails", "after": "PT1M"}},
        {"when": {"attempt": 2}, "then": {"customer": "pays", "after": "PT1M"}},
    )
    order = sandbox.place()
    for status in ("processing", "completed"):
        sandbox.acted(order, "customer choose", payment_method="credit-card")
        sandbox.advance("PT1M")
        assert sandbox.read(order)["status"] == status


@pytest.mark.rule("SCN-04")
def test_all_conditions_of_a_rule_must_hold(sandbox: Sandbox) -> None:
    """Conditions are exact or ranged amounts, and glob patterns for customer and merchant_order_id."""
    rows: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
        ({"amount": 1000}, {"amount": 1000}, True),
        ({"amount": 1000}, {"amount": 1001}, False),
        ({"amount": {"gte": 1000, "lt": 5000}}, {"amount": 1000}, True),
        ({"amount": {"gte": 1000, "lt": 5000}}, {"amount": 5000}, False),
        ({"amount": {"gt": 1000, "lte": 5000}}, {"amount": 1000}, False),
        ({"amount": {"gt": 1000, "lte": 5000}}, {"amount": 5000}, True),
        ({"customer": {"email_address": "*@example.com", "country": "NL"}}, {"customer": CUSTOMER}, True),
        ({"customer": {"email_address": "*@example.org"}}, {"customer": CUSTOMER}, False),
        ({"customer": {"email_address": "*"}}, {}, True),
        ({"customer": {"email_address": "?*"}}, {}, False),
        ({"merchant_order_id": "retry-*"}, {"merchant_order_id": "retry-7"}, True),
        ({"merchant_order_id": "retry-*"}, {"merchant_order_id": "RETRY-7"}, False),
        ({"merchant_order_id": "retry-*"}, {}, False),
        ({"payment_method": "wallet-qr"}, {}, False),
        ({"refund": True}, {}, False),
    ]
    for when, fields, matches in rows:
        sandbox.scenario({"when": when, "then": {"customer": "pays", "after": "PT1M"}})
        order = sandbox.place(card(), **fields)
        sandbox.advance("PT1M")
        assert (sandbox.read(order)["status"] == "completed") == matches, (when, fields)


def test_a_rule_can_name_a_method_by_its_alias(project: Callable[..., Sandbox]) -> None:
    """A rule matches the attempt by its alias and by its method."""
    sandbox = project(aliases={"plastic": "credit-card"})
    for name in ("plastic", "credit-card"):
        sandbox.scenario({"when": {"payment_method": name}, "then": {"customer": "pays"}})
        order = sandbox.place({"payment_method": "plastic"})
        sandbox.settle()
        assert sandbox.read(order)["status"] == "completed"


@pytest.mark.rule("SCN-09")
@pytest.mark.parametrize(
    ("credit", "status"),
    [
        ({"after": "P2D"}, "completed"),
        ({"after": "P2D", "amount": 999}, "processing"),
        ({"after": "P2D", "amount": 2000}, "completed"),
        ("never", "processing"),
    ],
)
def test_a_scenario_decides_a_transfer(live: Sandbox, credit: Any, status: str) -> None:
    """The scenario sets the time and amount of the credit."""
    live.scenario({"when": {"payment_method": "bank-transfer"}, "then": {"credit": credit}})
    order = live.place(by("bank-transfer"))
    live.advance("P2D")
    assert live.read(order)["status"] == status
