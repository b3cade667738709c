"""A database in memory with row locks, aborted and unknown commits, and expiring claims.

Faults are injected at chosen statements.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any, Final, cast

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.projects.caller import SavedAnswer
from payment_sandbox.projects.clock import RealTime
from payment_sandbox.projects.events import Entry, Events
from payment_sandbox.projects.identity import Identity
from payment_sandbox.projects.project import CreateStore
from payment_sandbox.projects.store import JournalRow
from payment_sandbox.storage.codec import NotStored
from payment_sandbox.storage.rows import ProjectColumns, encode_identity
from payment_sandbox.storage.rows import Row as StoredRow
from payment_sandbox_company.following import Replica
from payment_sandbox_company.postgresql import Database
from payment_sandbox_company.project_rows import (
    CLAIM_SECONDS,
    IDLE_LOCK_SECONDS,
    Changes,
    Head,
    SharedChanges,
    UnknownOutcome,
    commit_name,
)
from payment_sandbox_company.shared_storage import SharedStore
from tests.simulation.world import World

LOCK_SECONDS: Final = 4.0
OUTAGE_STATEMENTS: Final = 6
STALL_SECONDS: Final = 15.0
GRACE_SECONDS: Final = 0.2


class Fault(StrEnum):
    """Faults of a statement."""

    LOST = "lost before its execution"
    UNANSWERED = "executed, and its response is lost"
    KILLED = "executed, and its server is killed"
    STALLED = "executed, and its server pauses for longer than a claim lasts"
    OUTAGE = "not executed, nor are the next statements"
    UNKNOWN = "executed, and its response is lost; the next statements fail"
    FULL = "not executed, nor are the next writes, because the disk is full"


class Killed(BaseException):
    """The server of this thread is dead."""


@dataclass
class Row:
    """A project's row, and its records."""

    identity: Identity
    version: int = 0
    last: str = ""
    epoch_version: int = 0
    chosen: str = "{}"
    counters: str = "{}"
    courier: str | None = None
    courier_until: float = 0.0
    clock_holder: str | None = None
    clock_until: float = 0.0
    attend_at: float | None = None
    records: dict[tuple[str, str], tuple[int, str | None]] = field(default_factory=dict)
    requests: dict[tuple[str, int], tuple[int, SavedAnswer | None]] = field(default_factory=dict)
    history: list[JournalRow] = field(default_factory=list)
    locked_by: "SimulatedSession | None" = None


class SharedState:
    """The database's shared state: rows and faults."""

    def __init__(self, world: World, faults: dict[int, Fault]) -> None:
        self.world = world
        self.rows: dict[str, Row] = {}
        self.faults = faults
        self.statements = 0
        self.absences = 0  # servers killed, or paused for longer than a claim lasts
        self._broken_until = 0
        self._full_until = 0
        self._ids = Ids(1)

    @contextmanager
    def statement(self, database: "SimulatedDatabase", *, writes: bool = False) -> Iterator[None]:
        """Run a statement with the faults before and after its execution, if any.

        Raises:
            Broken: the connection broke, before or after the execution.
            NotStored: the statement writes, and the disk is full.
            Killed: the server is dead.
        """
        self.world.pause()
        database.expect_alive()
        self.statements += 1
        fault = self.faults.get(self.statements)
        self.absences += fault in (Fault.KILLED, Fault.STALLED)
        if fault is Fault.FULL:
            self._full_until = self.statements + OUTAGE_STATEMENTS
        if fault in (Fault.OUTAGE, Fault.UNKNOWN):
            self._broken_until = self.statements + OUTAGE_STATEMENTS
        is_broken = self.statements <= self._broken_until and fault is not Fault.UNKNOWN
        if fault in (Fault.LOST, Fault.OUTAGE) or is_broken:
            database.generation += 1
            raise Broken
        if writes and self.statements <= self._full_until:
            raise NotStored("the database", "the disk is full", is_full=True)
        yield
        if fault in (Fault.UNANSWERED, Fault.UNKNOWN):
            database.generation += 1
            raise Broken
        if fault is Fault.KILLED:
            database.is_dead = True
            raise Killed
        if fault is Fault.STALLED:
            self.world.wait(STALL_SECONDS)

    def heal(self) -> None:
        """End the present outage."""
        self._broken_until = self._full_until = 0

    def draw_ids(self) -> Ids:
        """Return the identifiers for new projects."""
        return self._ids


class Broken(Exception):
    """A connection broke."""


