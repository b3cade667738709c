"""Snapshots: the whole state of a project as one document."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from payment_sandbox.forms import load, unknown_keys
from payment_sandbox.forms.addresses import url_problem
from payment_sandbox.forms.orders import SentForm
from payment_sandbox.kernel.ids import Ids
from payment_sandbox.kernel.masking import Masking
from payment_sandbox.kernel.timeline import Timeline
from payment_sandbox.kernel.times import Period, PeriodError
from payment_sandbox.methods import NAMES, behaviour_of
from payment_sandbox.methods.common import AttemptDraft, Terms
from payment_sandbox.orders.actions import ACTIONS, Action
from payment_sandbox.orders.amounts import CURRENCY
from payment_sandbox.orders.authorization import Authorization
from payment_sandbox.orders.cards import AUTHORIZATION_METHODS, CARDS, NETWORKS
from payment_sandbox.orders.commands import AttemptDelivery, Command, Perform, Resend
from payment_sandbox.orders.lines import OrderLine, Quantities
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.orders.refusals import Invalid, Refusal, Violation
from payment_sandbox.orders.statuses import ORDER_TRANSITIONS, TRANSACTION_TRANSITIONS
from payment_sandbox.orders.transaction import Transaction
from payment_sandbox.projects.changes import Moment
from payment_sandbox.projects.clock import FROZEN, RATE_MAX, RUNNING, Clock
from payment_sandbox.projects.epoch import Epoch, State
from payment_sandbox.projects.faults import Faults
from payment_sandbox.projects.journal import Journal, RecordedDecision, number_of
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.settings import (
    FEATURES,
    KNOWN_SETTINGS,
    Settings,
    read_settings,
    stored_settings,
)
from payment_sandbox.projects.store import ChangeSet, Configuration, Counters
from payment_sandbox.scenarios.loader import load_scenario
from payment_sandbox.storage.codec import FORMAT, AgendaEntry, Snapshot, TakenDecision, decode, encode

CAPTURE_MODES: Final = (None, "manual", "delayed")
SENT: Final = SentForm()
SIZE_PIXELS: Final = range(100, 2001)

NO_LIMITS: Final = Terms(
    datetime.min.replace(tzinfo=UTC),
    is_test=False,
    features=frozenset(FEATURES),
    find_credential=lambda token: None,
    ids=Ids(0),
)

Problem = tuple[str, str]
"""A path below ``state`` and its problem."""


def refuse_inconsistent(snapshot: Snapshot, rules: int) -> None:
    """Refuse an inconsistent snapshot; ``rules`` is the number of rules in its scenario.

    Raises:
        Invalid: the error lists all inconsistencies.
    """
    orders = {order.id: order for order in snapshot.orders}
    problems: list[Problem] = [
        *_clock(snapshot),
        *_counters(snapshot, rules),
        *_identities(snapshot),
        *_agenda(snapshot, orders),
        *_deliveries(snapshot, orders),
        *_decisions(snapshot),
    ]
    for index, order in enumerate(snapshot.orders):
        problems += _below(f"orders[{index}]", _order(order, orders))
    for index, request in enumerate(snapshot.qr_requests):
        problems += _below(f"qr_requests[{index}]", _qr_request(request))
    if problems:
        raise Invalid([Violation(f"state.{path}", problem) for path, problem in problems])


def _below(path: str, problems: Iterable[Problem]) -> Iterator[Problem]:
    return ((f"{path}.{part}" if part else path, problem) for part, problem in problems)


def _clock(snapshot: Snapshot) -> Iterator[Problem]:
    if snapshot.clock_mode not in (RUNNING, FROZEN):
        yield "clock_mode", f"must be {RUNNING} or {FROZEN}"
    if not 0 < snapshot.clock_rate <= RATE_MAX:
        yield "clock_rate", f"must be above 0 and at most {RATE_MAX:g}"


def _counters(snapshot: Snapshot, rules: int) -> Iterator[Problem]:
    if any(not 0 <= index < rules or used < 0 for index, used in snapshot.rule_uses):
        yield "rule_uses", "is not a rule of the scenario"
    if min(snapshot.epoch, snapshot.id_series, snapshot.deliveries_dropped) < 0:
        yield "epoch", "must not be negative"
    counts = snapshot.id_counts
    if min(counts.values(), default=0) < 0 or any(
        counts.get(kind, 0) < n for kind, n in _id_counts(snapshot)
    ):
        yield "id_counts", "would generate identifiers that already exist"


def _id_counts(snapshot: Snapshot) -> Iterator[tuple[str, int]]:
    """Count the identifiers of each kind in the snapshot."""
    attempts = [attempt for order in snapshot.orders for attempt in order.transactions]
    given = {
        "order": len(snapshot.orders),
        "transaction": len(attempts),
        "event": sum(len(attempt.events) for attempt in attempts),
        "delivery": len(snapshot.deliveries),
        "vault": len(snapshot.credentials),
        "qr": len(snapshot.qr_requests),
    }
    yield from given.items()


def _identities(snapshot: Snapshot) -> Iterator[Problem]:
    lists: dict[str, Sequence[Any]] = {
        "orders": [order.id for order in snapshot.orders],
        "transactions": [attempt.id for order in snapshot.orders for attempt in order.transactions],
        "deliveries": [delivery.id for delivery in snapshot.deliveries],
        "credentials": [credential.vault_token for credential in snapshot.credentials],
        "qr_requests": [request.id for request in snapshot.qr_requests],
        "swapped": snapshot.swapped,
    }
    for name, ids in lists.items():
        if len(set(ids)) != len(ids):
            yield name, "contains an identifier twice"


def _agenda(snapshot: Snapshot, orders: Mapping[str, Order]) -> Iterator[Problem]:
    deliveries = {delivery.id for delivery in snapshot.deliveries}
    seen: set[int] = set()
    for index, entry in enumerate(snapshot.agenda):
        path = f"agenda[{index}]"
        if entry.sequence in seen or not 0 < entry.sequence <= snapshot.sequence:
            yield f"{path}.sequence", "must be unique, from 1 to state.sequence"
        seen.add(entry.sequence)
        yield from _below(f"{path}.command", _command(entry.command, orders, deliveries))


def _command(command: Command, orders: Mapping[str, Order], deliveries: set[str]) -> Iterator[Problem]:
    order = orders.get(command.order_id)
    if order is None:
        yield "order_id", "is not an order of this snapshot"
        return
    transaction_id = getattr(command, "transaction_id", None)
    if transaction_id is not None and order.transaction(transaction_id) is None:
        yield "transaction_id", "is not a transaction of its order"
    if type(command) is AttemptDelivery and command.delivery_id not in deliveries:
        yield "delivery_id", "is not a webhook of this snapshot"
    if isinstance(command, Resend):
        yield from _url_problems("url", command.url)
    if isinstance(command, Perform):
        yield from _below("action", _action(command.action))


def _action(action: Action) -> Iterator[Problem]:
    if action.action not in ACTIONS.get(action.actor, ()):
        yield "", f"{action.name!r} is not a known action"
    if action.card is not None and action.card not in (*CARDS, *NETWORKS):
        yield "card", f"{action.card!r} is not a test card"
    if action.authorization not in (None, *AUTHORIZATION_METHODS):
        yield "authorization", f"{action.authorization!r} is not an authorization method"
    if action.amount_cents is not None and action.amount_cents < 1:
        yield "amount_cents", "must be at least 1"


def _deliveries(snapshot: Snapshot, orders: Mapping[str, Order]) -> Iterator[Problem]:
    for index, delivery in enumerate(snapshot.deliveries):
        if delivery.order_id not in orders:
            yield f"deliveries[{index}].order_id", "is not an order of this snapshot"
        yield from _url_problems(f"deliveries[{index}].url", delivery.url)
    known = {delivery.id for delivery in snapshot.deliveries}
    for index, delivery_id in enumerate(snapshot.swapped):
        if delivery_id not in known:
            yield f"swapped[{index}]", "is not a webhook of this snapshot"


def _decisions(snapshot: Snapshot) -> Iterator[Problem]:
    known = {attempt.id for order in snapshot.orders for attempt in order.transactions}
    for index, decision in enumerate(snapshot.decisions):
        if decision.transaction_id not in known:
            yield f"decisions[{index}].transaction_id", "is not a transaction of this snapshot"


def _order(order: Order, orders: Mapping[str, Order]) -> Iterator[Problem]:
    yield from _facts(order)
    if order.refund_of_order_id is not None:
        yield from _refund(order, orders)
    yield from _below("sent", _check_input(order.sent))
    for index, entry in enumerate(order.refunds):
        if entry.refund_id not in orders:
            yield f"refunds[{index}].refund_id", "is not a refund of this snapshot"
        yield from _quantities(f"refunds[{index}].quantities", entry.quantities, order.order_lines)
    for index, attempt in enumerate(order.transactions):
        yield from _below(f"transactions[{index}]", _attempt(attempt))
        if attempt.authorization is not None and attempt.authorization.lines != order.order_lines:
            yield f"transactions[{index}].authorization.lines", "are not the lines of its order"


def _facts(order: Order) -> Iterator[Problem]:
    if order.status not in ORDER_TRANSITIONS:
        yield "status", f"{order.status!r} is not a status of an order"
    if order.amount_cents < 1 or order.currency != CURRENCY:
        yield "amount_cents", f"must be at least 1, in {CURRENCY}"
    if order.is_hosted and order.expires_at is None:
        yield "expires_at", "is required, because the payment page expires"


def _check_input(sent: Mapping[str, Any]) -> Iterator[Problem]:
    """Check the merchant's input by the rules of the original request."""
    for unknown in unknown_keys(SENT, sent):
        yield unknown.path, "is not a field of an order"
    for violation in load(SENT, sent)[1]:
        yield violation.path, violation.message


