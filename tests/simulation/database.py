"""A database in memory with row locks, aborted and unknown commits, and claims that run out.

It breaks at chosen statements. A mistake can be planted in it, to see that the simulation finds it.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.projects.clock import RealTime
from payment_sandbox.projects.identity import Identity
from payment_sandbox.projects.store import HistoryRow
from payment_sandbox.storage.codec import NotStored
from payment_sandbox.storage.rows import Row as StoredRow
from payment_sandbox_company.replicas import (
    CLAIM_SECONDS,
    Changes,
    Head,
    Replica,
    SharedChanges,
    UnknownOutcome,
    commit_name,
)
from payment_sandbox_company.sharing import SharedStorage
from tests.simulation.world import World

LOCK_SECONDS: Final = 4.0
IDLE_SECONDS: Final = 10.0
OUTAGE_STATEMENTS: Final = 6
STALL_SECONDS: Final = 15.0
GRACE_SECONDS: Final = 0.2


class Fault(StrEnum):
    """What goes wrong with a statement."""

    LOST = "lost before it is done"
    UNANSWERED = "done, and its answer is lost"
    KILLED = "done, and its server is killed"
    STALLED = "done, and its server stands still for longer than a claim holds"
    OUTAGE = "not done, nor are the next ones"
    UNKNOWN = "done, and its answer and those of the next ones are lost"


class Mistake(StrEnum):
    """What can be planted."""

    NO_LOCK = "a row is not locked"
    NO_VERSION_CHECK = "memory is not brought up to the row's version"
    UNKNOWN_IS_FAILED = "a commit whose answer is lost counts as failed"
    CLAIMED_TWICE = "a courier's claim is not seen by others"
    ROW_WITHOUT_VERSION = "a record is written without its version"
    NO_ANSWER_STORED = "a commit does not store its answer"
    FOREIGN_TROUBLE = "an unreachable database looks like a mistake in an event"
    GIVES_UP = "a webhook that cannot be stored is given up, and the next one is sent"


class Killed(BaseException):
    """The server of this thread is dead."""


@dataclass
class Row:
    """A project's row, and its records."""

    identity: Identity
    version: int = 0
    last: str = ""
    chosen: str = "{}"
    counters: str = "{}"
    courier: str | None = None
    courier_until: float = 0.0
    clock_holder: str | None = None
    clock_until: float = 0.0
    attend_at: float | None = None
    records: dict[tuple[str, str], tuple[int, str | None]] = field(default_factory=dict)
    requests: dict[tuple[str, int], tuple[int, str | None]] = field(default_factory=dict)
    locked_by: "SimulatedSession | None" = None


class Shared:
    """What all servers have in common."""

    def __init__(self, world: World, faults: dict[int, Fault], mistake: Mistake | None = None) -> None:
        self.world = world
        self.rows: dict[str, Row] = {}
        self.faults = faults
        self.mistake = mistake
        self.statements = 0
        self.injected = 0
        self._broken_until = 0
        self._ids = Ids(1)

    @contextmanager
    def statement(self, database: "SimulatedDatabase") -> Iterator[None]:
        """Do a statement, unless a fault comes before it; then the fault that comes after it, if any.

        Raises:
            Broken: the connection broke; whether the statement was done depends.
            Killed: the server is dead.
        """
        self.world.pause()
        database.expect_alive()
        self.statements += 1
        fault = self.faults.get(self.statements)
        if fault is not None:
            self.injected += 1
        if fault in (Fault.OUTAGE, Fault.UNKNOWN):
            self._broken_until = self.statements + OUTAGE_STATEMENTS
        is_broken = self.statements <= self._broken_until and fault is not Fault.UNKNOWN
        if fault in (Fault.LOST, Fault.OUTAGE) or is_broken:
            database.generation += 1
            raise Broken
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
        """Answer everything from now on."""
        self._broken_until = 0

    def draw_ids(self) -> Ids:
        """The identifiers of new projects."""
        return self._ids


class Broken(Exception):
    """A connection broke."""


