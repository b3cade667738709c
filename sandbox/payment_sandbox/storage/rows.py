"""The rows of a stored project, one for each record."""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple, get_args, get_type_hints

from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.projects.clock import FROZEN, RUNNING
from payment_sandbox.projects.identity import Identity
from payment_sandbox.projects.project import CreateStore, Project, Services
from payment_sandbox.projects.settings import Settings
from payment_sandbox.projects.store import ChangeSet, Counters
from payment_sandbox.storage.codec import (
    FORMAT,
    AgendaEntry,
    StoredRecords,
    decode,
    encode,
)
from payment_sandbox.storage.journal_rows import load_journal
from payment_sandbox.storage.snapshot import resume

KINDS: Final[Mapping[str, Any]] = {
    kind: get_args(hint)[0] for kind, hint in get_type_hints(StoredRecords).items()
}
"""The record types by kind."""
DELIVERY: Final = "deliveries"
ANSWER: Final = "answers"
AGENDA: Final = "agenda"

log = logging.getLogger(__name__)


class Row(NamedTuple):
    """A stored record."""

    kind: str
    id: str
    body: str | None
    """None for a deleted record."""


@dataclass(frozen=True)
class StoredCounters(Counters):
    """Counters, and an anchor from which a running clock continues."""

    anchor: datetime | None = None  # the state files of earlier versions have ``now`` only
    real_at: datetime | None = None


class StoredProject(NamedTuple):
    """A stored project: its identity, and its state as a snapshot document."""

    identity: Mapping[str, Any]
    state: dict[str, Any]
    real_at: str | None  # the real time of the write, from which a running clock continues
    newest_number: int | None = None  # the number of the newest journal record


class ProjectRows(NamedTuple):
    """The rows of a project, as they are stored; records are pairs of kind and body, oldest first."""

    number: int
    id: str
    identity: str
    chosen: str
    counters: str
    newest_number: int | None
    records: Sequence[tuple[str, str]] = ()

    def read(self) -> StoredProject:
        """Read the rows.

        Raises:
            ValueError, TypeError, KeyError: a column or record is damaged.
        """
        state: dict[str, Any] = {**json.loads(self.chosen), **json.loads(self.counters)}
        state |= {kind: [] for kind in KINDS}
        for kind, body in self.records:
            data = json.loads(body)  # an agenda entry is stored without field names
            state[kind].append(data if kind != AGENDA else dict(zip(AgendaEntry._fields, data, strict=True)))
        state["now"] = state.pop("anchor", state["now"])  # the anchor of a running clock
        return StoredProject(json.loads(self.identity), state, state.pop("real_at", None), self.newest_number)


def rows_of(change: ChangeSet, surplus: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a change set, except agenda entries that it both adds and finishes."""
    for kind, item_id, record in change.records():
        yield Row(kind, item_id, json.dumps(encode(record)))
    finished = set(change.finished_entries)
    for due in change.dues:
        if due.sequence not in finished:
            yield Row(AGENDA, str(due.sequence), json.dumps(encode(tuple(due))))
    for sequence in change.finished_entries:
        yield Row(AGENDA, str(sequence), None)
    for delivery_id in surplus:
        yield Row(DELIVERY, delivery_id, None)
    for answer_id in change.forgotten_answers:
        yield Row(ANSWER, answer_id, None)


def encode_counters(counters: Counters, real_at: datetime) -> str:
    """Encode counters, and the real time from which a running clock continues."""
    return json.dumps(encode(StoredCounters(**vars(counters), anchor=counters.now, real_at=real_at)))


def read_identity(data: Mapping[str, Any]) -> Identity:
    """Decode an identity.

    Raises:
        Invalid: the identity is damaged.
    """
    identity: Identity = decode(Identity, data, "identity")
    if identity.start.mode not in (RUNNING, FROZEN):
        raise Invalid([Violation("identity.start.mode", f"must be {RUNNING} or {FROZEN}")])
    for name in ("project_id", "merchant_id", "key_digest"):
        if not getattr(identity, name):
            raise Invalid([Violation(f"identity.{name}", "must not be empty")])
    return identity


def resume_project(
    identity: Identity,
    stored: StoredProject,
    services: Services,
    create_store: CreateStore,
    place: object,
) -> Project:
    """Restore a stored project; a warning about missing orders names ``place``.

    Raises:
        Invalid: the state cannot be read.
    """
    project = Project(identity, Settings(), services, create_store)
    real_at = decode(datetime, stored.real_at, "real_at") if stored.real_at is not None else None
    resume(project, {"format": FORMAT, **stored.state}, real_at)
    if stored.newest_number is not None:
        load_journal(project, stored.newest_number)
    created, restored = project.epoch.ids.counts.get("order", 0), project.epoch.orders_created
    if restored < created:
        log.warning(
            "%s: project %s has %d orders, not the %d created", place, identity.project_id, restored, created
        )
    return project
