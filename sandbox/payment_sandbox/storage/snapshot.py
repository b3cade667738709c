"""Snapshots: the whole state of a project as one document."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from types import GeneratorType
from typing import Any, Final

from payment_sandbox.forms.fields import Label
from payment_sandbox.kernel.ids import Ids
from payment_sandbox.kernel.masking import Masking, is_code
from payment_sandbox.kernel.timeline import Timeline
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.orders.webhooks import UnsentWebhook
from payment_sandbox.projects.clock import FROZEN, RATE_MAX, RUNNING, ProjectClock
from payment_sandbox.projects.epoch import Epoch, State
from payment_sandbox.projects.faults import ProjectFaults
from payment_sandbox.projects.journal import EpochJournal, ReachedStatus, RecordedDecision
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.settings import SETTINGS, Settings, read_stored_settings
from payment_sandbox.projects.store import ChangeSet, Configuration, Counters
from payment_sandbox.scenarios.loader import load_scenario
from payment_sandbox.scenarios.model import TransactionDecision
from payment_sandbox.storage.codec import FORMAT, AgendaEntry, StoredRecords, decode, encode


@dataclass(frozen=True)
class FormattedDocument:
    """A document that begins with the name of its format."""

    format: str


@dataclass(frozen=True)
class StoredSnapshot(StoredRecords, Counters, Configuration, FormattedDocument):
    """The whole state of a project, except its ids and its key."""

    decisions: tuple[TransactionDecision, ...] = ()
    unsent: tuple[UnsentWebhook, ...] = ()


def capture(project: Project) -> Callable[[], dict[str, Any]]:
    """Take the project's state (CTL-10).

    The returned function encodes it, as often as it is called, as plain data with iterators for lists, which
    may be long.
    """
    return partial(_encode_parts, project.epoch.journal, _requeue_failed(project))


def _encode_parts(journal: EpochJournal, snapshot: StoredSnapshot) -> dict[str, Any]:
    settings = {name: snapshot.settings[name] for name in SETTINGS}
    decisions = journal.decisions(attempt for order in snapshot.orders for attempt in order.transactions)
    values = {**vars(snapshot), "settings": settings, "decisions": decisions}
    return {
        name: map(encode, value) if type(value) in (tuple, GeneratorType) else encode(value)
        for name, value in values.items()
    }


def _requeue_failed(project: Project) -> StoredSnapshot:
    """Return the project's state with failed commands requeued, because they may succeed elsewhere."""
    unsent = (  # a webhook sent meanwhile is in both lists
        UnsentWebhook(reached.order_id, reached.status, reached.before, reached.at)
        for reached in project.epoch.unsent_webhooks()
    )
    with project.blocking_edits() as epoch:  # records are immutable, so only the references are taken here
        store = epoch.store
        dues = [*(aside.due for aside in epoch.failed_commands.values()), *epoch.timeline]
        orders = tuple(epoch.find_order(order_id) for order_id in store.order_ids())
        records = (tuple(store.credentials()), tuple(store.qr_requests()), tuple(store.deliveries()))
        answers = tuple(store.answers())
        counters = epoch.counters(epoch.state, epoch.ids, epoch.timeline.sequence, epoch.now())
        chosen = epoch.state.chosen
    credentials, qr_requests, deliveries = records
    return StoredSnapshot(
        format=FORMAT,
        **vars(chosen),
        **vars(counters),
        agenda=tuple(AgendaEntry(*due) for due in sorted(dues)),
        orders=orders,
        credentials=credentials,
        qr_requests=qr_requests,
        deliveries=deliveries,
        answers=answers,
        unsent=tuple(webhook for webhook in unsent if store.order(webhook.order_id) is not None),
    )


def restore(project: Project, document: Any) -> None:
    """Restore a snapshot; the project keeps its own ids and key (CTL-10).

    A snapshot whose parts do not fit together is restored, too, and harms only this project.

    Raises:
        Invalid: the document is not a snapshot; nothing changes (CTL-11).
    """
    snapshot = _decode_snapshot(_mask(project.masking, document))
    before, change = project.epoch, snapshot.change()
    is_fresh = not before.number and not before.store.order_ids()
    # A fresh project continues exactly as before; one with its own history must not repeat its ETags.
    number = snapshot.epoch if is_fresh else max(before.number, snapshot.epoch) + 1
    settings = read_stored_settings(snapshot.settings, "state.settings")
    forward_to = before.state.base_settings.forward_to  # a listener stays connected
    settings = replace(settings, newer_settings={}, forward_to=forward_to)
    epoch = _create_epoch(project, snapshot, settings, change, number)
    decisions = [_recorded_decision(epoch.journal, decision) for decision in snapshot.decisions]
    now = project.services.real.wall_now()
    statuses = [
        ReachedStatus(epoch.journal.next_id("status"), order_id, None, None, status, at, now, None, before)
        for order_id, status, before, at in snapshot.unsent
    ]
    epoch.journal.restore([*decisions, *statuses])
    project.replace_epoch(epoch, change)
    project.send_pending()