class SimulatedSession:
    """A transaction that has locked the row of a project."""

    def __init__(self, database: "SimulatedDatabase", project_id: str, known_version: int) -> None:
        self._database = database
        self._shared = database.shared
        self._started_seconds = self._shared.world.seconds
        self.is_over = False
        with self._shared.statement(database):
            row = self.row = self._shared.rows.get(project_id)
            if row is not None:
                self._lock(row)
            self.head = database.head_of(row, known_version) if row is not None else None

    def _lock(self, row: Row) -> None:
        def is_free() -> bool:
            holder = row.locked_by
            return holder is None or not holder.is_open

        if not self._shared.world.wait(LOCK_SECONDS, is_free):
            raise NotStored("the database", "the row is locked", is_full=False)
        row.locked_by = self
        self._started_seconds = self._shared.world.seconds

    @property
    def is_open(self) -> bool:
        """Whether the transaction still has its lock; dead and stalled servers lose theirs."""
        is_idle = self._shared.world.seconds - self._started_seconds > IDLE_LOCK_SECONDS
        return not (self.is_over or self._database.is_dead or is_idle)

    def _expect_open(self) -> None:
        if not self.is_open:
            raise Broken

    def changes(self, since: int) -> Changes:
        """Return the records written after a version."""
        assert self.row is not None, "the project must exist"
        try:
            with self._shared.statement(self._database):
                self._expect_open()
                return self._database.read(self.row, since)
        except Broken as broken:
            self.is_over = True
            raise not_stored(broken) from broken

    def commit(self, written: SharedChanges) -> int:
        """Write changes, and commit."""
        assert self.row is not None, "the project must exist"
        try:
            with self._shared.statement(self._database, writes=True):
                self._expect_open()
                version = self._database.write(self.row, written)
                self.is_over = True
            return version
        except Broken:
            self.is_over = True
            return self._database.happened(written)

    def claim(self, courier: str | None, clock_holder: str | None, due_in_seconds: float | None) -> None:
        """Write only claims, and commit."""
        assert self.row is not None, "the project must exist"
        try:
            with self._shared.statement(self._database, writes=True):
                self._expect_open()
                self._database.put_claims(self.row, courier, clock_holder, due_in_seconds)
                self.is_over = True
        except Broken as broken:
            self.is_over = True
            raise not_stored(broken) from broken

    def end(self) -> None:
        """Roll back uncommitted changes."""
        self.is_over = True


def not_stored(broken: Broken) -> NotStored:
    """Return the error that a server raises for a broken connection."""
    return NotStored("the database", "the connection broke", is_full=False)