def _refund(order: Order, orders: Mapping[str, Order]) -> Iterator[Problem]:
    if order.refund_of_order_id not in orders:
        yield "refund_of_order_id", "is not an order of this snapshot"
    if len(order.transactions) != 1:
        yield "transactions", "must contain exactly one transaction, because this is a refund"


def _attempt(attempt: Transaction) -> Iterator[Problem]:
    if attempt.status not in TRANSACTION_TRANSITIONS:
        yield "status", f"{attempt.status!r} is not a status of a transaction"
    if attempt.method not in NAMES:
        yield "method", f"{attempt.method!r} is not a payment method"
    if attempt.amount_cents < 1 or attempt.credited_cents < 0:
        yield "amount_cents", "must be at least 1, and credited_cents must not be negative"
    if attempt.capture_mode not in CAPTURE_MODES:
        yield "capture_mode", f"{attempt.capture_mode!r} is not a capture mode"
    yield from _free_values(attempt)
    yield from _check_method(attempt)
    yield from _period("expiration_period", attempt.expiration_period)
    if attempt.authorization is not None:
        yield from _below("authorization", _authorization(attempt.authorization))


def _check_method(attempt: Transaction) -> Iterator[Problem]:
    """Check the requirements of the payment method and of its page."""
    if attempt.method not in NAMES:
        return
    method = behaviour_of(attempt)
    asked = {**attempt.asked, "cvc": "000"}  # sent, but not stored
    details = asked if "vault_token" not in asked else {}  # the card was charged when it was sent
    draft = AttemptDraft("", attempt.amount_cents, details, attempt.capture_mode)
    for violation in method.check(draft, NO_LIMITS):
        yield "asked", f"is not a possible request: {violation.path.rpartition('.')[2]} {violation.message}"
    for name in method.capabilities.always_reveals:
        if not isinstance(attempt.details.get(name), str):
            yield f"details.{name}", "must be a string: the payment page shows it"


