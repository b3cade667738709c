"""A snapshot whose parts do not fit together harms only its own project."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import requests

from payment_sandbox.serving.server import Server
from tests.support.driver import Sandbox, by, card
from tests.support.servers import make_server
from tests.support.state_files import reconnect

Change = Callable[[dict[str, Any]], Any]
NOBODY = "00000000-0000-4000-8000-000000000000"
WHEN_NOBODY = {"webhooks": [{"when": {"order_id": NOBODY}, "then": {"drop": True}}]}
CHANGES: dict[str, Change] = {
    "no orders": lambda state: state["orders"].clear(),
    "an order twice": lambda state: state["orders"].append(state["orders"][0]),
    "a sum below zero": lambda state: state["orders"][0].update(amount_cents=-5),
    "an unknown status": lambda state: state["orders"][0].update(status="lost"),
    "no transaction": lambda state: state["orders"][0].update(transactions=[]),
    "a command for no order": lambda state: state["agenda"][0]["command"].update(order_id=NOBODY),
    "a number of the agenda twice": lambda state: state["agenda"].append(state["agenda"][0]),
    "numbers that begin again": lambda state: state.update(sequence=0, id_counts={}),
    "a webhook of no order": lambda state: state["deliveries"][0].update(order_id=NOBODY, state="pending"),
    "an address that is a file": lambda state: state["deliveries"][0].update(
        url="file:///x", state="pending"
    ),
    "an attempt that took too long": lambda state: state["deliveries"][0]["attempts"][0]["reply"].update(
        duration_ms=1 << 70
    ),
    "a swapped webhook that is none": lambda state: state.update(swapped=[NOBODY]),
    "a fault for no order": lambda state: state.update(faults=WHEN_NOBODY),
}


def inconsistent_state(sandbox: Sandbox, change: Change) -> Any:
    """Return the changed snapshot of a project with orders, webhooks and an agenda."""
    sandbox.settings(webhook_url="http://127.0.0.1:9/")
    sandbox.take(sandbox.authorized(expiration_period="P7D"), "captures/amount", {"amount": 5})
    sandbox.place(by("bank-transfer"), customer={"email_address": "pays@example.com"})
    sandbox.settle()
    state = deepcopy(sandbox.get("/control/state/").json())
    change(state)
    return state


def expect_unharmed(server: Server, sandbox: Sandbox) -> None:
    """Assert that another project works, and that the lists of all projects can be read."""
    assert sandbox.pay(sandbox.place(card()))["status"] == "completed"
    assert sandbox.post("/control/clock/advance/", {"by": "P1D"}).status_code == 200
    for path in ("/control/projects/", "/control/projects/review/", "/dashboard/"):
        assert requests.get(f"{server.url}{path}", timeout=60).status_code == 200


@pytest.mark.rule("CTL-08")
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_parts_that_do_not_fit_harm_one_project(tmp_path: Path, change: Change) -> None:
    """Other projects work before and after a restart, and a reset or a deletion ends the harm."""
    path = tmp_path / "state.db"
    with make_server(state=path) as server:
        harmed, deleted, other = (Sandbox(server) for _ in range(3))
        state = inconsistent_state(harmed, change)
        for sandbox in (harmed, deleted):
            assert sandbox.put("/control/state/", state).status_code == 200
            sandbox.post("/control/clock/advance/", {"by": "P40D", "timeout": 5})
        expect_unharmed(server, other)
    with make_server(state=path) as server:
        harmed, deleted, other = (reconnect(each, server) for each in (harmed, deleted, other))
        expect_unharmed(server, other)
        assert harmed.post("/control/reset/").status_code == 200
        assert deleted.delete("/control/project/").status_code == 200
        expect_unharmed(server, harmed)
        expect_unharmed(server, other)
