"""Projects are created from settings, updated, deleted and isolated."""

from collections.abc import Callable

import pytest
import requests

from payment_sandbox.serving.server import Server
from tests.support.driver import START, Sandbox, card, violations
from tests.support.servers import make_server


@pytest.mark.rule("CTL-04")
def test_a_server_starts_with_a_project(server: Server) -> None:
    """A new server has a project with a fixed key, so a newcomer needs no setup."""
    shown = requests.get(f"{server.url}/control/project/", auth=("sandbox-key", "")).json()
    assert (shown["settings"]["mode"], shown["clock"]["mode"]) == ("test", "running")


@pytest.mark.rule("CTL-06")
def test_a_project_is_made_from_its_settings(server: Server) -> None:
    """The response has IDs, settings and, only this time, the key."""
    settings = {"mode": "live", "webhook_url": "https://shop.example/hook", "name": "Shop", "seed": 7}
    answer = requests.post(f"{server.url}/control/projects/", json=settings)
    created = answer.json()
    assert answer.status_code == 201
    assert {key: created["settings"][key] for key in settings} == settings
    shown = requests.get(f"{server.url}/control/project/", auth=(created["api_key"], "")).json()
    assert (shown["project_id"], shown["merchant_id"]) == (created["project_id"], created["merchant_id"])
    assert created["api_key"] not in str(shown)
    listing = requests.get(f"{server.url}/control/projects/")
    assert created["project_id"] in listing.text
    assert created["api_key"] not in listing.text
    made = requests.post(f"{server.url}/control/projects/")
    assert made.json()["settings"]["mode"] == "test", "a body is optional"


def test_a_deleted_project_makes_room_for_another() -> None:
    """A project beyond the maximum is refused with 429, while those that exist still work."""
    with make_server(max_projects=2) as server:
        sandbox = Sandbox(server)
        refused = sandbox.post("/control/projects/", {})
        assert (refused.status_code, refused.json()["error"]["type"]) == (429, "RateLimited")
        assert sandbox.create(card()).status_code == 201
        sandbox.delete("/control/project/")
        assert requests.post(f"{server.url}/control/projects/", timeout=60).status_code == 201


@pytest.mark.rule("CTL-01")
def test_wrong_settings_are_refused_with_all_violations(sandbox: Sandbox) -> None:
    """Creation and update report all violations, and nothing changes."""
    wrong = {
        "mode": "demo",
        "webhook_url": "ftp://x",
        "payment_methods": ["credit-card", "cash"],
        "cards_approved": "yes",
        "aliases": {"credit-card": "wallet-qr", "a b": "wallet-qr", "ok": "cash"},
        "unknown_fields": "keep",
        "seed": -1,
        "nmae": "x",
    }
    expected = {
        "mode", "webhook_url", "payment_methods[1]", "cards_approved", "unknown_fields", "seed", "nmae",
    }  # fmt: skip
    created = violations(sandbox.post("/control/projects/", {**wrong, "clock": "stopped", "clok": 1}))
    assert expected | {"clock"} <= created.keys()
    assert "did you mean 'clock'?" in created["clok"], "only creations have a clock"
    assert any(path.startswith("aliases") for path in created)
    scenarios = [{"scenario": {"name": "x", "rulez": []}, "bogus": 1}, {"scenario": "none-such"}]
    paths = [set(violations(sandbox.post("/control/projects/", body))) for body in scenarios]
    assert paths == [{"scenario.rulez", "bogus"}, {"scenario.name"}]
    assert "did you mean 'name'?" in created["nmae"]
    before = sandbox.get("/control/project/").json()
    assert expected <= violations(sandbox.patch("/control/project/", wrong)).keys()
    assert "clock" in violations(sandbox.patch("/control/project/", {"mode": "live", "clock": "running"}))
    assert sandbox.get("/control/project/").json() == before
    assert sandbox.patch("/control/project/", []).status_code == 400


@pytest.mark.rule("CTL-07")
def test_a_deleted_projects_key_is_refused(sandbox: Sandbox) -> None:
    """Both APIs refuse the key of a deleted project."""
    assert sandbox.delete("/control/project/").status_code == 200
    assert sandbox.get("/control/project/").status_code == 401
    assert sandbox.create().status_code == 401


@pytest.mark.rule("CTL-08")
def test_projects_with_the_same_seed_never_see_each_other(project: Callable[..., Sandbox]) -> None:
    """Orders in two projects with the same seed have equal IDs but are separate."""
    one, other = project(seed=42), project(seed=42)
    orders = [sandbox.place(card(), description=str(sandbox.key)) for sandbox in (one, other)]
    assert orders[0]["id"] == orders[1]["id"]
    one.pay(orders[0])
    assert (one.read(orders[0])["status"], other.read(orders[1])["status"]) == ("completed", "new")
    one.advance("P1D")
    assert other.now() == START


def test_a_label_has_at_most_1000_characters(sandbox: Sandbox) -> None:
    """Names and descriptions are short; longer ones of earlier versions are cut when they are loaded."""
    for method, path, body, label in (
        ("PATCH", "/control/project/", {}, "name"),
        ("PATCH", "/control/project/", {}, "owner"),
        ("PUT", "/control/scenario/", {"name": "long"}, "description"),
    ):
        assert sandbox.call(method, path, {**body, label: "x" * 1000}).status_code == 200
        messages = violations(sandbox.call(method, path, {**body, label: "x" * 1001}))
        assert "at most 1,000 characters" in messages[label]
    state = sandbox.get("/control/state/").json()
    state["settings"]["owner"] = state["scenario"]["description"] = "y" * 2000
    assert sandbox.put("/control/state/", state).status_code == 200
    assert sandbox.get("/control/project/").json()["settings"]["owner"] == "y" * 1000
    assert sandbox.get("/control/scenario/").json()["description"] == "y" * 1000
