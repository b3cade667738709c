"""Persistence of a project's journal: masked, and written shortly after the responses."""

import json
import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final, cast

from payment_sandbox.orders.refusals import Invalid
from payment_sandbox.projects.journal import ENTRIES_MAX, RECORDS, Record, number_of
from payment_sandbox.projects.project import Project, ProjectReset
from payment_sandbox.projects.store import JournalRow, NotStored
from payment_sandbox.storage.codec import decode, encode

RECORDS_MAX: Final = 6 * ENTRIES_MAX  # counted in sequence numbers, which all kinds share
KINDS_BY_TYPE: Final = {record: kind for kind, record in RECORDS.items()}

log = logging.getLogger(__name__)


def save_new_records(project: Project) -> None:
    """Save the journal's new records, unless their epoch has ended; a failed save is not retried."""
    epoch = project.epoch
    rows = [journal_row(record) for record in epoch.journal.take_unstored()]
    if rows:
        try:
            with suppress(ProjectReset), project.blocking_edits(epoch):
                epoch.store.save_journal_rows(rows)
        except NotStored as failed:
            log.warning("%d records of project %s: %s", len(rows), project.project_id, failed)


def load_journal(project: Project, newest_number: int) -> None:
    """Load the saved records of a journal on its first read, because there may be many records.

    Unreadable records are skipped.
    """
    store = project.epoch.store  # not read later: a reset replaces the epoch and its store
    project.epoch.journal.continue_after(
        newest_number, lambda: read_records(project.project_id, store.journal_rows(newest_number))
    )


def read_records(project_id: str, rows: Iterable[JournalRow]) -> Iterator[Record]:
    """Decode the readable records; earlier versions wrote further kinds."""
    for row in rows:
        if row.kind not in RECORDS:
            continue
        try:
            path = f"journal.{row.kind}-{row.number}"
            yield cast(Record, decode(RECORDS[row.kind], json.loads(row.body), path))
        except (Invalid, KeyError, ValueError, TypeError) as problem:
            log.warning("project %s: %s-%d was skipped: %s", project_id, row.kind, row.number, problem)


def journal_row(record: Record) -> JournalRow:
    """Convert a record to its stored form."""
    return JournalRow(KINDS_BY_TYPE[type(record)], number_of(record), json.dumps(encode(record)))
