"""Brings a project's memory up to what other servers have written to the database."""

import json
from collections.abc import Sequence
from typing import Any

from payment_sandbox.projects.clock import RUNNING, Clock
from payment_sandbox.projects.epoch import State
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.settings import stored_settings
from payment_sandbox.projects.store import Chosen
from payment_sandbox.storage.codec import FORMAT, StoredRecords, decode
from payment_sandbox.storage.rows import (
    DELIVERY,
    DUE,
    KINDS,
    Row,
    RowStore,
    StoredCounters,
    StoredProject,
    read_record,
)
from payment_sandbox.storage.snapshot import chosen_state, put_counters, resume
from payment_sandbox_company.places import JOB, Anchor, Head, Place, read_job


def bring_up(project: Project, place: Place, head: Head, changes: Any) -> None:
    """Bring a project's memory up to its row; ``changes`` reads what was written since a version."""
    place.note(head)
    if head.version == place.version:
        place.last = head.last
        return
    counters = _counters(head) if head.counters is not None else None
    is_followed = place.version > 0 and head.complete_from <= place.version < head.version
    if not is_followed or counters is None or counters.epoch != project.epoch.number:
        read = changes(0)
        _reload(project, place, read.head, read.rows)
        return
    read = changes(place.version)
    epoch, is_chosen = project.epoch, head.chosen != place.chosen
    state = _chosen_state(head, epoch.state.clock) if is_chosen else epoch.state
    _take_in(project, place, read.rows, state.chosen if is_chosen else None)
    _take_counters(project, place, state, counters)
    place.chosen, place.version, place.last = head.chosen, head.version, head.last


def _chosen_state(head: Head, clock: Clock) -> State:
    chosen: Chosen = decode(Chosen, json.loads(head.chosen or "{}"), "chosen")
    return chosen_state(chosen, stored_settings(chosen.settings, "settings"), clock)


def _reload(project: Project, place: Place, head: Head, rows: Sequence[Row]) -> None:
    """Load a whole epoch."""
    place.jobs.clear()
    place.queued.clear()
    for kind, item_id, body in rows:
        if kind == JOB:
            _take_job(place, int(item_id), body)
    records = [(kind, body) for kind, _, body in rows if kind != JOB and body is not None]
    stored = StoredProject.read("{}", head.chosen or "{}", head.counters or "{}", records)
    is_first = not place.version
    counters = _counters(head)
    resume(project, {"format": FORMAT, **stored.state}, counters.real_at)
    place.anchor = _anchor(project.epoch.state.clock, counters)
    project.epoch.timeline.move_to(counters.now)
    place.chosen, place.version, place.last = head.chosen, head.version, head.last
    if not is_first:
        project.events.publish("restored")


def _counters(head: Head) -> StoredCounters:
    counters: StoredCounters = decode(StoredCounters, json.loads(head.counters or "{}"), "counters")
    return counters


def _anchor(clock: Clock, counters: StoredCounters) -> Anchor:
    assert counters.anchor is not None, "servers that share a project write it"
    assert counters.real_at is not None, "and when that was"
    return Anchor(clock, counters.anchor, counters.real_at)


def _take_in(project: Project, place: Place, rows: Sequence[Row], chosen: Chosen | None) -> None:
    """Take the records in that other servers have written, and count them."""
    epoch, store = project.epoch, project.epoch.store
    records: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    gone: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for kind, item_id, body in rows:
        if kind == JOB:
            _take_job(place, int(item_id), body)
        elif body is not None:
            records[kind].append(read_record(kind, item_id, body))
        else:
            gone[kind].append(item_id)
    surplus = [item_id for item_id in gone[DELIVERY] if store.delivery(item_id) is not None]
    change = StoredRecords(**{kind: tuple(each) for kind, each in records.items()}).change()
    change = change._replace(finished=tuple(map(int, gone[DUE])), chosen=chosen)
    assert isinstance(store, RowStore), "it is shared"
    store.take_in(change, surplus)
    for due in change.dues:
        epoch.timeline.add(due)
    epoch.timeline.remove(change.finished)
    epoch.orders_created = len(store.order_ids())


def _take_job(place: Place, number: int, body: str | None) -> None:
    if body is None:
        place.jobs.pop(number, None)
    else:
        place.jobs[number] = read_job(number, body)


def _take_counters(project: Project, place: Place, state: State, counters: StoredCounters) -> None:
    """Take in clock and counters, and the state with the settings that were chosen last."""
    epoch, clock = project.epoch, project.epoch.state.clock
    anchor = _anchor(clock, counters)
    is_same = place.anchor is not None and place.anchor[1:] == anchor[1:]
    if not is_same or (clock.mode, clock.rate) != (counters.clock_mode, counters.clock_rate):
        passed_seconds = (project.services.real.wall_now() - anchor.real_at).total_seconds()
        clock = clock.set(anchor.at, running=counters.clock_mode == RUNNING, rate=counters.clock_rate)
        clock = clock.ahead_by(max(passed_seconds, 0.0))
        place.anchor = anchor._replace(clock=clock)
    put_counters(epoch, state._replace(clock=clock), counters)
    epoch.timeline.sequence = max(epoch.timeline.sequence, counters.sequence)
    epoch.timeline.move_to(counters.now)
