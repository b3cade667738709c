"""A project's whole state as one document, and a project that goes on from such a document."""

from datetime import datetime
from typing import Any, Final, NamedTuple

from sandbox.kernel.ids import Ids
from sandbox.kernel.timeline import Due, Timeline
from sandbox.methods import NAMES
from sandbox.orders.commands import AttemptDelivery, Command
from sandbox.orders.deliveries import Delivery, DeliveryState
from sandbox.orders.order import Order
from sandbox.orders.qr import QrRequest
from sandbox.orders.refusals import Invalid, Violation
from sandbox.orders.statuses import ORDER_TRANSITIONS, TRANSACTION_TRANSITIONS
from sandbox.orders.transaction import Transaction
from sandbox.orders.vault import Credential
from sandbox.projects.clock import FROZEN, RATE_MAX, RUNNING
from sandbox.projects.codec import decode, encode
from sandbox.projects.faults import read_faults
from sandbox.projects.outbox import Errand
from sandbox.projects.project import Project
from sandbox.projects.settings import Settings, read_settings
from sandbox.projects.store import ChangeSet, MemoryStore
from sandbox.scenarios.loader import load_scenario

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


def take(project: Project) -> dict[str, Any]:
    """The project's state as plain data (CTL-10)."""
    with project.state_lock:
        store = project.store
        return dict(
            encode(
                Snapshot(
                    format=FORMAT,
                    now=project.now(),
                    clock_mode=project.clock.mode,
                    clock_rate=project.clock.rate,
                    settings=project.base_settings.as_mapping(),
                    scenario=dict(project.scenario.document),
                    rule_uses=tuple(project.rule_uses.items()),
                    scenario_faults=project.scenario_faults.uses,
                    faults=dict(project.faults.document),
                    fault_uses=project.faults.uses,
                    seed=project.ids.seed,
                    id_counts=dict(project.ids.counts),
                    resets=project.resets,
                    sequence=project.timeline.sequence,
                    agenda=tuple(AgendaEntry(due.at, due.sequence, due.item) for due in project.timeline),
                    orders=tuple(project.find_order(order_id) for order_id in store.order_ids()),
                    credentials=tuple(store.credentials()),
                    qr_requests=tuple(store.qr_requests()),
                    deliveries=tuple(store.deliveries()),
                    deliveries_dropped=store.deliveries_dropped,
                    swapped=tuple(project.swapped),
                )
            )
        )


def restore(project: Project, document: Any) -> None:
    """Go on from a snapshot, under the project's own ids and key (CTL-10).

    Raises:
        Invalid: the document is no snapshot, or no sound one; nothing changes (CTL-11).
    """
    snapshot: Snapshot = decode(Snapshot, document, "state")
    _refuse_unsound(snapshot)
    settings = read_settings(snapshot.settings, Settings(), "state.settings")
    scenario = load_scenario(snapshot.scenario, settings.method_names)
    read_settings(dict(scenario.settings), settings, "state.scenario.settings")
    faults = read_faults(snapshot.faults)
    store = _store(snapshot)
    with project.state_lock:
        is_fresh = not project.resets and not project.store.order_ids()
        project.begin_anew()
        project.base_settings = settings
        project.activate(scenario)
        project.rule_uses = dict(snapshot.rule_uses)
        project.scenario_faults.uses = snapshot.scenario_faults
        project.faults = faults
        faults.uses = snapshot.fault_uses
        project.store = store
        project.ids = Ids(snapshot.seed, snapshot.id_counts)
        # A fresh project goes on byte for byte; one with a past of its own must not repeat its ETags.
        project.resets = snapshot.resets if is_fresh else max(project.resets, snapshot.resets + 1)
        project.swapped = list(snapshot.swapped)
        entries = [Due(entry.at, entry.sequence, entry.command) for entry in snapshot.agenda]
        project.timeline = Timeline(snapshot.now, snapshot.sequence, entries)
        project.clock.set(
            snapshot.now, running=snapshot.clock_mode == RUNNING, rate=float(snapshot.clock_rate)
        )
    for errand in _on_their_way(snapshot):
        project.outbox.put(errand)
    project.feed.publish("restored")
    project.wake(project)


def _store(snapshot: Snapshot) -> MemoryStore:
    store = MemoryStore()
    store.commit(
        ChangeSet(
            orders={order.id: order for order in snapshot.orders},
            credentials=list(snapshot.credentials),
            qr_requests=list(snapshot.qr_requests),
            deliveries=list(snapshot.deliveries),
        )
    )
    store.deliveries_dropped = snapshot.deliveries_dropped
    return store


def _on_their_way(snapshot: Snapshot) -> list[Errand]:
    """Webhooks that were owed at once: pending, and neither on the agenda nor waiting for another."""
    later = {
        entry.command.delivery_id for entry in snapshot.agenda if isinstance(entry.command, AttemptDelivery)
    } | {errand.delivery_id for errand in snapshot.swapped}
    return [
        Errand(delivery.id)
        for delivery in snapshot.deliveries
        if delivery.state is DeliveryState.PENDING and delivery.id not in later
    ]


def _refuse_unsound(snapshot: Snapshot) -> None:
    """Types can be right and the books still wrong."""
    found = []
    if snapshot.format != FORMAT:
        found.append(Violation("state.format", f"must be {FORMAT!r}", [FORMAT]))
    if snapshot.clock_mode not in (RUNNING, FROZEN) or not 0 < snapshot.clock_rate <= RATE_MAX:
        found.append(Violation("state.clock_mode", "is no clock's mode and rate", [RUNNING, FROZEN]))
    if min(snapshot.id_counts.values(), default=0) < 0 or (
        snapshot.id_counts.get("order", 0) < len(snapshot.orders)
    ):
        found.append(Violation("state.id_counts", "would give the identifiers of orders that there are"))
    for index, order in enumerate(snapshot.orders):
        path = f"state.orders[{index}]"
        if order.status not in ORDER_TRANSITIONS:
            found.append(Violation(f"{path}.status", f"{order.status!r} is no status of an order"))
        found += [
            Violation(f"{path}.transactions", problem)
            for attempt in order.transactions
            if (problem := _unsound(attempt)) is not None
        ]
    if found:
        raise Invalid(found)


def _unsound(attempt: Transaction) -> str | None:
    if attempt.status not in TRANSACTION_TRANSITIONS:
        return f"{attempt.status!r} is no status of a transaction"
    if attempt.authorization is not None and attempt.authorization.remaining_cents < 0:
        return "more was taken than authorized"
    return None if attempt.method in NAMES else f"{attempt.method!r} is no payment method"
