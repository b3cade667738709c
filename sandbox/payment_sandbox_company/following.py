"""A server's replica of a project's row, and its refreshing with the changes that other servers stored."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from payment_sandbox.projects.clock import RUNNING, ProjectClock
from payment_sandbox.projects.epoch import State
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.queued_deliveries import QueuedDelivery
from payment_sandbox.projects.settings import read_stored_settings
from payment_sandbox.projects.store import Configuration
from payment_sandbox.storage.codec import FORMAT, StoredRecords, decode, reading
from payment_sandbox.storage.rows import (
    AGENDA,
    ANSWER,
    DELIVERY,
    KINDS,
    Row,
    RowStore,
    StoredCounters,
    StoredProject,
    read_record,
)
from payment_sandbox.storage.snapshot import chosen_state, resume, set_counters
from payment_sandbox_company.postgresql import PostgresSession
from payment_sandbox_company.project_rows import JOB, LOST_VERSION, STOP_SUFFIX, Head, read_job


class Anchor(NamedTuple):
    """A reading of a project's clock, and the real time when it was read."""

    clock: ProjectClock
    at: datetime
    real_at: datetime


@dataclass(slots=True)
class Replica:
    """A server's replica of a project's row, with the server's own claims."""

    project_id: str
    server_id: str
    version: int = 0  # 0: not in the database yet
    last: str = ""  # the commit of this version
    epoch_version: int = 0  # the version that began the epoch
    chosen: str | None = None  # the last value read
    jobs: dict[int, QueuedDelivery] = field(default_factory=dict)  # oldest first
    queued: set[int] = field(default_factory=set)  # jobs in this server's outbox
    courier: str | None = None
    clock_holder: str | None = None
    own_hold: str | None = None  # this server's hold on the clock, during an advance
    releases_clock: bool = False  # whether the next commit releases the clock
    anchor: Anchor | None = None
    session: PostgresSession | None = None  # the transaction of the current edit
    generation: int = 0  # the database's generation at the last refresh
    hold_count: int = 0  # how many times this server has held the clock

    def update_claims(self, head: Head) -> None:
        """Copy the claims of a head."""
        self.courier, self.clock_holder = head.courier, head.clock_holder

    def update_own_hold(self, head: Head) -> None:
        """Update this server's own hold on the clock from a head read under the lock."""
        holder = (head.clock_holder or "").removesuffix(STOP_SUFFIX)
        if self.own_hold is not None and holder != self.own_hold:
            self.own_hold, self.releases_clock = None, False  # the claim has expired, or was released
        if self.own_hold is None and holder.partition(":")[0] == self.server_id:
            self.own_hold, self.releases_clock = holder, True  # claimed by a commit whose result was lost


def catch_up(project: Project, replica: Replica, head: Head, changes: Any) -> None:
    """Refresh a project in memory from its row; ``changes`` reads the changes since a version.

    Raises:
        DamagedProject: the row or a record cannot be read.
    """
    replica.update_claims(head)
    if head.version == replica.version:
        replica.last = head.last
        return
    with reading(project.project_id):
        _read_newer_version(project, replica, head, changes)
    project.events.nudge()


def _read_newer_version(project: Project, replica: Replica, head: Head, changes: Any) -> None:
    is_same_epoch = head.epoch_version == replica.epoch_version and head.counters is not None
    is_complete = replica.version > 0 and head.complete_from <= replica.version < head.version
    if not (is_same_epoch and is_complete):
        read = changes(0)
        _reload(project, replica, read.head, read.rows)
        return
    counters, read = _decode_counters(head), changes(replica.version)
    epoch, is_chosen = project.epoch, head.chosen != replica.chosen
    state = _chosen_state(head, epoch.state.clock) if is_chosen else epoch.state
    _apply_records(project, replica, read.rows, state.chosen if is_chosen else None)
    _apply_counters(project, replica, state, counters)
    replica.chosen, replica.version, replica.last = head.chosen, head.version, head.last


