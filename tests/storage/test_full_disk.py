"""Changes that cannot be written to the disk are discarded."""

import sqlite3
from pathlib import Path

import pytest

from payment_sandbox.operations.agenda import agenda
from payment_sandbox.operations.clock import advance_clock
from payment_sandbox.operations.create_order import create_order
from payment_sandbox.storage.codec import NotStored
from payment_sandbox.storage.sqlite import StateFile
from tests.support.driver import card
from tests.support.projects import stored_registry
from tests.support.state_files import NOON, check_file


def test_due_entries_fail_while_the_disk_is_full(tmp_path: Path) -> None:
    """A due entry that cannot be stored is listed as failed, blocks nothing, and runs after a restart."""
    state = tmp_path / "state.db"
    file = StateFile(state)
    registry = stored_registry(file, NOON)
    project, _ = registry.create({"clock": "frozen"})
    order = create_order(project, {"currency": "EUR", "amount": 5, "client": {}, "transactions": [card()]})
    broken = file._database
    file._database = sqlite3.connect(":memory:", isolation_level=None)  # it has no tables
    with pytest.raises(NotStored):
        advance_clock(project, {"by": "PT1H"})
    file._database.close()
    file._database = broken
    (failed,) = agenda(project.epoch)
    assert failed["kind"] == "expiry"
    assert "no such table" in failed["failed"]
    assert len(project.epoch.journal.failures) == 1
    assert project.find_order(order.id).status == "new"
    advanced = advance_clock(project, {"by": "PT1H"})
    assert (advanced.events, advanced.stopped) == ([], False)
    file.close()
    file = StateFile(state)
    registry = stored_registry(file, NOON)
    (project,) = registry.all()
    advance_clock(project, {"by": "PT0S"})
    assert project.find_order(order.id).status == "expired"
    check_file(file, registry)
    file.close()