class SimulatedSession:
    """A transaction that has locked the row of a project."""

    def __init__(self, database: "SimulatedDatabase", project_id: str, known_version: int) -> None:
        self._database = database
        self._shared = database.shared
        self._began = self._shared.world.seconds
        self.is_over = False
        with self._shared.statement(database):
            self.row = self._shared.rows.get(project_id)
            if self.row is not None and self._shared.mistake is not Mistake.NO_LOCK:
                self._lock(self.row)
        row = self.row
        self.head = database.head_of(row, known_version) if row is not None else None

    def _lock(self, row: Row) -> None:
        def is_free() -> bool:
            holder = row.locked_by
            return holder is None or not holder.is_open

        if not self._shared.world.wait(LOCK_SECONDS, is_free):
            raise NotStored("the database", "the row is locked", is_full=False)
        row.locked_by = self
        self._began = self._shared.world.seconds

    @property
    def is_open(self) -> bool:
        """Whether it still has its lock: a dead server, or one that stands still, loses it."""
        is_idle = self._shared.world.seconds - self._began > IDLE_SECONDS
        return not (self.is_over or self._database.is_dead or is_idle)

    def _expect_open(self) -> None:
        if not self.is_open:
            raise Broken

    def changes(self, since: int) -> Changes:
        """What was written after a version."""
        assert self.row is not None, "there is such a project"
        try:
            with self._shared.statement(self._database):
                self._expect_open()
                return self._database.read(self.row, since)
        except Broken as broken:
            self.is_over = True
            raise refused(broken) from broken

    def commit(self, written: SharedChanges) -> int:
        """Write, and commit."""
        assert self.row is not None, "there is such a project"
        try:
            with self._shared.statement(self._database):
                self._expect_open()
                version = self._database.write(self.row, written)
                self.is_over = True
            return version
        except Broken as broken:
            self.is_over = True
            if self._shared.mistake is Mistake.UNKNOWN_IS_FAILED:
                raise refused(broken) from broken
            try:
                return self._database.happened(written)
            except NotStored as failed:
                if self._shared.mistake is Mistake.FOREIGN_TROUBLE:
                    raise RuntimeError("the database broke off") from failed
                raise

    def claim(self, courier: str | None, clock_holder: str | None, due_in_seconds: float | None) -> None:
        """Write only who has claimed what, and commit."""
        assert self.row is not None, "there is such a project"
        try:
            with self._shared.statement(self._database):
                self._expect_open()
                self._database.put_claims(self.row, courier, clock_holder, due_in_seconds)
                self.is_over = True
        except Broken as broken:
            self.is_over = True
            raise refused(broken) from broken

    def end(self) -> None:
        """Undo what was not committed."""
        self.is_over = True


def refused(broken: Broken) -> NotStored:
    """What a server makes of it."""
    return NotStored("the database", "it broke off", is_full=False)


