"""A scenario can be activated, read and deactivated; an invalid one is refused as a whole."""

import pytest

from tests.support.driver import Sandbox, by, card, violations


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
