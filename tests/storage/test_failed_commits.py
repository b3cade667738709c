"""A failed commit leaves nothing behind: no agenda entry, no rule use, no id, no record."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from payment_sandbox.projects.journal import ReachedStatus
from payment_sandbox.storage.sqlite import StateFile
from tests.storage.full_disk import full
from tests.support.driver import Sandbox, by, card, details
from tests.support.servers import make_server
from tests.support.state_files import reconnect, snapshot_of

RULES = {
    "name": "of-the-test",
    "rules": [{"when": {"payment_method": "credit-card"}, "times": 1, "then": {"customer": "fails"}}],
    "faults": [{"when": {"method": "POST", "nth": 99}, "then": {"status": 503}}],
}
LONG = "x" * 9000
ALIASES = {f"button-{number}": "credit-card" for number in range(300)}

WRITES: dict[str, Callable[[Sandbox, dict[str, Any]], requests.Response]] = {
    "create": lambda sandbox, order: sandbox.create(card(), description=LONG),
    "create hosted": lambda sandbox, order: sandbox.create(description=LONG),
    "update": lambda sandbox, order: sandbox.put(f"/v1/orders/{order['id']}/", {"description": LONG}),
    "choose": lambda sandbox, order: sandbox.act(order, "customer choose", payment_method="credit-card"),
    "bank QR": lambda sandbox, order: sandbox.post("/v1/bankqr/", {"amount": 5, "description": LONG}),
    "scenario": lambda sandbox, order: sandbox.put(
        "/control/scenario/",
        {"name": "x", "faults": [{"when": {"path": "/" + LONG}, "then": {"status": 503}}]},
    ),
    "faults": lambda sandbox, order: sandbox.put(
        "/control/faults/", {"faults": [{"when": {"path": "/" + LONG}, "then": {"status": 503}}]}
    ),
    "settings": lambda sandbox, order: sandbox.patch("/control/project/", {"aliases": ALIASES}),
    "pay": lambda sandbox, order: sandbox.act(order, "customer pay"),
    "scan": lambda sandbox, order: sandbox.post(
        f"/control/bankqr/{sandbox.get('/control/bankqr/').json()['items'][0]['id']}/scan/"
    ),
    "restore": lambda sandbox, order: sandbox.put(
        "/control/state/",
        json.loads(json.dumps(sandbox.get("/control/state/").json()).replace("short", LONG)),
    ),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_failed_write_leaves_nothing(tmp_path: Path, write: str) -> None:
    """After a failed write, memory is as before, including all counters; the same call then succeeds."""
    state = tmp_path / "state.db"
    with make_server(state=state, seed=7) as server:
        sandbox = Sandbox(server, webhook_url="http://127.0.0.1:9/", seed=11)
        order = sandbox.place(description="short", customer={"country": "NL"}, expiration_period="P9D")
        stored_card = sandbox.place(details(one_click_type="first"))
        sandbox.post("/v1/bankqr/", {"amount": 5})
        sandbox.put("/control/scenario/", RULES)
        project = server.registry.find(sandbox.key)
        assert project is not None
        assert isinstance(server.state, StateFile)
        project.settle()
        before = (
            snapshot_of(project),
            len(project.epoch.journal.of(ReachedStatus)),
            dict(project.epoch.ids.counts),
        )
        with full(server.state):
            answer = WRITES[write](sandbox, stored_card if write == "pay" else order)
        assert answer.status_code == 507, answer.text
        assert "disk is full" in answer.json()["error"]["value"]
        after = (
            snapshot_of(project),
            len(project.epoch.journal.of(ReachedStatus)),
            dict(project.epoch.ids.counts),
        )
        assert without_fault_counts(after[0]) == without_fault_counts(before[0])
        assert after[1:] == before[1:]
        assert WRITES[write](sandbox, stored_card if write == "pay" else order).status_code in (200, 201)
    with make_server(state=state) as server:
        restarted = reconnect(sandbox, server)
        assert restarted.get("/control/project/").status_code == 200


def without_fault_counts(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state without the counts of faults: a failed request counts, too."""
    return {key: value for key, value in state.items() if key not in ("scenario_faults", "fault_uses")}


def test_a_project_that_could_not_be_made_is_not_there(tmp_path: Path) -> None:
    """When the creation of a project fails to commit, the registry is unchanged; the next one succeeds."""
    with make_server(state=tmp_path / "state.db") as server:
        assert isinstance(server.state, StateFile)
        before = len(server.registry.all())
        with full(server.state):
            refused = requests.post(f"{server.url}/control/projects/", json={"aliases": ALIASES})
        assert refused.status_code == 507
        assert len(server.registry.all()) == before
        Sandbox(server).place(by("bank-transfer"))
