"""A project in a database that any number of servers write: the database orders them, memory follows it.

An edit begins by locking the row of its project. If that is newer than this server's memory, the records
that were written since are read first. Each record carries the version that wrote it, deleted ones included.

Who sends webhooks is a claim in the project's row: one server at a time is its courier, and sends what all
servers have queued, in order. An advance claims the clock in the same way. Claims run out by themselves.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from threading import Event, Lock
from typing import Any, Final
from zlib import crc32

from payment_sandbox.projects.calling import Part
from payment_sandbox.projects.clock import RealTime
from payment_sandbox.projects.identity import Identity
from payment_sandbox.projects.journal import Journal, Record
from payment_sandbox.projects.outbox import QueuedDelivery
from payment_sandbox.projects.project import Project, ProjectReset
from payment_sandbox.projects.store import ChangeSet, Counters, ForOthers, Storage
from payment_sandbox.storage.codec import NotStored
from payment_sandbox.storage.history import history_row, read_records
from payment_sandbox.storage.rows import Row, RowChanges, RowStore
from payment_sandbox_company.following import bring_up
from payment_sandbox_company.places import (
    JOB,
    LOST,
    STOPS,
    Anchor,
    Changes,
    Head,
    Place,
    SharedDatabase,
    SharedWritten,
    job_body,
    last_of,
)

WRITTEN_SECONDS: Final = 0.05
GONE: Final = "the project was deleted in the meantime"


class SharedStorage(Storage):
    """Creates the stores of one project, one per epoch; they share its place."""

    def __init__(self, database: SharedDatabase, identity: Identity, place: Place) -> None:
        self.place = place
        self._database = database
        self._identity = identity

    def store(self) -> "SharedStore":
        """An empty store; its first commit deletes what an earlier epoch left."""
        return SharedStore(self._database, self._identity, self.place)

    @contextmanager
    def transaction(self, project: Any) -> Iterator[None]:
        """Lock the project's row, and bring memory up to it.

        Raises:
            ProjectReset: the project was deleted.
            NotStored: the database does not answer in time.
        """
        place = self.place
        if not place.version:  # it is about to be added
            yield
            return
        session = self._database.begin(place.project_id, place.version)
        try:
            if session.head is None:
                raise ProjectReset(GONE)
            self._check_line()
            bring_up(project, place, session.head, session.changes)
            place.note_own(session.head)
            self.note_stop(project)
            place.session = session
            yield
        finally:
            if place.leaves and place.courier == self._database.server_id:
                place.courier = None
                session.claim(None, place.clock_holder, project.real_seconds_until_due())
            place.session, place.leaves = None, False
            session.end()
            self._carry(project)

    def take_over(self, project: Any) -> None:
        """Bring memory up to the database, and become the courier if there is none.

        Raises:
            ProjectReset: the project was deleted.
            NotStored: the database does not answer in time.
        """
        with project.locked():
            self._attend(project)

    def follow(self, project: Project) -> None:
        """Bring memory up to the database.

        Raises:
            ProjectReset: the project was deleted.
            NotStored: the database does not answer in time.
        """
        with project.exclusively():
            changes = self._database.changes(self.place.project_id, max(self.place.version, 0))
            if changes is None:
                raise ProjectReset(GONE)
            self._check_line()
            bring_up(project, self.place, changes.head, lambda since: self._changes(changes, since))
            self._carry(project)

    @property
    def wants_courier(self) -> bool:
        """Whether there is something to send, and nobody sends it."""
        return bool(self.place.jobs) and self.place.courier is None

    def is_current(self, project: Project, head: Head) -> bool:
        """Whether memory has this version; notes who has claimed what.

        It does not note that during an edit, which has locked the row and knows better.
        """
        place = self.place
        with project.unless_edited() as is_free:
            if is_free:
                place.note(head)
        is_same_line = place.generation == self._database.generation
        return is_same_line and (place.version, place.last) == (head.version, head.last)

    def note_stop(self, project: Any) -> None:
        """Stop the advance on this server if somebody has asked for that at another one."""
        place = self.place
        if place.own_hold is not None and place.clock_holder == f"{place.own_hold}{STOPS}":
            place.clock_holder = place.own_hold
            project.epoch.is_stopping |= not place.lets_clock_go  # or it was meant for one that has ended
            project.epoch.outbox.wake()

    def _check_line(self) -> None:
        """Give up what is in memory if the database lacks the commit that made it, as a standby may."""
        place, generation = self.place, self._database.generation
        if place.generation == generation:
            return
        if place.version > 0 and not self._database.has_commit(place.project_id, place.version, place.last):
            place.version = LOST
        place.generation = generation

    def _attend(self, project: Project) -> None:
        """Claim what nobody has claimed, or whose claim has run out."""
        place, session = self.place, self.place.session
        if session is None or project.epoch.advance_log is not None:
            return
        if place.jobs and place.courier is None:
            place.courier = self._database.server_id
        if self.is_hold_over:
            place.clock_holder, place.own_hold, place.lets_clock_go = None, None, False
        session.claim(place.courier, place.clock_holder, project.real_seconds_until_due())

    def answer(self, project: Any, request_id: str) -> str | None:
        """What any server has answered to a request."""
        return self._database.answer(self.place.project_id, request_id)

    def flush(self, project: Any) -> None:
        """Let other servers know soon what the journal has got, and the events if one of them watches."""
        self._database.unflushed[self.place.project_id] = project

    def watch(self, project: Any) -> None:
        """Let other servers put events."""
        self._database.watch([self.place.project_id])
        self.place.is_watched = True

    def _changes(self, read: Changes, since: int) -> Changes:
        if since > 0:
            return read
        return self._database.changes(self.place.project_id, 0) or read

    @property
    def awaits_courier(self) -> bool:
        """Whether another server sends webhooks of the project just now."""
        return bool(self.place.jobs) and self.place.courier not in (None, self._database.server_id)

    @property
    def is_hold_over(self) -> bool:
        """Whether an advance here has ended, and could not store that."""
        place = self.place
        is_own = _server_of(place.clock_holder) == place.server_id
        return is_own and (place.lets_clock_go or place.clock_holder != place.own_hold)

    def hold_clock(self, project: Any) -> bool:
        """Claim the clock for an advance, which also sends the webhooks."""
        place, me = self.place, self._database.server_id
        with project.locked():
            if place.session is None or (place.clock_holder is not None and not self.is_hold_over):
                return False
            place.holds += 1
            hold = f"{me}:{place.holds}"
            courier = me if place.courier in (None, me) else place.courier
            place.session.claim(courier, hold, None)
            place.clock_holder = place.own_hold = hold
            place.courier, place.lets_clock_go = courier, False
        return True

    def stop_advance(self, project: Any) -> None:
        """Mark the claim of the clock, which the server that has it will see."""
        place = self.place
        with project.locked():
            if place.session is not None and place.clock_holder is not None:
                place.session.claim(place.courier, f"{place.clock_holder}{STOPS}", None)

    def release_clock(self) -> None:
        """Release the clock with the next commit."""
        self.place.lets_clock_go = True

    def _carry(self, project: Project) -> None:
        """Put what this server is to send into its outbox."""
        place = self.place
        if place.courier != self._database.server_id:
            place.queued.clear()
            return
        for number, queued in list(place.jobs.items()):
            if number not in place.queued:
                place.queued.add(number)
                project.put(project.epoch, queued)


BEGAN: Final = datetime(2020, 1, 1, tzinfo=UTC)
SLOTS: Final = 1024


class Numbers:
    """Numbers for records that grow with time, and that no other server draws."""

    def __init__(self, real: RealTime, server_id: str) -> None:
        self._real = real
        self._slot = crc32(server_id.encode()) % SLOTS
        self._newest = 0
        self._lock = Lock()

    def __iter__(self) -> "Numbers":
        return self

    def __next__(self) -> int:
        now = (self._real.wall_now() - BEGAN) // timedelta(microseconds=1)
        with self._lock:
            self._newest = max(self._newest + 1, now)
            return self._newest * SLOTS + self._slot


def flush_all(database: SharedDatabase) -> None:
    """Write what the journals of all projects have got since the last call, and their events.

    Raises:
        NotStored: the database does not take them; the next call tries again.
    """
    waiting = database.unflushed
    histories, shown = [], []
    while waiting:
        try:
            project_id, project = waiting.popitem()
        except KeyError:  # another thread was faster
            break
        records = list(project.epoch.journal.take_unstored())
        histories.append((project, records))
        shown += [(project_id, *event) for event in _outbound(project)]
    rows = [(project.project_id, row) for project, records in histories for row in map(history_row, records)]
    try:
        database.write_histories(rows)
    except NotStored:
        for project, records in histories:
            project.epoch.journal.requeue(records)
            waiting[project.project_id] = project
        raise
    if shown:
        with suppress(NotStored):  # watchers see the next ones
            database.put_events(shown)


def _outbound(project: Project) -> list[tuple[str, str]]:
    """The events that other servers want to see: kind and data."""
    events = project.events
    taken = []
    with suppress(IndexError):
        while events.outbound:
            taken.append(events.outbound.popleft())
    storage = project.storage
    if not isinstance(storage, SharedStorage) or not storage.place.is_watched:
        return []
    return [
        (kind, json.dumps(events.masking.record(dict(data if build is None else build()))))
        for kind, data, build in taken
    ]


class SharedStore(RowStore):
    """Writes to the database; a commit belongs to the transaction that its project has begun."""

    is_shared = True
    database: SharedDatabase

    def __init__(self, database: SharedDatabase, identity: Identity, place: Place) -> None:
        super().__init__(database, identity, database.real)
        self.place = place
        self._read_at: datetime | None = None  # the journal

    @property
    def is_clock_held(self) -> bool:
        """Whether another server advances the clock."""
        return self.place.clock_holder is not None and self.place.clock_holder != self.place.own_hold

    def holds_clock(self) -> bool:
        """Whether the advance on this server still has the clock."""
        return self.place.own_hold is not None and self.place.clock_holder == self.place.own_hold

    def carries(self, queued: QueuedDelivery) -> bool:
        """Whether this server is its courier, and it was not sent yet.

        An advance on another server sends what is left; that begins here, between two attempts.
        """
        place, me = self.place, self.database.server_id
        if not queued.job:
            return True
        if place.courier == me and self.is_clock_held and place.session is not None:
            place.courier = _server_of(place.clock_holder)
            place.session.claim(place.courier, place.clock_holder, None)
        return place.courier == me and queued.job in place.jobs

    def is_pending(self, queued: QueuedDelivery) -> bool:
        """Whether no server has sent it, and recorded the answer."""
        return not queued.job or queued.job in self.place.jobs

    @property
    def is_claimed(self) -> bool:
        """Whether this server has claimed something of the project."""
        return self.place.own_hold is not None or self.place.courier == self.database.server_id

    def share(self, journal: Journal) -> None:
        """Let a journal draw numbers of its own, and read what other servers write to it."""
        journal.share(Numbers(self.database.real, self.database.server_id), self._newer_records)

    def _newer_records(self) -> Iterator[Record]:
        project_id = self.identity.project_id
        if not self.place.version:  # it is about to be added
            return iter(())
        Event().wait(WRITTEN_SECONDS)  # other servers write a moment after their answers
        rows, self._read_at = self.database.newer_history(project_id, self._read_at)
        return read_records(project_id, rows)

    def stop_sending(self) -> None:
        """Be the courier no longer when this transaction ends."""
        self.place.leaves = True

    def has_jobs(self) -> bool:
        """Whether any server has something to send."""
        return bool(self.place.jobs)

    def write(self, change: ChangeSet, written: RowChanges) -> None:
        """Commit it in the project's transaction."""
        place, shared = self.place, self._shared(change, written)
        place.version = self.database.add(shared) if place.session is None else place.session.commit(shared)
        self._note(change, shared)

    def _note(self, change: ChangeSet, written: SharedWritten) -> None:
        place = self.place
        if written.replaces_all:
            place.jobs.clear()
            place.queued.clear()
        others = change.others
        assert others is not None, "the store is shared"
        place.jobs |= {queued.job: queued for queued in others.jobs}
        for number in others.finished_jobs:
            place.jobs.pop(number, None)
        place.last = last_of(written.part)
        place.courier, place.clock_holder = written.courier, written.clock_holder
        if written.clock_holder != place.own_hold:  # not the flag: it may be set while this is written
            place.own_hold, place.lets_clock_go = None, False
        if written.chosen is not None:
            place.chosen = written.chosen

    def _shared(self, change: ChangeSet, written: RowChanges) -> SharedWritten:
        place, others = self.place, change.others
        assert others is not None, "the store is shared"
        lets_go = place.lets_clock_go and place.clock_holder == place.own_hold
        jobs = [Row(JOB, str(queued.job), job_body(queued)) for queued in others.jobs]
        jobs += [Row(JOB, str(number), None) for number in others.finished_jobs]
        return SharedWritten(
            **{**vars(written), "rows": [*written.rows, *jobs]},
            part=others.part or Part(token_hex(8), 1),
            courier=self._courier(others, lets_go=lets_go),
            clock_holder=None if lets_go or self.is_new else place.clock_holder,
            due_in_seconds=others.due_in_seconds,
            unused_seconds_max=others.unused_seconds_max,
        )

    def _courier(self, others: ForOthers, *, lets_go: bool) -> str | None:
        """Who sends webhooks from now on: whoever does already, or this server if there are any."""
        place, me, finished = self.place, self.database.server_id, set(others.finished_jobs)
        if place.courier not in (None, me) and not self.is_new:
            return place.courier
        if self.is_clock_held and not self.is_new:  # an advance on another server sends everything
            return self._courier_of_advance(others)
        known = set() if self.is_new else set(place.jobs)
        holds_clock = self.holds_clock() and not lets_go
        return me if holds_clock or known.union(job.job for job in others.jobs) - finished else None

    def _courier_of_advance(self, others: ForOthers) -> str | None:
        """The server that advances the clock, unless an attempt is under way on this one."""
        place, me = self.place, self.database.server_id
        return me if place.courier == me and not others.finished_jobs else _server_of(place.clock_holder)

    def anchored(self, change: ChangeSet, counters: Counters) -> tuple[datetime, datetime]:
        """What the clock showed when it was set, and when that was."""
        assert change.others is not None, "the store is shared"
        clock, real, anchor = change.others.clock, self.real, self.place.anchor
        if anchor is None or anchor.clock is not clock:
            passed = timedelta(seconds=real.monotonic_seconds() - clock.anchor_seconds)
            anchor = self.place.anchor = Anchor(clock, clock.anchor, real.wall_now() - passed)
        return anchor.at, anchor.real_at


def _server_of(hold: str | None) -> str | None:
    return hold.partition(":")[0] if hold is not None else None
