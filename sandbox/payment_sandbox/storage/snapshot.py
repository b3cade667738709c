"""A project's whole state as one document, and a project that goes on from such a document."""

from datetime import datetime
from typing import Any, Final, NamedTuple

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.kernel.timeline import Due, Timeline
from payment_sandbox.orders.commands import AttemptDelivery, Command
from payment_sandbox.orders.deliveries import Delivery, DeliveryState
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.orders.vault import Credential
from payment_sandbox.projects.clock import RUNNING
from payment_sandbox.projects.faults import Faults, read_faults
from payment_sandbox.projects.kept import config_of, running_of
from payment_sandbox.projects.outbox import Errand
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.settings import Settings, read_settings
from payment_sandbox.projects.store import ChangeSet
from payment_sandbox.scenarios.loader import load_scenario
from payment_sandbox.scenarios.model import Scenario
from payment_sandbox.storage.codec import decode, encode
from payment_sandbox.storage.validation import refuse_unsound

FORMAT: Final = "payment-orders-sandbox/1"


class AgendaEntry(NamedTuple):
    """A command, when it is due, and its place among ties."""

    at: datetime
    sequence: int
    command: Command


class Snapshot(NamedTuple):
    """All that a project knows, but for its ids and its key."""

    format: str
    now: datetime
    clock_mode: str
    clock_rate: float
    settings: dict[str, Any]
    scenario: dict[str, Any]
    rule_uses: tuple[tuple[int, int], ...]
    scenario_faults: tuple[tuple[int, list[datetime]], ...]
    faults: dict[str, Any]
    fault_uses: tuple[tuple[int, list[datetime]], ...]
    seed: int
    id_counts: dict[str, int]
    resets: int
    sequence: int
    agenda: tuple[AgendaEntry, ...]
    orders: tuple[Order, ...]
    credentials: tuple[Credential, ...]
    qr_requests: tuple[QrRequest, ...]
    deliveries: tuple[Delivery, ...]
    deliveries_dropped: int
    swapped: tuple[Errand, ...]


class Sound(NamedTuple):
    """A snapshot that was looked through, and what its documents say."""

    snapshot: Snapshot
    settings: Settings
    scenario: Scenario
    faults: Faults
    timeline: Timeline[Command]


def take(project: Project) -> dict[str, Any]:
    """The project's state as plain data (CTL-10)."""
    with project.state_lock:
        store = project.store
        return dict(
            encode(
                Snapshot(
                    format=FORMAT,
                    **config_of(project),
                    **running_of(project),
                    agenda=tuple(AgendaEntry(due.at, due.sequence, due.item) for due in project.timeline),
                    orders=tuple(project.find_order(order_id) for order_id in store.order_ids()),
                    credentials=tuple(store.credentials()),
                    qr_requests=tuple(store.qr_requests()),
                    deliveries=tuple(store.deliveries()),
                )
            )
        )


def restore(project: Project, document: Any) -> None:
    """Go on from a snapshot, under the project's own ids and key (CTL-10).

    Raises:
        Invalid: the document is no snapshot, or no sound one; nothing changes (CTL-11).
    """
    sound = _read(document)
    with project.state_lock, project.storage.together():
        is_fresh = not project.resets and not project.store.order_ids()
        project.begin_anew()
        resets = project.resets
        _fill(project, sound)
        # A fresh project goes on byte for byte; one with a past of its own must not repeat its ETags.
        project.resets = project.resets if is_fresh else max(resets, project.resets + 1)
        project.keep(config=True)
    project.feed.publish("restored")
    go_on(project)


def resume(project: Project, document: Any, real_at: datetime | None) -> None:
    """Be as a state file says; a running clock went on since ``real_at``, when it was written.

    Nothing is sent before ``go_on``.

    Raises:
        Invalid: the document is no sound state.
    """
    sound = _read(document)
    with project.state_lock:
        _fill(project, sound)
        project.resets = sound.snapshot.resets
        if project.clock.running and real_at is not None:
            passed_seconds = max((project.real.wall_now() - real_at).total_seconds(), 0.0)
            project.clock.go_on(passed_seconds)


def go_on(project: Project) -> None:
    """Send the webhooks that were owed at once, and wake what is due."""
    with project.state_lock:
        # What is pending and neither on the agenda nor waiting for another was on its way.
        later = {due.item.delivery_id for due in project.timeline if isinstance(due.item, AttemptDelivery)}
        later |= {errand.delivery_id for errand in project.swapped}
        owed = [
            Errand(delivery.id)
            for delivery in project.store.deliveries()
            if delivery.state is DeliveryState.PENDING and delivery.id not in later
        ]
    for errand in owed:
        project.outbox.put(errand)
    project.wake(project)


def _read(document: Any) -> Sound:
    snapshot: Snapshot = decode(Snapshot, document, "state")
    if snapshot.format != FORMAT:
        raise Invalid([Violation("state.format", f"must be {FORMAT!r}", [FORMAT])])
    settings = read_settings(snapshot.settings, Settings(), "state.settings")
    scenario = load_scenario(snapshot.scenario, settings.method_names)
    read_settings(dict(scenario.settings), settings, "state.scenario.settings")
    refuse_unsound(snapshot, len(scenario.rules))
    entries = [Due(entry.at, entry.sequence, entry.command) for entry in snapshot.agenda]
    timeline = Timeline(snapshot.now, snapshot.sequence, entries)
    return Sound(snapshot, settings, scenario, read_faults(snapshot.faults), timeline)


def _fill(project: Project, sound: Sound) -> None:
    """Put everything into a project that has nothing yet; its state lock is held."""
    snapshot, faults = sound.snapshot, sound.faults
    project.base_settings = sound.settings
    project.activate(sound.scenario)
    project.rule_uses = dict(snapshot.rule_uses)
    project.scenario_faults.uses = snapshot.scenario_faults
    faults.uses = snapshot.fault_uses
    project.faults = faults
    project.ids = Ids(snapshot.seed, snapshot.id_counts)
    project.resets = snapshot.resets
    project.swapped = list(snapshot.swapped)
    project.timeline = sound.timeline
    project.clock.set(snapshot.now, running=snapshot.clock_mode == RUNNING, rate=float(snapshot.clock_rate))
    project.store.deliveries_dropped = snapshot.deliveries_dropped
    project.store.commit(
        ChangeSet(
            orders={order.id: order for order in snapshot.orders},
            credentials=list(snapshot.credentials),
            qr_requests=list(snapshot.qr_requests),
            deliveries=list(snapshot.deliveries),
            dues=list(sound.timeline),
        )
    )