def _free_values(attempt: Transaction) -> Iterator[Problem]:
    for name, values in (("asked", attempt.asked), ("plan", {**attempt.plan, "credit": ""})):
        if not all(isinstance(value, str) for value in values.values()):
            yield name, "must contain only strings"
    if not isinstance(attempt.details.get("issuer_id", ""), str):
        yield "details.issuer_id", "must be a string"


def _authorization(authorization: Authorization) -> Iterator[Problem]:
    if authorization.remaining_cents < 0 or any(entry.amount_cents < 1 for entry in authorization.entries):
        yield "entries", "add up to more than the authorization, or include an empty entry"
    for index, entry in enumerate(authorization.entries):
        yield from _quantities(f"entries[{index}].quantities", entry.quantities, authorization.lines)


def _quantities(path: str, quantities: Quantities, lines: Sequence[OrderLine]) -> Iterator[Problem]:
    for index, quantity in quantities:
        if not 0 <= index < len(lines) or not 0 < quantity <= lines[index].quantity:
            yield path, f"take {quantity} of line {index}, which does not exist or has fewer items"


def _qr_request(request: QrRequest) -> Iterator[Problem]:
    if request.size_pixels not in SIZE_PIXELS:
        yield "size_pixels", f"must be {SIZE_PIXELS.start} to {SIZE_PIXELS.stop - 1}"
    if request.currency != CURRENCY or request.scans < 0:
        yield "currency", f"must be {CURRENCY}, and scans must not be negative"
    if min(request.amount_cents or 1, request.amount_min_cents or 1, request.amount_max_cents or 1) < 1:
        yield "amount_cents", "must be at least 1"
    yield from _url_problems("return_url", request.return_url)
    yield from _url_problems("webhook_url", request.webhook_url)