class SimulatedDatabase:
    """A server's connection to the database."""

    def __init__(self, shared: SharedState, server_id: str) -> None:
        self.shared = shared
        self.server_id = server_id
        self.real: RealTime = shared.world.real
        self.generation = 0
        self.unflushed: dict[str, Any] = {}
        self.is_dead = False

    def expect_alive(self) -> None:
        """Raise an error if this server is dead.

        Raises:
            Killed: this server is dead.
        """
        if self.is_dead:
            raise Killed

    @contextmanager
    def _statement(self, *, writes: bool = False) -> Iterator[None]:
        try:
            with self.shared.statement(self, writes=writes):
                yield
        except Broken as broken:
            raise not_stored(broken) from broken

    def begin(self, project_id: str, known_version: int) -> SimulatedSession:
        """Lock a project's row."""
        try:
            return SimulatedSession(self, project_id, known_version)
        except Broken as broken:
            raise not_stored(broken) from broken

    def head_of(self, row: Row, known_version: int) -> Head:
        """Return the head of a row as a server reads it."""
        now = self.shared.world.seconds
        is_newer = row.version != known_version
        courier = row.courier if row.courier_until > now else None
        holder = row.clock_holder if row.clock_until > now else None
        bodies = (row.chosen, row.counters) if is_newer else (None, None)
        return Head(row.version, row.last, 0, courier, holder, row.epoch_version, *bodies)

    def read(self, row: Row, since: int) -> Changes:
        """Return the records newer than a version."""
        rows = [StoredRow(*key, body) for key, (version, body) in row.records.items() if version > since]
        return Changes(self.head_of(row, -1), rows)

    def changes(self, project_id: str, since: int) -> Changes | None:
        """Return the records written after a version, without a lock."""
        with self._statement():
            row = self.shared.rows.get(project_id)
            return self.read(row, since) if row is not None else None

    def head(self, project_id: str) -> Head | None:
        """Return the head of a project."""
        with self._statement():
            row = self.shared.rows.get(project_id)
            return self.head_of(row, row.version) if row is not None else None

    def add(self, written: SharedChanges) -> int:
        """Add a project."""
        with self._statement(writes=True):
            row = self.shared.rows[written.identity.project_id] = Row(written.identity)
            return self.write(row, written)

    def write(self, row: Row, written: SharedChanges) -> int:
        """Write a change set."""
        row.version += 1
        row.last = commit_name(written.part)
        before, after = json.loads(row.counters), json.loads(written.counters or row.counters)
        is_same_epoch = before.get("epoch") == after.get("epoch")
        assert not is_same_epoch or before["now"] <= after["now"], "the clock goes back"
        row.chosen, row.counters = written.chosen or row.chosen, written.counters or row.counters
        if written.replaces_all:
            row.epoch_version = row.version
            row.records.clear()
            row.history.clear()
        for kind, item_id, body in written.rows:
            row.records[kind, item_id] = (row.version, body)
        self.put_claims(row, written.courier, written.clock_holder, written.due_in_seconds)
        part = written.part
        row.requests[part.request_id, part.number] = (row.version, part.answer)
        return row.version

    def put_claims(
        self, row: Row, courier: str | None, clock_holder: str | None, due_in_seconds: float | None
    ) -> None:
        """Store the claims of this server."""
        now = self.shared.world.seconds
        if courier == self.server_id:
            row.courier_until = now + CLAIM_SECONDS
        if clock_holder is not None and clock_holder.partition(":")[0] == self.server_id:
            row.clock_until = now + CLAIM_SECONDS
        row.courier, row.clock_holder = courier, clock_holder
        times = [now + CLAIM_SECONDS] if courier or clock_holder else []
        times += [now + due_in_seconds + GRACE_SECONDS] if due_in_seconds is not None else []
        row.attend_at = min(times, default=None)

    def happened(self, written: SharedChanges) -> int:
        """Return the version of a commit whose response was lost."""
        row, part = self.shared.rows[written.identity.project_id], written.part
        for _ in range(3):
            try:
                with self.shared.statement(self):
                    known = row.requests.get((part.request_id, part.number))
                if known is None:
                    raise NotStored("the database", "the connection broke", is_full=False)
                return known[0]
            except Broken:
                continue
        raise UnknownOutcome("the database", "the connection broke", part.request_id)

    def has_commit(self, project_id: str, version: int, last: str) -> bool:
        """Return whether a commit exists; this database loses none."""
        return True

    def answer(self, project_id: str, request_id: str) -> SavedAnswer | None:
        """Return the answer to a request without a key, which no client of a simulation repeats."""
        return None

    def attend(self) -> list[str]:
        """Return the projects that need a server's attention."""
        with self._statement(writes=True):
            now, attended = self.shared.world.seconds, []
            for project_id, row in self.shared.rows.items():
                if row.attend_at is not None and row.attend_at <= now:
                    row.attend_at = now + CLAIM_SECONDS
                    attended.append(project_id)
            return attended

    def renew(self, project_id: str) -> None:
        """Renew the claims of this server."""
        with self._statement(writes=True):
            row, now = self.shared.rows[project_id], self.shared.world.seconds
            if row.courier == self.server_id:
                row.courier_until = now + CLAIM_SECONDS
            if row.clock_holder is not None and row.clock_holder.partition(":")[0] == self.server_id:
                row.clock_until = now + CLAIM_SECONDS
            row.attend_at = now + CLAIM_SECONDS

    def identity(self, name: str) -> Identity | None:
        """Return the identity of a project; None if there is no such project."""
        row = self.shared.rows.get(name)
        return row.identity if row is not None else None

    def storage(self, project_id: str) -> CreateStore:
        """Return what creates the stores of a project, which share a replica."""
        return partial(SharedStore, cast(Database, self), Replica(project_id, self.server_id))

    @contextmanager
    def draw_ids(self, ids: Ids) -> Iterator[Ids]:
        """Yield the identifiers for new projects."""
        yield self.shared.draw_ids()

    def remove(self, project_id: str, fixed_key: str | None) -> None:
        """Delete a project."""
        del self.shared.rows[project_id]

    def was_deleted(self, key_digest: str) -> bool:
        """Return False: the simulation deletes no keys."""
        return False

    def projects(self) -> list[ProjectColumns]:
        """Return all projects without their records."""
        return [
            ProjectColumns(project_id, encode_identity(row.identity), row.chosen, row.counters)
            for project_id, row in self.shared.rows.items()
        ]

    # Journals, which servers do not read here, and events, which are outside the simulation

    def read_newer_history(self, project_id: str, since: str | None) -> tuple[list[JournalRow], str]:
        """Return an empty history."""
        return [], self.real.wall_now().isoformat()

    def write_history(self, rows: Sequence[tuple[str, int, JournalRow]]) -> None:
        """Write the journal records of current epochs."""
        with self._statement(writes=True):
            for project_id, epoch_version, written in rows:
                if self.shared.rows[project_id].epoch_version == epoch_version:
                    self.shared.rows[project_id].history.append(written)

    def read_journal_rows(self, project_id: str, number_max: int) -> Sequence[JournalRow]:
        """Return an empty history."""
        return []

    def queue_events(self, project_id: str, entries: Sequence[tuple[str, Entry]]) -> None:
        """Do nothing."""

    def watch(self, feeds: Mapping[str, Events]) -> None:
        """Do nothing."""
