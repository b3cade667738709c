"""State files and snapshots of earlier versions can be read; ``golden/`` has one of each format."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

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


def test_there_is_a_golden_file_of_each_older_format() -> None:
    """Each older format has a golden file: a change to the format adds the file of the version before."""
    files = {path.name for path in GOLDEN.iterdir()}
    assert files >= {f"format-{number}.db" for number in range(OLDEST_FORMAT_VERSION, FORMAT_VERSION)}
    assert f"snapshot-{FORMAT.rpartition('/')[2]}.json" in files


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


def test_an_order_without_an_expiry_is_refused(sandbox: Sandbox) -> None:
    """An order without an expiry is refused."""
    sandbox.place()
    snapshot = sandbox.get("/control/state/").json()
    snapshot["orders"][0]["expires_at"] = None
    answer = requests.put(f"{sandbox.url}/control/state/", json=snapshot, auth=(sandbox.key, ""))
    assert answer.status_code == 400
    assert [violation["path"] for violation in answer.json()["error"]["violations"]] == [
        "state.orders[0].expires_at"
    ]