def _url_problems(path: str, url: str | None) -> Iterator[Problem]:
    problem = url_problem(url) if url is not None else None
    if problem is not None:
        yield path, f"is not a web address: {problem}"


def _period(path: str, text: str | None) -> Iterator[Problem]:
    try:
        Period.parse(text or "P1D")
    except PeriodError:
        yield path, f"{text!r} is not a duration"


class ConsistentSnapshot(NamedTuple):
    """A consistent snapshot, with its state and its records."""

    snapshot: Snapshot
    state: State
    change: ChangeSet


def snapshot_parts(project: Project) -> dict[str, Any]:
    """Return the project's state as plain data (CTL-10), with iterators for lists, which may be long."""
    journal, taken = project.epoch.journal, _requeue_failed(project)
    settings = {
        name: taken.settings[name] for name in KNOWN_SETTINGS
    }  # snapshots of a newer server cannot be restored
    shown = replace(taken, settings=settings, decisions=_explanations(journal, taken.orders))
    return {
        name: map(encode, value) if type(value) is tuple else encode(value)
        for name, value in vars(shown).items()
    }


def _explanations(journal: Journal, orders: Iterable[Order]) -> tuple[TakenDecision, ...]:
    """Return the scenario's decisions for the attempts of all orders."""
    ids = [attempt.id for order in orders for attempt in order.transactions]
    known = [(each, why) for each in ids if (why := journal.explanation(each)) is not None]
    taken: tuple[TakenDecision, ...] = decode(
        tuple[TakenDecision, ...], [{"transaction_id": each, **why} for each, why in known], "decisions"
    )
    return taken


