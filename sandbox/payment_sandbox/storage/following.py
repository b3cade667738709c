"""Brings a project's memory up to what other servers have written to the database."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from payment_sandbox.projects.clock import RUNNING, Clock
from payment_sandbox.projects.epoch import State
from payment_sandbox.projects.outbox import QueuedDelivery
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.settings import stored_settings
from payment_sandbox.projects.store import Chosen, Counters
from payment_sandbox.storage.codec import FORMAT, StoredRecords, decode
from payment_sandbox.storage.places import JOB, Anchor, Head, Place
from payment_sandbox.storage.rows import (
    DELIVERY,
    DUE,
    KINDS,
    Row,
    RowStore,
    StoredProject,
    read_record,
)
from payment_sandbox.storage.snapshot import chosen_state, put_counters, resume


def _job(number: int, body: str) -> QueuedDelivery:
    data: dict[str, Any] = json.loads(body)
    if data["changed"] is None:
        del data["changed"]
    queued: QueuedDelivery = decode(QueuedDelivery, {**data, "job": number}, f"{JOB}.{number}")
    return queued


def bring_up(project: Project, place: Place, head: Head, changes: Any) -> None:
    """Bring a project's memory up to its row; ``changes`` reads what was written since a version."""
    place.note(head)
    if head.version == place.version:
        place.last = head.last
        return
    counters: dict[str, Any] = json.loads(head.counters or "{}")
    is_other_epoch = counters.get("epoch") != project.epoch.number
    if is_other_epoch or place.version <= 0 or not head.complete_from <= place.version < head.version:
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
    counters: dict[str, Any] = json.loads(head.counters or "{}")
    at, real_at = _taken_anchor(counters)
    records = [(kind, body) for kind, _, body in rows if kind != JOB and body is not None]
    stored = StoredProject.read("{}", head.chosen or "{}", json.dumps(counters), records)
    is_first = not place.version
    resume(project, {"format": FORMAT, **stored.state}, None)
    epoch = project.epoch
    clock = _clock(project, epoch.state.clock, at, real_at)
    epoch.state = epoch.state._replace(clock=clock)
    place.anchor = Anchor(clock, at, real_at)
    place.chosen, place.version, place.last = head.chosen, head.version, head.last
    if not is_first:
        project.events.publish("restored")


def _taken_anchor(counters: dict[str, Any]) -> tuple[datetime, datetime]:
    at: datetime = decode(datetime, counters.pop("anchor"), "anchor")
    real_at: datetime = decode(datetime, counters.pop("real_at"), "real_at")
    return at, real_at


def _clock(project: Project, clock: Clock, at: datetime, real_at: datetime) -> Clock:
    """A clock that shows what the clocks of all servers show."""
    passed_seconds = (project.services.real.wall_now() - real_at).total_seconds()
    return clock.set(at).ahead_by(max(passed_seconds, 0.0))


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
        place.jobs[number] = _job(number, body)


def _take_counters(project: Project, place: Place, state: State, data: dict[str, Any]) -> None:
    """Take in clock and counters, and the state with the settings that were chosen last."""
    epoch = project.epoch
    at, real_at = _taken_anchor(data)
    counters: Counters = decode(Counters, data, "counters")
    clock, anchor = epoch.state.clock, place.anchor
    is_same = anchor is not None and (anchor.at, anchor.real_at) == (at, real_at)
    if not is_same or (clock.mode, clock.rate) != (counters.clock_mode, counters.clock_rate):
        running = counters.clock_mode == RUNNING
        clock = _clock(project, clock.set(at, running=running, rate=counters.clock_rate), at, real_at)
        place.anchor = Anchor(clock, at, real_at)
    put_counters(epoch, state._replace(clock=clock), counters)
    epoch.timeline.sequence = max(epoch.timeline.sequence, counters.sequence)
    epoch.timeline.move_to(counters.now)
