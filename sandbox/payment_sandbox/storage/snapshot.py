"""Saves a project's whole state as one document, and restores it."""

from datetime import datetime
from typing import Any, NamedTuple

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.kernel.timeline import Due, Timeline
from payment_sandbox.orders.commands import AttemptDelivery
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.orders.webhooks import DeliveryState
from payment_sandbox.projects.clock import RUNNING
from payment_sandbox.projects.delivery_queue import QueuedDelivery
from payment_sandbox.projects.epoch import Epoch, State
from payment_sandbox.projects.faults import Faults
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.settings import Settings, read_settings
from payment_sandbox.projects.store import ChangeSet
from payment_sandbox.scenarios.loader import load_scenario
from payment_sandbox.storage.codec import decode, encode
from payment_sandbox.storage.format import FORMAT, AgendaEntry, Snapshot
from payment_sandbox.storage.validation import refuse_inconsistent


class Checked(NamedTuple):
    """A consistent snapshot, with its state and its records."""

    snapshot: Snapshot
    state: State
    change: ChangeSet


def snapshot_of(project: Project) -> dict[str, Any]:
    """The project's state as plain data (CTL-10)."""
    return dict(encode(_taken(project)))


def snapshot_parts(project: Project) -> dict[str, Any]:
    """The same, with iterators instead of lists: a project may have a lot of records."""
    parts = _taken(project)._asdict()
    return {
        name: map(encode, value) if type(value) is tuple else encode(value) for name, value in parts.items()
    }


def _taken(project: Project) -> Snapshot:
    """The project's state; commands that failed are put back on the agenda: another server may run them."""
    with project.exclusively() as epoch:  # records are immutable, so only the references are taken here
        store = epoch.store
        dues = [*(aside.due for aside in epoch.set_aside.values()), *epoch.timeline]
        orders = tuple(epoch.find_order(order_id) for order_id in store.order_ids())
        records = (tuple(store.credentials()), tuple(store.qr_requests()), tuple(store.deliveries()))
        counters = epoch.counters(epoch.state, epoch.ids, epoch.timeline.sequence, epoch.now())
        chosen = epoch.state.chosen
    credentials, qr_requests, deliveries = records
    return Snapshot(
        format=FORMAT,
        **{**chosen._asdict(), "scenario": dict(chosen.scenario), "faults": dict(chosen.faults)},
        **counters._asdict(),
        agenda=tuple(AgendaEntry(due.at, due.sequence, due.item) for due in sorted(dues)),
        orders=orders,
        credentials=credentials,
        qr_requests=qr_requests,
        deliveries=deliveries,
    )


def restore(project: Project, document: Any) -> None:
    """Restore a snapshot; the project keeps its own ids and key (CTL-10).

    Raises:
        Invalid: the document is not a snapshot, or is inconsistent; nothing changes (CTL-11).
    """
    checked = _checked(project, document)
    before = project.epoch
    is_fresh = not before.number and not before.store.order_ids()
    # A fresh project continues exactly as before; one with its own history must not repeat its ETags.
    number = checked.snapshot.epoch if is_fresh else max(before.number, checked.snapshot.epoch) + 1
    epoch = _epoch(project, checked, number)
    project.replace_epoch(epoch, checked.change)
    send_owed(project)


def resume(project: Project, document: Any, real_at: datetime | None) -> None:
    """Restore the state of a state file; a running clock continues from ``real_at``, when it was saved.

    No webhook is sent before ``send_owed``.

    Raises:
        Invalid: the document is inconsistent.
    """
    checked = _checked(project, document)
    epoch = _epoch(project, checked, checked.snapshot.epoch)
    clock = epoch.state.clock
    if clock.running and real_at is not None:
        passed_seconds = max((project.services.real.wall_now() - real_at).total_seconds(), 0.0)
        epoch.state = epoch.state._replace(clock=clock.ahead_by(passed_seconds))
    epoch.store.load(checked.change)
    project.adopt(epoch)


def send_owed(project: Project) -> None:
    """Send the webhooks that were still to be sent, and wake the project for what is due."""
    epoch = project.epoch
    # A pending webhook that is neither on the agenda nor waiting for another one was under way.
    later = {due.item.delivery_id for due in epoch.timeline if isinstance(due.item, AttemptDelivery)}
    later |= set(epoch.state.swapped)
    for delivery in epoch.store.deliveries():
        if delivery.state is DeliveryState.PENDING and delivery.id not in later:
            project.put(epoch, QueuedDelivery(delivery.id, delivery.order_id))
    project.services.wake(project)


def _checked(project: Project, document: Any) -> Checked:
    snapshot: Snapshot = decode(Snapshot, document, "state")
    if snapshot.format != FORMAT:
        raise Invalid([Violation("state.format", f"must be {FORMAT!r}", [FORMAT])])
    settings = read_settings(snapshot.settings, Settings(), "state.settings")
    scenario = load_scenario(snapshot.scenario, settings.method_names)
    refuse_inconsistent(snapshot, len(scenario.rules))
    clock = project.epoch.state.clock.set(
        snapshot.now, running=snapshot.clock_mode == RUNNING, rate=float(snapshot.clock_rate)
    )
    state = State.first(settings, clock).with_scenario(scenario)
    state = state._replace(
        scenario_faults=state.scenario_faults.used(snapshot.scenario_faults),
        faults=Faults.read(snapshot.faults).used(snapshot.fault_uses),
        rule_uses=dict(snapshot.rule_uses),
        swapped=snapshot.swapped,
    )
    change = ChangeSet(
        {order.id: order for order in snapshot.orders},
        snapshot.credentials,
        snapshot.qr_requests,
        snapshot.deliveries,
        tuple(Due(entry.at, entry.sequence, entry.command) for entry in snapshot.agenda),
    )
    return Checked(snapshot, state, change)


def _epoch(project: Project, checked: Checked, number: int) -> Epoch:
    """An epoch with the state of the snapshot; its first commit adds the records."""
    snapshot = checked.snapshot
    epoch = project.fresh_epoch(number, checked.state.base_settings)
    epoch.state = checked.state
    epoch.timeline = Timeline(snapshot.now, snapshot.sequence, checked.change.dues)
    epoch.ids = Ids(snapshot.seed, snapshot.id_counts, snapshot.id_series)
    epoch.store.deliveries_dropped = snapshot.deliveries_dropped
    epoch.orders_created = len(snapshot.orders)
    return epoch
