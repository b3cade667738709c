"""State files and snapshots of earlier versions can be read; ``golden/`` has one of each format."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests

from payment_sandbox.serving.server import Server
from payment_sandbox.storage.codec import FORMAT
from payment_sandbox.storage.sqlite import FORMAT_VERSION, OLDEST_FORMAT_VERSION
from tests.support.driver import Sandbox, card
from tests.support.servers import make_server

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def sandbox(server: Server, http: requests.Session) -> Sandbox:
    """A fresh project of a server; ``project`` is a project of each store in this folder."""
    return Sandbox(server, http)


@pytest.mark.parametrize("number", range(OLDEST_FORMAT_VERSION, FORMAT_VERSION))
def test_an_older_state_file_is_migrated(tmp_path: Path, number: int) -> None:
    """The orders of an older state file can be read and changed; the file is migrated to today's format."""
    state = tmp_path / "state.db"
    shutil.copy(GOLDEN / f"format-{number}.db", state)
    expected = json.loads((GOLDEN / "snapshot-2.json").read_text())
    for _ in range(2):
        with make_server(state=state) as server:
            (golden,) = [each for each in server.registry.all() if each.settings.name == "Golden"]
            ids = [order["id"] for order in expected["orders"]]
            assert golden.epoch.store.order_ids()[: len(ids)] == ids
            assert golden.epoch.state.scenario.name == "of-the-file"
            golden.change_settings({"name": "Golden"})
            first = Sandbox(server)
            assert first.create(card()).status_code == 201
            order_id = expected["orders"][0]["id"]
            page = f"{server.url}/dashboard/{golden.project_id}/orders/{order_id}/"
            assert requests.get(page).status_code == 200
    with closing(sqlite3.connect(state)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (FORMAT_VERSION,)


LATE_TRANSFERS = GOLDEN / "late-transfers.json"
KEY_IN_FILE = "3dd0c68efcdff31e9f83c352ed27ce2a"


@pytest.fixture(params=["state file", "snapshot"])
def older_project(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sandbox]:
    """A live project of a version in which a transfer could not arrive late."""
    state = tmp_path / "state.db"
    if request.param == "state file":
        shutil.copy(LATE_TRANSFERS.with_suffix(".db"), state)
    with make_server(state=state) as server:
        restored = Sandbox(server, mode="live")
        if request.param == "state file":
            restored.key = KEY_IN_FILE
        else:
            restored.put("/control/state/", json.loads(LATE_TRANSFERS.read_text()))
        yield restored


def test_transfers_of_an_older_version_can_arrive_late(older_project: Sandbox) -> None:
    """Given up, in part, expired and scheduled transfers continue by today's rules; refunds follow the lines."""
    sandbox = older_project
    items = sandbox.get("/control/orders/").json()["items"]
    orders = {item["merchant_order_id"]: item for item in items}
    statuses = {name: sandbox.read(order)["status"] for name, order in orders.items()}
    assert statuses == {
        "given-up": "completed",
        "in-part": "processing",
        "expired": "expired",
        "open": "processing",
        "lines": "completed",
        "scheduled": "completed",
    }
    sandbox.acted(orders["given-up"], "bank credit")
    assert received(sandbox, orders["given-up"]) == 2000
    for name in ("in-part", "expired"):
        if name == "in-part":
            assert sandbox.delete(f"/v1/orders/{orders[name]['id']}/").json()["status"] == "cancelled"
        assert sandbox.post(f"/v1/orders/{orders[name]['id']}/refunds/", {"amount": 401}).status_code == 409
        assert sandbox.post(f"/v1/orders/{orders[name]['id']}/refunds/", {"amount": 400}).status_code == 201
    known = sandbox.read(orders["open"])["transactions"][0]
    again = sandbox.acted(orders["open"], "customer choose", payment_method="bank-transfer")["transactions"][
        -1
    ]
    assert (again["id"], again["status"], again["payment_method_details"]["reference"]) == (
        known["id"],
        "pending",
        known["payment_method_details"]["reference"],
    )
    for line, status in (("a", 409), ("b", 201)):
        refund = {"order_lines": [{"merchant_order_line_id": line, "quantity": 1}]}
        assert sandbox.post(f"/v1/orders/{orders['lines']['id']}/refunds/", refund).status_code == status
    sandbox.advance("P3D")
    assert received(sandbox, orders["scheduled"]) == 2000


def received(sandbox: Sandbox, order: dict[str, Any]) -> int:
    """Return what an order has received beyond its amount."""
    cents: int = sandbox.read(order, "amount_details")["amount_details"]["received"]
    return cents


def test_a_failed_migration_does_not_change_the_file(tmp_path: Path) -> None:
    """A failed migration, for instance because of an existing table, leaves the file unchanged."""
    state = tmp_path / "state.db"
    shutil.copy(GOLDEN / f"format-{OLDEST_FORMAT_VERSION}.db", state)
    with closing(sqlite3.connect(state)) as database:
        database.execute("CREATE TABLE history (mine)")
    before = state.read_bytes()
    with pytest.raises(Exception, match="history already exists"):
        make_server(state=state)
    assert state.read_bytes() == before


def test_a_newer_snapshot_is_refused_by_name(sandbox: Sandbox) -> None:
    """The refusal of a newer snapshot names the format that this version writes."""
    golden = json.loads((GOLDEN / "snapshot-2.json").read_text())
    refused = sandbox.put("/control/state/", {**golden, "format": "payment-orders-sandbox/99"})
    assert refused.status_code == 400
    assert FORMAT in refused.text