class SimulatedDatabase:
    """The database as one server sees it."""

    def __init__(self, shared: Shared, server_id: str) -> None:
        self.shared = shared
        self.server_id = server_id
        self.real: RealTime = shared.world.real
        self.generation = 0
        self.unflushed: dict[str, Any] = {}
        self.is_dead = False

    def expect_alive(self) -> None:
        """Go on only if this server lives.

        Raises:
            Killed: it does not.
        """
        if self.is_dead:
            raise Killed

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            with self.shared.statement(self):
                yield
        except Broken as broken:
            raise refused(broken) from broken

    def begin(self, project_id: str, known_version: int) -> SimulatedSession:
        """Lock a project's row."""
        try:
            return SimulatedSession(self, project_id, known_version)
        except Broken as broken:
            raise refused(broken) from broken

    def head_of(self, row: Row, known_version: int) -> Head:
        """What a server reads of a row."""
        now, mistake = self.shared.world.seconds, self.shared.mistake
        version = row.version
        if mistake is Mistake.NO_VERSION_CHECK and known_version > 0:
            version = known_version
        is_newer = version != known_version
        courier = row.courier if row.courier_until > now else None
        if mistake is Mistake.CLAIMED_TWICE and courier != self.server_id:
            courier = None
        holder = row.clock_holder if row.clock_until > now else None
        last = row.last if version == row.version else ""
        bodies = (row.chosen, row.counters) if is_newer else (None, None)
        return Head(version, last, 0, courier, holder, False, *bodies)

    def read(self, row: Row, since: int) -> Changes:
        """The records that are newer than a version."""
        rows = [StoredRow(*key, body) for key, (version, body) in row.records.items() if version > since]
        return Changes(self.head_of(row, -1), rows)

    def changes(self, project_id: str, since: int) -> Changes | None:
        """What was written after a version, without a lock."""
        with self._asking():
            row = self.shared.rows.get(project_id)
            return self.read(row, since) if row is not None else None

    def head(self, project_id: str) -> Head | None:
        """The newest version of a project."""
        with self._asking():
            row = self.shared.rows.get(project_id)
            return self.head_of(row, row.version) if row is not None else None

    def add(self, written: SharedChanges) -> int:
        """Add a project."""
        with self._asking():
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
        version = row.version
        if self.shared.mistake is Mistake.ROW_WITHOUT_VERSION:
            version = 0
        for kind, item_id, body in written.rows:
            row.records[kind, item_id] = (version, body)
        self.put_claims(row, written.courier, written.clock_holder, written.due_in_seconds)
        part = written.part
        if self.shared.mistake is not Mistake.NO_ANSWER_STORED:
            row.requests[part.request_id, part.number] = (row.version, part.answer)
        return row.version

    def put_claims(
        self, row: Row, courier: str | None, clock_holder: str | None, due_in_seconds: float | None
    ) -> None:
        """Note who has claimed what."""
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
        """The version of a commit whose answer was lost."""
        row, part = self.shared.rows[written.identity.project_id], written.part
        for _ in range(3):
            try:
                with self.shared.statement(self):
                    known = row.requests.get((part.request_id, part.number))
                if known is None:
                    raise NotStored("the database", "it broke off", is_full=False)
                return known[0]
            except Broken:
                continue
        raise UnknownOutcome("the database", "it broke off", part.request_id)

    def has_commit(self, project_id: str, version: int, last: str) -> bool:
        """Whether there is such a commit: this database loses none."""
        return True

    def answer(self, project_id: str, request_id: str) -> str | None:
        """What was answered to a request that has happened."""
        with self._asking():
            requests = self.shared.rows[project_id].requests
            return next(
                (text for (each, _), (_, text) in requests.items() if each == request_id and text), None
            )

    def attend(self) -> list[str]:
        """Projects that somebody has to look after."""
        with self._asking():
            now, attended = self.shared.world.seconds, []
            for project_id, row in self.shared.rows.items():
                if row.attend_at is not None and row.attend_at <= now:
                    row.attend_at = now + CLAIM_SECONDS
                    attended.append(project_id)
            return attended

    def renew(self, project_id: str) -> None:
        """Renew what this server has claimed."""
        with self._asking():
            row, now = self.shared.rows[project_id], self.shared.world.seconds
            if row.courier == self.server_id:
                row.courier_until = now + CLAIM_SECONDS
            if row.clock_holder is not None and row.clock_holder.partition(":")[0] == self.server_id:
                row.clock_until = now + CLAIM_SECONDS
            row.attend_at = now + CLAIM_SECONDS

    def identity(self, name: str) -> Identity | None:
        """The project with this id."""
        row = self.shared.rows.get(name)
        return row.identity if row is not None else None

    def storage(self, identity: Identity, real: RealTime) -> SharedStorage:
        """The storage of a project."""
        return SharedStorage(self, identity, Replica(identity.project_id, self.server_id))

    @contextmanager
    def draw_ids(self, ids: Ids) -> Iterator[Ids]:
        """The identifiers of new projects."""
        yield self.shared.draw_ids()

    def remove(self, project_id: str, fixed_key: str | None) -> None:
        """Delete a project."""
        del self.shared.rows[project_id]

    def was_deleted(self, key_digest: str) -> bool:
        """Whether a deleted project had this key."""
        return False

    # What the simulation does not look at

    def read_newer_history(
        self, project_id: str, since: datetime | None
    ) -> tuple[list[HistoryRow], datetime]:
        """Nothing."""
        return [], self.real.wall_now()

    def write_histories(self, rows: Sequence[tuple[str, HistoryRow]]) -> None:
        """Do nothing."""

    def read_history(self, project_id: str, number_max: int) -> Sequence[HistoryRow]:
        """Nothing."""
        return []

    def put_events(self, events: Sequence[tuple[str, str, str]]) -> None:
        """Do nothing."""

    def watch(self, project_ids: Sequence[str]) -> None:
        """Do nothing."""