def _requeue_failed(project: Project, expected: Epoch | None = None) -> Snapshot:
    """Return the project's state with failed commands requeued, because another server may run them."""
    with project.exclusively(
        expected
    ) as epoch:  # records are immutable, so only the references are taken here
        store = epoch.store
        dues = [*(aside.due for aside in epoch.set_aside.values()), *epoch.timeline]
        orders = tuple(epoch.find_order(order_id) for order_id in store.order_ids())
        records = (tuple(store.credentials()), tuple(store.qr_requests()), tuple(store.deliveries()))
        counters = epoch.counters(epoch.state, epoch.ids, epoch.timeline.sequence, epoch.now())
        chosen = epoch.state.chosen
    credentials, qr_requests, deliveries = records
    return Snapshot(
        format=FORMAT,
        **vars(chosen),
        **vars(counters),
        agenda=tuple(AgendaEntry(*due) for due in sorted(dues)),
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
    snapshot = _read(_mask(project.masking, document))
    checked = _consistent(project, snapshot, read_settings(snapshot.settings, Settings(), "state.settings"))
    before = project.epoch
    is_fresh = not before.number and not before.store.order_ids()
    # A fresh project continues exactly as before; one with its own history must not repeat its ETags.
    number = checked.snapshot.epoch if is_fresh else max(before.number, checked.snapshot.epoch) + 1
    epoch = _epoch(project, checked, number)
    epoch.journal.add(
        [
            RecordedDecision(epoch.journal.next_id("decision"), taken.transaction_id, taken.explanation())
            for taken in snapshot.decisions
        ]
    )
    project.replace_epoch(epoch, checked.change)
    send_pending(project)


AS_SENT: Final = frozenset(
    ("sent", "client", "order_lines", "lines", "description", "merchant_order_id", "dynamic_descriptor")
)
"""The merchant's own texts in a snapshot (A42)."""
AS_CHOSEN: Final = frozenset(("settings", "scenario", "faults"))
"""Fields that are refused if they contain a secret."""
ADDRESSES: Final = frozenset(("url", "return_url", "webhook_url"))
"""URLs, which are called unchanged."""
UNMASKED: Final = AS_SENT | AS_CHOSEN | ADDRESSES


def _mask(masking: Masking, document: Any, name: str = "") -> Any:
    """Mask secrets in a snapshot of any origin, as in the project's own records."""
    if name in UNMASKED:
        return document
    if name == "attempts":
        return masking.record(document)
    if isinstance(document, dict):
        return {key: _mask(masking, value, key) for key, value in masking.named(document)}
    if isinstance(document, list):
        return [_mask(masking, item) for item in document]
    return masking.text(document) if isinstance(document, str) else document


class Checkpoint(NamedTuple):
    """An epoch's state to return to; cheap, because the immutable records are shared."""

    snapshot: Snapshot
    mark: int
    """The number of the epoch's last journal record."""
    moment: Moment
    """The number of the epoch's last change; an undo would discard later changes."""
    advances: int
    """The number of the epoch's previous advances."""


class Irreversible(NamedTuple):
    """Irreversible effects: sent webhooks, and requests dropped from the journal."""

    webhooks: int
    requests: int


class UndoLosesChanges(Refusal):
    """An undo of the move would also discard later changes."""

    rule = "CTL-13"


def take_checkpoint(project: Project, epoch: Epoch) -> Checkpoint:
    """Save the current epoch of a project.

    Raises:
        ProjectReset: the epoch has ended.
    """
    # Settings first: a concurrent change is refused rather than lost.
    moment, advances = epoch.changes.watch(), epoch.advances
    return Checkpoint(_requeue_failed(project, epoch), epoch.journal.mark(), moment, advances)


def undo_move(project: Project, current: Epoch, before: Checkpoint) -> Irreversible:
    """Undo a clock move: restore the previous epoch and journal.

    Raises:
        UndoLosesChanges: later changes exist; the error lists them, and nothing is undone.
        ProjectReset: the project has been reset or restored since.
    """
    _refuse_loss(current, before)
    snapshot = before.snapshot
    checked = _consistent(project, snapshot, stored_settings(snapshot.settings, "state.settings"))
    epoch = _epoch(project, checked, current.number + 1)
    epoch.journal.copy_from(current.journal, before.mark)
    epoch.scan_forms = OrderedDict(current.scan_forms)
    project.replace_epoch(epoch, checked.change, current, lambda: _refuse_loss(current, before))
    send_pending(project)
    requests = sum(number_of(entry) > before.mark for entry in current.journal.unmasked())
    return Irreversible(current.changes.moment.attempts - before.moment.attempts, requests)


def _refuse_loss(epoch: Epoch, before: Checkpoint) -> None:
    """Refuse the undo if there are changes besides the one move and its consequences."""
    lost = epoch.changes.since(before.moment)
    if epoch.advances != before.advances + 1:
        lost.append("the clock (moved or set again)")
    if epoch.jobs:
        lost.append("the shop's jobs (which would not run again)")
    if lost:
        raise UndoLosesChanges(f"the move cannot be undone, because that would discard: {', '.join(lost)}")


def resume(project: Project, document: Any, real_at: datetime | None) -> None:
    """Restore the state of a state file; a running clock continues from ``real_at``, the time of the save.

    No webhook is sent before ``send_pending``.

    Raises:
        Invalid: the document is inconsistent.
    """
    snapshot = _read(document)
    checked = _consistent(project, snapshot, stored_settings(snapshot.settings, "state.settings"))
    epoch = _epoch(project, checked, checked.snapshot.epoch)
    clock = epoch.state.clock
    if clock.running and real_at is not None:
        passed_seconds = max((project.services.real.wall_now() - real_at).total_seconds(), 0.0)
        epoch.state = epoch.state._replace(clock=clock.ahead_by(passed_seconds))
    epoch.store.load(checked.change._replace(chosen=epoch.state.chosen))
    project.adopt(epoch)


def send_pending(project: Project) -> None:
    """Send the pending webhooks, and wake the project for its due commands."""
    epoch = project.epoch
    if not epoch.store.is_shared:
        for queued in epoch.webhooks_to_send():
            project.put(epoch, queued._replace(job=0))
    project.services.wake(project)


def _read(document: Any) -> Snapshot:
    snapshot: Snapshot = decode(Snapshot, document, "state")
    if snapshot.format != FORMAT:
        raise Invalid([Violation("state.format", f"must be {FORMAT!r}", [FORMAT])])
    return snapshot


def chosen_state(chosen: Configuration, settings: Settings, clock: Clock) -> State:
    """Return a state with the stored settings, scenario and faults, before any use of them."""
    scenario = load_scenario(chosen.scenario, settings.method_names)
    state = State.first(settings, clock).with_scenario(scenario)
    return state._replace(faults=Faults.read(chosen.faults))


def put_counters(epoch: Epoch, state: State, counters: Counters) -> None:
    """Set the state of an epoch, and all counters except the clock's."""
    epoch.state = state._replace(
        scenario_faults=state.scenario_faults.used(counters.scenario_faults),
        faults=state.faults.used(counters.fault_uses),
        rule_uses=dict(counters.rule_uses),
        swapped=counters.swapped,
    )
    epoch.ids = Ids(counters.seed, counters.id_counts, counters.id_series)
    epoch.store.deliveries_dropped = counters.deliveries_dropped


def _consistent(project: Project, snapshot: Snapshot, settings: Settings) -> ConsistentSnapshot:
    clock = project.epoch.state.clock.set(
        snapshot.now, running=snapshot.clock_mode == RUNNING, rate=float(snapshot.clock_rate)
    )
    state = chosen_state(snapshot, settings, clock)
    refuse_inconsistent(snapshot, len(state.scenario.rules))
    change = snapshot.change()
    state.faults.refuse_unknown_orders(change.orders.__contains__, "state.faults.")
    return ConsistentSnapshot(snapshot, state, change)


def _epoch(project: Project, checked: ConsistentSnapshot, number: int) -> Epoch:
    """Create an epoch with the state of the snapshot; its first commit adds the records."""
    snapshot = checked.snapshot
    epoch = project.fresh_epoch(number, checked.state.base_settings)
    put_counters(epoch, checked.state, snapshot)
    epoch.timeline = Timeline(snapshot.now, snapshot.sequence, checked.change.dues)
    epoch.orders_created = len(snapshot.orders)
    return epoch
