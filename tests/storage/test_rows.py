"""The rows of a change set are the same in every database, and are read back unchanged."""

import json
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from payment_sandbox.kernel.timeline import DueItem
from payment_sandbox.orders.commands import Command
from payment_sandbox.projects.outbox import QueuedDelivery, ResendChanges
from payment_sandbox.projects.registry import Registry, Storages
from payment_sandbox.projects.store import ChangeSet
from payment_sandbox.serving.services import REAL_TIME
from payment_sandbox.storage.codec import AgendaEntry, Snapshot, decode, encode
from payment_sandbox.storage.rows import AGENDA, Row, read_record, rows_of
from payment_sandbox.storage.snapshot import restore
from payment_sandbox.storage.sqlite import StateFile
from payment_sandbox_company.replicas import encode_job, read_job
from tests.storage.test_every_store import GOLDEN, NOON, SERVICES, rename_first_order
from tests.support.postgres import Postgres
from tests.support.projects import catalogue

SNAPSHOT: Snapshot = decode(Snapshot, GOLDEN, "golden")


def test_each_record_is_read_back() -> None:
    """Records of every kind are read back by their kind alone."""
    change = SNAPSHOT.change()
    rows = list(rows_of(change, ()))
    read = [read_record(row.kind, row.id, row.body) for row in rows if row.body is not None]
    written: list[Any] = [record for _, _, record in change.records()]
    written += (AgendaEntry(*due) for due in change.dues)
    assert read
    assert encode(read) == encode(written)  # commands have no equality
    assert list(map(type, read)) == list(map(type, written))


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


@pytest.mark.parametrize(
    "changes", [ResendChanges(), ResendChanges("http://127.0.0.1:9/"), ResendChanges(body="another")]
)
def test_a_queued_webhook_is_read_back(changes: ResendChanges) -> None:
    """A queued webhook is read back; unchanged parts are null, for servers of other versions."""
    queued = QueuedDelivery("a webhook", "an order", True, changes, 7)
    body = encode_job(queued)
    assert read_job(7, body) == queued
    assert set(json.loads(body)) == {"delivery_id", "order_id", "forced", "changed"}
    assert (json.loads(body)["changed"] is None) is (changes == ResendChanges())


def fill(storages: Storages) -> None:
    """Store a project with every kind of record, and rename its first order."""
    project, _ = Registry(SERVICES, storages, catalogue(), clock=NOON).create(
        {"name": "Sock shop", "seed": 5}
    )
    restore(project, GOLDEN)
    rename_first_order(project, "changed")


def test_both_databases_hold_the_same_rows(postgresql: Postgres, tmp_path: Path) -> None:
    """SQLite and PostgreSQL store the same rows in the same order."""
    from payment_sandbox_company.postgresql import Database  # imported late: the driver is optional

    address, state = postgresql.new_database(), tmp_path / "state.db"
    with closing(StateFile(state)) as file, closing(Database(address, "me", REAL_TIME)) as database:
        fill(file)
        fill(database)
    with closing(sqlite3.connect(state)) as read:
        in_file = read.execute("SELECT kind, id, body FROM record ORDER BY position").fetchall()
    query = "SELECT kind, id, body FROM sandbox_record WHERE kind <> 'jobs' AND body IS NOT NULL ORDER BY position"
    in_database = postgresql.execute(query, address.rpartition("/")[2])
    assert [Row(*row) for row in in_file] == [Row(*row) for row in in_database]
    assert len(in_file) > 10
