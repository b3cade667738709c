"""What the disk does not take did not happen."""

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import requests

from payment_sandbox.operations.advance import agenda
from payment_sandbox.operations.clock import advance_clock
from payment_sandbox.operations.create_order import create_order
from payment_sandbox.serving.server import Server
from payment_sandbox.storage.sqlite import StateFile
from tests.support.driver import Sandbox, card
from tests.support.projects import stored_registry
from tests.support.state_files import NOON, again, check_file


def full(file: StateFile) -> Callable[[], None]:
    """Let every write to the file fail, as on a full disk; returns what makes room again."""
    database = file._database
    (pages,) = database.execute("PRAGMA page_count").fetchone()
    database.execute(f"PRAGMA max_page_count = {pages}")
    with suppress(sqlite3.Error):
        database.execute("CREATE TABLE filler (body)")
    for _ in range(10_000):
        try:
            database.execute(
                "INSERT INTO record (project, kind, id, body) VALUES (-1, '', ?, ?)", (_, "x" * 900)
            )
        except sqlite3.Error:
            break

    def make_room() -> None:
        database.execute("PRAGMA max_page_count = 1000000")

    return make_room


WRITES: list[Callable[[Sandbox], requests.Response]] = [
    lambda sandbox: sandbox.create(card(), description="x" * 5000),
    lambda sandbox: sandbox.post("/control/reset/"),
    lambda sandbox: sandbox.patch("/control/project/", {"name": "x" * 5000}),
    lambda sandbox: sandbox.put(
        "/control/faults/", {"faults": [{"when": {"path": "/" + "x" * 5000}, "then": {"status": 503}}]}
    ),
    lambda sandbox: sandbox.put("/control/scenario/", {"name": "x", "description": "x" * 5000}),
]


@pytest.mark.parametrize("write", WRITES)
def test_what_the_disk_does_not_take_did_not_happen(tmp_path: Path, write: Callable[[Sandbox], Any]) -> None:
    """It is a 500, everything is as before, and once there is room all goes on."""
    state = tmp_path / "state.db"
    with Server(state=state) as server:
        sandbox = Sandbox(server)
        order = sandbox.place(card())
        assert server.file is not None
        before = sandbox.get("/control/project/").json()
        faults = sandbox.get("/control/faults/").json()
        make_room = full(server.file)
        answer = write(sandbox)
        make_room()
        if answer.status_code == 500:
            assert sandbox.get("/control/project/").json() == before
            assert sandbox.get("/control/faults/").json() == faults
        sandbox.place(card())
        sandbox.advance("PT1M")
    with Server(state=state) as server:
        there = again(sandbox, server)
        if answer.status_code == 500 and "reset" not in answer.url:
            assert there.read(order)["status"] == "new"
        there.place(card())


def test_what_is_due_while_the_disk_is_full_is_set_aside(tmp_path: Path) -> None:
    """It is shown as failed, blocks nothing, and is done after the next start."""
    state = tmp_path / "state.db"
    file = StateFile(state)
    registry = stored_registry(file, NOON)
    project, _ = registry.create({"clock": "frozen"})
    order = create_order(project, {"currency": "EUR", "amount": 5, "client": {}, "transactions": [card()]})
    broken = file._database
    file._database = sqlite3.connect(":memory:", isolation_level=None)  # it knows no such table
    with pytest.raises(sqlite3.Error):
        advance_clock(project, {"by": "PT1H"})
    file._database.close()
    file._database = broken
    (failed,) = agenda(project.epoch)
    assert failed["kind"] == "expiry"
    assert "no such table" in failed["failed"]
    assert len(project.epoch.journal.failures) == 1
    assert project.find_order(order.id).status == "new"
    done = advance_clock(project, {"by": "PT1H"})
    assert (done.events, done.stopped) == ([], False)
    file.close()
    file = StateFile(state)
    registry = stored_registry(file, NOON)
    (project,) = registry.all()
    advance_clock(project, {"by": "PT0S"})
    assert project.find_order(order.id).status == "expired"
    check_file(file, registry)
    file.close()
