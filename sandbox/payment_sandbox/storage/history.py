"""How a durable store keeps a project's journal: without secrets, and a moment after the responses."""

import json
import logging
from collections.abc import Iterable, Iterator
from typing import Final, cast

from payment_sandbox.orders.refusals import Invalid
from payment_sandbox.projects.journal import ENTRIES_MAX, RECORDS, Record, number_of
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.store import HistoryRow
from payment_sandbox.storage.codec import NotStored, decode, encode

KEPT_MAX: Final = 6 * ENTRIES_MAX  # numbers, which all kinds share
KIND_OF: Final = {record: kind for kind, record in RECORDS.items()}

log = logging.getLogger(__name__)


def store_history(project: Project) -> None:
    """Save what a project's journal has got since the last call; what cannot be saved is not tried again."""
    epoch = project.epoch
    records = list(epoch.journal.take_unstored())
    if records:
        try:
            epoch.store.keep_history([history_row(record) for record in records])
        except NotStored as failed:
            log.warning("%d records of project %s: %s", len(records), project.project_id, failed)


def load_history(project: Project, newest_number: int) -> None:
    """Give a project's journal what was saved of it, when somebody looks: there may be much.

    What cannot be read is left out.
    """
    store = project.epoch.store  # after a reset, that of the journal is another one
    project.epoch.journal.continue_after(
        newest_number, lambda: read_records(project.project_id, store.history(newest_number))
    )


def read_records(project_id: str, rows: Iterable[HistoryRow]) -> Iterator[Record]:
    """The records that can be read."""
    for row in rows:
        try:
            yield _record(row)
        except (Invalid, KeyError, ValueError, TypeError) as problem:
            log.warning("project %s: %s-%d was left out: %s", project_id, row.kind, row.number, problem)


def history_row(record: Record) -> HistoryRow:
    """A record as it is stored."""
    return HistoryRow(KIND_OF[type(record)], number_of(record), json.dumps(encode(record)))


def _record(row: HistoryRow) -> Record:
    return cast(Record, decode(RECORDS[row.kind], json.loads(row.body), f"history.{row.kind}-{row.number}"))