def _chosen_state(head: Head, clock: ProjectClock) -> State:
    chosen: Configuration = decode(Configuration, json.loads(head.chosen or "{}"), "chosen")
    return chosen_state(chosen, read_stored_settings(chosen.settings, "settings"), clock)


def _reload(project: Project, replica: Replica, head: Head, rows: Sequence[Row]) -> None:
    """Reload a whole epoch."""
    is_first = not replica.version
    if not is_first:
        replica.version = LOST_VERSION  # until the reload has succeeded
    replica.jobs.clear()
    replica.queued.clear()
    replica.epoch_version = head.epoch_version
    for kind, item_id, body in rows:
        if kind == JOB:
            _apply_job(replica, int(item_id), body)
    records = [(kind, body) for kind, _, body in rows if kind != JOB and body is not None]
    stored = StoredProject.read("{}", head.chosen or "{}", head.counters or "{}", records)
    counters = _decode_counters(head)
    resume(project, {"format": FORMAT, **stored.state}, counters.real_at)
    replica.anchor = _create_anchor(project.epoch.state.clock, counters)
    project.epoch.timeline.move_to(counters.now)
    replica.chosen, replica.version, replica.last = head.chosen, head.version, head.last


def _decode_counters(head: Head) -> StoredCounters:
    counters: StoredCounters = decode(StoredCounters, json.loads(head.counters or "{}"), "counters")
    return counters


def _create_anchor(clock: ProjectClock, counters: StoredCounters) -> Anchor:
    assert counters.anchor is not None, "a shared store always writes the anchor"
    assert counters.real_at is not None, "a shared store always writes the real time of the anchor"
    return Anchor(clock, counters.anchor, counters.real_at)


def _apply_records(
    project: Project, replica: Replica, rows: Sequence[Row], chosen: Configuration | None
) -> None:
    """Apply records changed by other servers to memory."""
    epoch, store = project.epoch, project.epoch.store
    records: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    deleted: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for kind, item_id, body in rows:
        if kind == JOB:
            _apply_job(replica, int(item_id), body)
        elif body is not None:
            records[kind].append(read_record(kind, item_id, body))
        else:
            deleted[kind].append(item_id)
    surplus = [item_id for item_id in deleted[DELIVERY] if store.delivery(item_id) is not None]
    change = StoredRecords(**{kind: tuple(each) for kind, each in records.items()}).change()
    change = change._replace(
        finished_entries=tuple(map(int, deleted[AGENDA])),
        forgotten_answers=tuple(deleted[ANSWER]),
        chosen=chosen,
    )
    assert isinstance(store, RowStore), "a shared store stores rows"
    store.apply(change, surplus)
    for due in change.dues:
        epoch.timeline.add(due)
    epoch.timeline.remove(change.finished_entries)
    epoch.orders_created = len(store.order_ids())


def _apply_job(replica: Replica, number: int, body: str | None) -> None:
    if body is None:
        replica.jobs.pop(number, None)
    else:
        replica.jobs[number] = read_job(number, body)


def _apply_counters(project: Project, replica: Replica, state: State, counters: StoredCounters) -> None:
    """Apply the clock, the counters, and the state, which has the newest settings."""
    epoch, clock = project.epoch, project.epoch.state.clock
    anchor = _create_anchor(clock, counters)
    is_same = replica.anchor is not None and replica.anchor[1:] == anchor[1:]
    if not is_same or (clock.mode, clock.rate) != (counters.clock_mode, counters.clock_rate):
        elapsed_seconds = (project.services.real.wall_now() - anchor.real_at).total_seconds()
        clock = clock.set(anchor.at, running=counters.clock_mode == RUNNING, rate=counters.clock_rate)
        clock = clock.advanced_by(max(elapsed_seconds, 0.0))
        replica.anchor = anchor._replace(clock=clock)
    set_counters(epoch, state._replace(clock=clock), counters)
    epoch.timeline.sequence = max(epoch.timeline.sequence, counters.sequence)
    epoch.timeline.move_to(counters.now)
