"""A project in a database for any number of servers; the database serializes edits, and memory follows.

An edit starts by locking the row of its project. If the row is newer than this server's memory, the edit
first reads the newer records. Each record, even a deleted one, has the version of its last write.

A claim in the project's row determines its courier, the one server that sends webhooks, in order, for all
servers. An advance claims the clock in the same way. Claims expire if they are not renewed.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from threading import Lock
from typing import Final
from zlib import crc32

from payment_sandbox.orders.webhooks import TIMEOUT_SECONDS
from payment_sandbox.projects.caller import RequestCommit, SavedAnswer
from payment_sandbox.projects.clock import RealTime
from payment_sandbox.projects.edit import Edit
from payment_sandbox.projects.journal import EpochJournal, Record
from payment_sandbox.projects.project import DELETED, Project, ProjectReset, weakly
from payment_sandbox.projects.queued_deliveries import QueuedDelivery
from payment_sandbox.projects.store import ChangeSet, Counters, JournalRow
from payment_sandbox.storage.codec import NotStored
from payment_sandbox.storage.journal_rows import journal_row, read_records
from payment_sandbox.storage.rows import Row, RowChanges, RowStore
from payment_sandbox_company.following import Anchor, Replica, catch_up
from payment_sandbox_company.postgresql import Database
from payment_sandbox_company.project_rows import (
    CLAIM_SECONDS,
    JOB,
    LOST_VERSION,
    STOP_SUFFIX,
    Changes,
    Head,
    SharedChanges,
    commit_name,
    encode_job,
)

ATTEMPT_SECONDS_MAX: Final = TIMEOUT_SECONDS + 2.0  # with the connection to the receiver


NUMBERING_START: Final = datetime(2020, 1, 1, tzinfo=UTC)
SLOTS: Final = 1024


class RecordNumbers:
    """Numbers for records, increasing with time, and unique among servers."""

    def __init__(self, real: RealTime, server_id: str) -> None:
        self._real = real
        self._slot = crc32(server_id.encode()) % SLOTS
        self._newest = 0
        self._lock = Lock()

    def __iter__(self) -> "RecordNumbers":
        return self

    def __next__(self) -> int:
        now = (self._real.wall_now() - NUMBERING_START) // timedelta(microseconds=1)
        with self._lock:
            self._newest = max(self._newest + 1, now)
            return self._newest * SLOTS + self._slot


def flush_all(database: Database) -> None:
    """Write new journal records of all projects.

    Raises:
        NotStored: writing failed; the next call retries.
    """
    unflushed = database.unflushed
    histories, rows = [], []
    while unflushed:
        try:
            store, journal = unflushed.popitem()
        except KeyError:  # another thread has removed the last entry
            break
        project_id, records = store.replica.project_id, list(journal.take_unstored())
        histories.append((store, journal, records))
        rows += [(project_id, store.epoch_version, journal_row(record)) for record in records]
    try:
        database.write_history(rows)
    except NotStored:
        for store, journal, records in histories:
            journal.requeue(records)
            unflushed.setdefault(store, journal)
        raise


class SharedStore(RowStore):
    """A store that writes to the database, and commits in the project's open transaction."""

    is_shared = True
    database: Database

    def __init__(self, database: Database, replica: Replica, project: Project) -> None:
        super().__init__(database, project)
        self.replica = replica
        self.epoch_version = replica.epoch_version
        self._find_project = weakly(project)
        self._read_at: str | None = None  # when the journal was last read, by the database's clock
        self._committed: Edit | None = None  # the edit of the next commit

    @property
    def project(self) -> Project:
        """The project of the store; see ``weakly``."""
        return self._find_project()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Lock the project's row, and refresh memory from it.

        Raises:
            ProjectReset: the project was deleted.
            NotStored: the database does not answer in time.
        """
        replica, project = self.replica, self.project
        if not replica.version:  # a new project, not added yet
            yield
            return
        session = self.database.begin(replica.project_id, replica.version)
        try:
            if session.head is None:
                raise ProjectReset(DELETED)
            self._check_failover()
            catch_up(project, replica, session.head, session.changes)
            replica.update_own_hold(session.head)
            self.check_stop_request()
            replica.session = session
            yield
        finally:
            replica.session = None
            session.end()
            self._queue_webhooks(project)

    def follow(self, *, takes_over: bool = False) -> None:
        """Refresh memory from the database; with ``takes_over``, become the courier if there is none.

        Raises:
            ProjectReset: the project was deleted.
            NotStored: the database does not answer in time.
        """
        project = self.project
        if takes_over:
            with project.locked():
                self._claim_orphan(project)
            return
        with project.blocking_edits():
            changes = self.database.changes(self.replica.project_id, max(self.replica.version, 0))
            if changes is None:
                raise ProjectReset(DELETED)
            self._check_failover()
            catch_up(project, self.replica, changes.head, lambda since: self._read_changes(changes, since))
            self._queue_webhooks(project)

    @property
    def needs_courier(self) -> bool:
        """Whether webhooks are waiting and no server is the courier."""
        return bool(self.replica.jobs) and self.replica.courier is None

    def is_current(self, head: Head) -> bool:
        """Return whether memory has this version; update the claims from the head.

        The claims stay unchanged during an edit, which has locked the row and has newer claims.
        """
        replica = self.replica
        with self.project.try_blocking_edits() as is_free:
            if is_free:
                replica.update_claims(head)
        is_same_generation = replica.generation == self.database.generation
        return is_same_generation and (replica.version, replica.last) == (head.version, head.last)

    def check_stop_request(self) -> None:
        """Stop the advance on this server if another server has requested a stop."""
        replica = self.replica
        if replica.own_hold is not None and replica.clock_holder == f"{replica.own_hold}{STOP_SUFFIX}":
            replica.clock_holder = replica.own_hold
            project = self.project
            project.epoch.is_stopping |= not replica.releases_clock  # unless that advance has ended
            project.epoch.outbox.wake()

    def _check_failover(self) -> None:
        """Invalidate memory if the database, perhaps a promoted standby, lacks the last commit."""
        replica, generation = self.replica, self.database.generation
        if replica.generation == generation:
            return
        if replica.version > 0 and not self.database.has_commit(
            replica.project_id, replica.version, replica.last
        ):
            replica.version = LOST_VERSION
        replica.generation = generation

    def _claim_orphan(self, project: Project) -> None:
        """Claim the webhooks if no server has a valid claim, and release a stale hold of the clock."""
        replica, session = self.replica, self.replica.session
        if session is None or project.epoch.advance_log is not None:
            return
        if replica.jobs and replica.courier is None:
            replica.courier = self.database.server_id
        if self.is_hold_stale:
            replica.clock_holder, replica.own_hold, replica.releases_clock = None, None, False
        session.claim(replica.courier, replica.clock_holder, project.real_seconds_until_due())

    def find_answer(self, request_id: str) -> SavedAnswer | None:
        """Return any server's answer to an executed request without a key."""
        return self.database.answer(self.replica.project_id, request_id)

    def watch(self) -> None:
        """Read the newest events of all servers, for a new watcher."""
        self.database.watch({self.replica.project_id: self.project.feed})

    def _read_changes(self, read: Changes, since: int) -> Changes:
        if since > 0:
            return read
        return self.database.changes(self.replica.project_id, 0) or read

    @property
    def awaits_courier(self) -> bool:
        """Whether another server is sending the project's webhooks."""
        return bool(self.replica.jobs) and self.replica.courier not in (None, self.database.server_id)

    @property
    def is_hold_stale(self) -> bool:
        """Whether an advance on this server has ended, but its release of the clock is not stored."""
        replica = self.replica
        is_own = _server_of(replica.clock_holder) == replica.server_id
        return is_own and (replica.releases_clock or replica.clock_holder != replica.own_hold)

    def hold_clock(self) -> bool:
        """Claim the clock and the webhooks for an advance; return False if another server holds the clock."""
        replica, me = self.replica, self.database.server_id
        with self.project.locked():
            if replica.session is None or (replica.clock_holder is not None and not self.is_hold_stale):
                return False
            replica.hold_count += 1
            hold = f"{me}:{replica.hold_count}"
            courier = me if replica.courier in (None, me) else replica.courier
            replica.session.claim(courier, hold, None)
            replica.clock_holder = replica.own_hold = hold
            replica.courier, replica.releases_clock = courier, False
        return True

    def stop_advance(self) -> None:
        """Add a stop request to the claim on the clock, to be read by the server that holds the clock."""
        replica = self.replica
        with self.project.locked():
            if replica.session is not None and replica.clock_holder is not None:
                replica.session.claim(replica.courier, f"{replica.clock_holder}{STOP_SUFFIX}", None)

    def release_clock(self) -> None:
        """Release the clock with the next commit; a no-op after a reset."""
        if self.project.epoch.store is self:
            self.replica.releases_clock = True

    def _queue_webhooks(self, project: Project) -> None:
        """Queue the webhooks in this server's outbox if it is the courier."""
        replica = self.replica
        if replica.courier != self.database.server_id:
            replica.queued.clear()
            return
        for number, queued in list(replica.jobs.items()):
            if number not in replica.queued:
                replica.queued.add(number)
                project.put(project.epoch, queued)

    @property
    def is_clock_held(self) -> bool:
        """Whether another server is advancing the clock."""
        return self.replica.clock_holder is not None and self.replica.clock_holder != self.replica.own_hold

    def check_clock(self, *, is_advance: bool) -> None:
        """Refuse a step if this server has lost the clock because another server advances it.

        Raises:
            NotStored: the advance has lost the clock, and ends.
            ProjectReset: the step is a due event of a running clock, which the other server runs.
        """
        if is_advance and not self._holds_clock():
            problem = "this server was suspended, and another server has taken over the clock"
            raise NotStored("the clock", problem, is_full=False)
        if not is_advance and self.is_clock_held:
            raise ProjectReset("another server advances the clock")

    def _holds_clock(self) -> bool:
        return self.replica.own_hold is not None and self.replica.clock_holder == self.replica.own_hold

    def take(self, queued: QueuedDelivery) -> bool:
        """Take a webhook out of the outbox, if it is pending and this server is the courier.

        If another server advances the clock, that server becomes the courier here, between two attempts.
        Otherwise, the claim is renewed, so that no other server sends webhooks during the attempt.

        Raises:
            NotStored: the claim could not be renewed, or this server has paused since, so it may end
                during the attempt.
        """
        replica, me, session = self.replica, self.database.server_id, self.replica.session
        if not queued.job:
            return True
        if replica.courier != me or session is None:
            return False
        if self.is_clock_held:
            replica.courier = _server_of(replica.clock_holder)
        monotonic_seconds = self.database.real.monotonic_seconds
        before_seconds = monotonic_seconds()
        session.claim(replica.courier, replica.clock_holder, None)
        if monotonic_seconds() - before_seconds > CLAIM_SECONDS - ATTEMPT_SECONDS_MAX:
            raise NotStored("the claim on the webhooks", "this server was suspended", is_full=False)
        return replica.courier == me and queued.job in replica.jobs

    def is_taken(self, queued: QueuedDelivery) -> bool:
        """Return whether no server has recorded the response to the delivery yet."""
        return not queued.job or queued.job in self.replica.jobs

    @property
    def is_claimed(self) -> bool:
        """Whether this server has a claim on the project."""
        return self.replica.own_hold is not None or self.replica.courier == self.database.server_id

    def share(self, journal: EpochJournal) -> None:
        """Connect a journal to the records that other servers write to it, with unique record numbers."""
        numbers = RecordNumbers(self.database.real, self.database.server_id)
        journal.share(numbers, self._read_newer_records, self._schedule_flush)

    def _schedule_flush(self, journal: EpochJournal) -> None:
        """Schedule the new journal records, and watched events, for publication to other servers."""
        self.database.unflushed[self] = journal

    def save_journal_rows(self, rows: Sequence[JournalRow]) -> None:
        """Write records of the journal."""
        self.database.write_history([(self.replica.project_id, self.epoch_version, row) for row in rows])

    def _read_newer_records(self) -> Iterator[Record]:
        project_id = self.identity.project_id
        if not self.replica.version:  # a new project, not added yet
            return iter(())
        rows, self._read_at = self.database.read_newer_history(project_id, self._read_at)
        return read_records(project_id, rows)

    def has_jobs(self) -> bool:
        """Return whether any server has webhooks to send."""
        return bool(self.replica.jobs)

    def complete(self, change: ChangeSet, edit: Edit) -> ChangeSet:
        """Number the webhooks to send, as jobs for the courier, and note what other servers get besides."""
        to_send = edit.epoch.webhooks_to_send(change.deliveries) if self.is_new else edit.to_send
        edit.to_send = [
            queued._replace(job=number) for number, queued in enumerate(to_send, edit.sequence + 1)
        ]
        edit.sequence += len(edit.to_send)
        self._committed = edit
        return change

    @property
    def _edit(self) -> Edit:
        assert self._committed is not None, "each commit of a shared store completes its edit first"
        return self._committed

    def write(self, change: ChangeSet, row_changes: RowChanges) -> None:
        """Commit a change set in the project's transaction."""
        replica, shared = self.replica, self._shared_changes(change, row_changes)
        replica.version = (
            self.database.add(shared) if replica.session is None else replica.session.commit(shared)
        )
        self._update_replica(shared)
        self._committed = None

    def _update_replica(self, row_changes: SharedChanges) -> None:
        replica = self.replica
        if row_changes.replaces_all:
            self.epoch_version = replica.epoch_version = replica.version
            replica.jobs.clear()
            replica.queued.clear()
        replica.jobs |= {queued.job: queued for queued in self._edit.to_send}
        for number in self._edit.finished_jobs:
            replica.jobs.pop(number, None)
        replica.last = commit_name(row_changes.part)
        replica.courier, replica.clock_holder = row_changes.courier, row_changes.clock_holder
        if row_changes.clock_holder != replica.own_hold:  # ignore the flag, which may be set during the write
            replica.own_hold, replica.releases_clock = None, False
        if row_changes.chosen is not None:
            replica.chosen = row_changes.chosen

    def _shared_changes(self, change: ChangeSet, row_changes: RowChanges) -> SharedChanges:
        replica, edit = self.replica, self._edit
        releases_clock = replica.releases_clock and replica.clock_holder == replica.own_hold
        jobs = [Row(JOB, str(queued.job), encode_job(queued)) for queued in edit.to_send]
        jobs += [Row(JOB, str(number), None) for number in edit.finished_jobs]
        return SharedChanges(
            **{**vars(row_changes), "rows": [*row_changes.rows, *jobs]},
            part=edit.part or RequestCommit(token_hex(8), 1),
            courier=self._choose_courier(edit, releases_clock=releases_clock),
            clock_holder=None if releases_clock or self.is_new else replica.clock_holder,
            due_in_seconds=edit.due_in_seconds(change.dues),
            unused_seconds_max=edit.state.settings.idle_seconds_max,
        )

    def _choose_courier(self, edit: Edit, *, releases_clock: bool) -> str | None:
        """Return the courier after a commit: the current one, or this server if webhooks wait."""
        replica, me, finished = self.replica, self.database.server_id, set(edit.finished_jobs)
        if replica.courier not in (None, me) and not self.is_new:
            return replica.courier
        if self.is_clock_held and not self.is_new:  # an advance on another server sends everything
            return self._courier_of_advance(edit)
        known = set() if self.is_new else set(replica.jobs)
        holds_clock = self._holds_clock() and not releases_clock
        return me if holds_clock or known.union(job.job for job in edit.to_send) - finished else None

    def _courier_of_advance(self, edit: Edit) -> str | None:
        """Return the server that is advancing the clock, or this server during an attempt."""
        replica, me = self.replica, self.database.server_id
        return me if replica.courier == me and not edit.finished_jobs else _server_of(replica.clock_holder)

    def clock_anchor(self, change: ChangeSet, counters: Counters) -> tuple[datetime, datetime]:
        """Return the clock's anchor: a clock time, and the corresponding real time."""
        clock, real, anchor = self._edit.state.clock, self.real, self.replica.anchor
        if anchor is None or anchor.clock is not clock:
            passed = timedelta(seconds=real.monotonic_seconds() - clock.anchor_seconds)
            anchor = self.replica.anchor = Anchor(clock, clock.anchor, real.wall_now() - passed)
        return anchor.at, anchor.real_at


def _server_of(hold: str | None) -> str | None:
    return hold.partition(":")[0] if hold is not None else None
