"""A reset restores the initial state, whatever is in flight."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from payment_sandbox.client.client import SandboxClient, SandboxError
from payment_sandbox.serving.server import Server
from tests.support.driver import START, Sandbox, by, card, details
from tests.support.servers import make_server
from tests.support.shop import Shop


@pytest.mark.rule("CTL-09")
def test_a_reset_is_a_fresh_start(watched: Sandbox, shop: Shop) -> None:
    """Orders, vault, webhooks, journal, scenario, faults, clock and identifiers are reset."""
    watched.scenario({"then": {"customer": "pays", "after": "PT1M"}})
    token_order = watched.pay(watched.place(details(one_click_type="first")))
    first = watched.place(card())
    watched.advance("PT1H")
    watched.put("/control/faults/", {"faults": [{"when": {"method": "PUT"}, "then": {"status": 503}}]})
    assert watched.post("/control/reset/").status_code == 200
    assert watched.get(f"/v1/orders/{first['id']}/").status_code == 404
    assert watched.now() == START
    assert watched.webhooks() == watched.agenda() == []
    assert watched.get("/control/actions/").json()["items"] == []
    assert watched.get("/control/scenario/").json()["name"] == "default"
    assert watched.get("/control/faults/").json() == {"faults": [], "webhooks": []}
    assert watched.get("/control/journal/?count=1").json() == {"count": 1}
    token = token_order["transactions"][0]["payment_method_details"]["vault_token"]
    used = watched.create(details(one_click_type="one-click", vault_token=token, cvc="123"))
    assert used.status_code == 400
    assert watched.get("/control/project/").json()["settings"]["webhook_url"] == shop.url


def test_a_reset_discards_late_results(watched: Sandbox, shop: Shop) -> None:
    """A webhook in flight is not recorded after the reset."""
    arrived, released = shop.hold(500, late=200)
    watched.place(by("bank-transfer"))
    assert arrived.wait(60)
    watched.post("/control/reset/")
    watched.place(by("bank-transfer"))  # the same seed gives the same IDs as before the reset
    released.set()
    watched.settle()
    (delivery,) = watched.webhooks()
    assert len(delivery["attempts"]) == 1


MINE = "name: mine\nrules: [{then: {customer: pays}}]"
OTHER = {"name": "other", "rules": [{"then": {"customer": "cancels"}}]}
INLINE = {"name": "own", "description": "of the creation", "settings": {"mode": "live"}}


@pytest.mark.rule("CTL-09")
@pytest.mark.parametrize("scenario", ["webhook-lost", INLINE], ids=["named", "inline"])
def test_a_reset_goes_back_to_the_creation(project: Callable[..., Sandbox], scenario: Any) -> None:
    """Settings, clock and scenario are those of the creation; the seed and a listener's address stay."""
    sandbox = project(scenario=scenario, name="start", webhook_url="http://127.0.0.1:9/")
    before = sandbox.get("/control/project/").json()
    document = sandbox.get("/control/scenario/").json()
    assert before["scenario"] == (scenario if isinstance(scenario, str) else scenario["name"])
    sandbox.put("/control/scenario/", OTHER)
    sandbox.settings(name="changed", webhook_url=None, seed=99)
    sandbox.project_in_process.forward_webhooks("http://127.0.0.1:8/")
    sandbox.advance("PT1H")
    sandbox.put("/control/faults/", {"faults": [{"then": {"status": 503}}]})
    assert sandbox.post("/control/reset/").status_code == 200
    after = sandbox.get("/control/project/").json()
    assert after["settings"] == {**before["settings"], "seed": 99}
    assert sandbox.project_in_process.settings.forward_to == "http://127.0.0.1:8/"
    assert (after["scenario"], after["clock"]) == (before["scenario"], before["clock"])
    assert sandbox.get("/control/scenario/").json() == document
    assert sandbox.get("/control/faults/").json()["faults"] == []


def made(tmp_path: Path, *, is_declared: bool) -> Server:
    """Return a server with a state file, whose first project has the scenario ``mine``."""
    file = tmp_path / "project.yaml"
    file.write_text("api_key: sandbox-key\nscenario: mine")
    named = {"project_files": [file]} if is_declared else {"scenario": "mine"}
    return make_server(scenario_folders=[tmp_path / "scenarios"], state=tmp_path / "state.db", **named)


@pytest.mark.rule("CTL-09")
@pytest.mark.parametrize("is_declared", [False, True])
def test_a_reset_goes_back_to_the_start_of_the_server(tmp_path: Path, is_declared: bool) -> None:
    """The scenario is that of the options or the project file, after a restart, too.

    A file is read again when it is next named; an invalid one is refused, and nothing changes.
    """
    (tmp_path / "scenarios").mkdir()
    file = tmp_path / "scenarios" / "mine.yaml"
    file.write_text(MINE)
    with made(tmp_path, is_declared=is_declared) as server:
        client = SandboxClient(server.url, "sandbox-key")
        client.scenario(OTHER)
        client.close()
    with made(tmp_path, is_declared=is_declared) as server:
        client = SandboxClient(server.url, "sandbox-key")
        assert client.active_scenario()["name"] == "other"
        file.write_text(MINE.replace("pays", "cancels"))
        assert client.reset()["scenario"] == "mine"
        assert client.active_scenario()["rules"][0]["then"] == {"customer": "cancels"}
        file.write_text(f"{MINE}\nrulez: []")
        order = client.call("POST", "/v1/orders/", {"currency": "EUR", "amount": 1000})["id"]
        for call in (client.reset, lambda: client.scenario("mine")):
            with pytest.raises(SandboxError) as refused:
                call()
            (violation,) = refused.value.violations
            assert (violation.file, violation.line, violation.path) == (str(file), 3, "rulez")
        assert client.active_scenario()["rules"][0]["then"] == {"customer": "cancels"}
        assert client.call("GET", f"/v1/orders/{order}/")["id"] == order
        file.write_text(MINE)
        assert client.scenario("mine")["rules"][0]["then"] == {"customer": "pays"}
        file.unlink()  # the last valid version stays
        assert client.reset()["scenario"] == "mine"
        client.close()
