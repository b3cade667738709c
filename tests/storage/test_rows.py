"""The rows of a change set are read back unchanged."""

from datetime import timedelta

import pytest

from payment_sandbox.kernel.timeline import DueItem
from payment_sandbox.orders.commands import Command
from payment_sandbox.projects.store import ChangeSet, JournalRow
from payment_sandbox.storage.codec import decode
from payment_sandbox.storage.journal_rows import read_records
from payment_sandbox.storage.rows import AGENDA, rows_of
from payment_sandbox.storage.snapshot import StoredSnapshot
from tests.storage.conftest import GOLDEN

SNAPSHOT: StoredSnapshot = decode(StoredSnapshot, GOLDEN, "golden")


def test_what_a_change_finishes_itself_is_not_written() -> None:
    """An entry that a change set both adds and finishes is deleted, in case an earlier change wrote it."""
    due: DueItem[Command] = SNAPSHOT.change().dues[0]
    later = due._replace(at=due.at + timedelta(days=1), sequence=due.sequence + 1)
    rows = list(rows_of(ChangeSet(dues=(due, later), finished_entries=(due.sequence,)), ["a webhook"]))
    assert [(row.kind, row.id, row.body is None) for row in rows] == [
        (AGENDA, str(later.sequence), False),
        (AGENDA, str(due.sequence), True),
        ("deliveries", "a webhook", True),
    ]


def test_records_of_earlier_versions_are_skipped(caplog: pytest.LogCaptureFixture) -> None:
    """The journal of an earlier version has changes of settings, which are skipped without a warning."""
    assert list(read_records("project", [JournalRow("choice", 1, "{}"), JournalRow("status", 2, "{}")])) == []
    assert [record.getMessage().partition(": ")[0] for record in caplog.records] == ["project project"]
    assert "status-2" in caplog.text