def _recorded_decision(journal: EpochJournal, decision: TransactionDecision) -> RecordedDecision:
    explanation: Any = {key: value for key, value in decision.items() if key != "transaction_id"}
    if decision["rule"] is not None:  # older versions wrote "nearest": null for a decided attempt
        explanation.pop("nearest", None)
    return RecordedDecision(journal.next_id("decision"), decision["transaction_id"], explanation)


MERCHANT_TEXT_KEYS: Final = frozenset(
    ("sent", "client", "order_lines", "lines", "description", "merchant_order_id", "dynamic_descriptor")
)
"""Keys of the merchant's own text in a snapshot (A42)."""
SECRET_FREE_KEYS: Final = frozenset(("settings", "scenario", "faults"))
"""Fields that are refused if they contain a secret."""
ANSWER_KEYS: Final = frozenset(("answers",))
"""Answers to requests with a key, which a retry gets unchanged; they repeat the merchant's own text."""
URL_KEYS: Final = frozenset(("url", "return_url", "webhook_url"))
"""URLs, which are called unchanged."""
UNMASKED_KEYS: Final = MERCHANT_TEXT_KEYS | SECRET_FREE_KEYS | URL_KEYS | ANSWER_KEYS


def _mask(masking: Masking, document: Any, name: str = "") -> Any:
    """Mask secrets in a snapshot of any origin, as in the project's own records."""
    if name in UNMASKED_KEYS:
        return document
    if name in ("attempts", "decisions") or is_code(name, document):
        return masking.mask_record(document, name)
    if isinstance(document, dict):
        return {key: _mask(masking, value, key) for key, value in document.items()}
    if isinstance(document, list):
        return [_mask(masking, item) for item in document]
    return masking.mask_text(document) if isinstance(document, str) else document


def resume(project: Project, document: Any, real_at: datetime | None) -> None:
    """Restore the state of a state file; a running clock continues from ``real_at``, the time of the save.

    No webhook is sent before ``Project.send_pending``.

    Raises:
        Invalid: the document is not a snapshot.
    """
    snapshot = _decode_snapshot(document)
    change = snapshot.change()
    settings = read_stored_settings(snapshot.settings, "state.settings")
    epoch = _create_epoch(project, snapshot, settings, change, snapshot.epoch)
    clock = epoch.state.clock
    if clock.running and real_at is not None:
        elapsed_seconds = max((project.services.real.wall_now() - real_at).total_seconds(), 0.0)
        epoch.state = epoch.state._replace(clock=clock.advanced_by(elapsed_seconds))
    epoch.store.load(change._replace(chosen=epoch.state.chosen))
    project.adopt(epoch)


def _decode_snapshot(document: Any) -> StoredSnapshot:
    snapshot: StoredSnapshot = decode(StoredSnapshot, document, "state")
    if snapshot.format != FORMAT:
        raise Invalid([Violation("state.format", f"must be {FORMAT!r}", [FORMAT])])
    if snapshot.clock_mode not in (RUNNING, FROZEN):
        raise Invalid([Violation("state.clock_mode", f"must be {RUNNING} or {FROZEN}", [RUNNING, FROZEN])])
    if not 0 < snapshot.clock_rate <= RATE_MAX:  # the scheduler of all projects divides by it
        raise Invalid([Violation("state.clock_rate", f"must be above 0 and at most {RATE_MAX:g}")])
    return snapshot


def _chosen_state(chosen: Configuration, settings: Settings, clock: ProjectClock) -> State:
    """Return a state with the stored settings, scenario and faults, before any use of them."""
    document = chosen.scenario
    if isinstance(document.get("description"), str):  # earlier versions had no limit
        document = {**document, "description": document["description"][: Label.LENGTH_MAX]}
    scenario = load_scenario(document, settings.method_names)._replace(is_inline=chosen.is_inline)
    state = State.initial(settings, clock).with_scenario(scenario).note_unmatched(chosen.unmatched)
    return state._replace(faults=ProjectFaults.parse(chosen.faults))


def _create_epoch(
    project: Project, snapshot: StoredSnapshot, settings: Settings, change: ChangeSet, number: int
) -> Epoch:
    """Create an epoch with the state of the snapshot; its first commit adds the records."""
    clock = project.epoch.state.clock.set(
        snapshot.now, running=snapshot.clock_mode == RUNNING, rate=float(snapshot.clock_rate)
    )
    state = _chosen_state(snapshot, settings, clock)
    epoch = project.create_epoch(number, state.base_settings)
    epoch.state = state._replace(
        scenario_faults=state.scenario_faults.with_uses(snapshot.scenario_faults),
        faults=state.faults.with_uses(snapshot.fault_uses),
        rule_uses=dict(snapshot.rule_uses),
        swapped=snapshot.swapped,
    )
    epoch.ids = Ids(snapshot.seed, snapshot.id_counts, snapshot.id_series)
    epoch.store.deliveries_dropped = snapshot.deliveries_dropped
    epoch.timeline = Timeline(snapshot.now, snapshot.sequence, change.dues)
    epoch.orders_created = len(change.orders)
    return epoch
