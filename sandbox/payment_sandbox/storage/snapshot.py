"""Snapshots: the whole state of a project as one document."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from types import GeneratorType
from typing import Any, Final, NamedTuple

from payment_sandbox.forms import load, unknown_keys
from payment_sandbox.forms.fields import Label
from payment_sandbox.forms.merchant_urls import url_problem
from payment_sandbox.forms.order_fields import SentForm
from payment_sandbox.kernel.ids import Ids
from payment_sandbox.kernel.masking import Masking
from payment_sandbox.kernel.timeline import Timeline
from payment_sandbox.kernel.times import Period, PeriodError
from payment_sandbox.methods import METHOD_NAMES, behaviour_of
from payment_sandbox.methods.common import AttemptDraft, Terms
from payment_sandbox.orders.actions import ACTIONS, Action
from payment_sandbox.orders.amounts import CURRENCY
from payment_sandbox.orders.authorization import Authorization
from payment_sandbox.orders.cards import AUTHORIZATION_METHODS, CARDS, NETWORKS
from payment_sandbox.orders.commands import AttemptDelivery, Command, PerformAction, Resend
from payment_sandbox.orders.lines import OrderLine, Quantities
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.orders.statuses import ORDER_TRANSITIONS, TRANSACTION_TRANSITIONS
from payment_sandbox.orders.transaction import Transaction
from payment_sandbox.orders.webhooks import DURATION_MS_MAX, UnsentWebhook
from payment_sandbox.projects.caller import SAVED_ANSWERS_MAX
from payment_sandbox.projects.clock import FROZEN, RATE_MAX, RUNNING, ProjectClock
from payment_sandbox.projects.epoch import Epoch, State
from payment_sandbox.projects.faults import ProjectFaults
from payment_sandbox.projects.journal import EpochJournal, ReachedStatus, RecordedDecision
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.settings import FEATURES, KNOWN_SETTINGS, Settings, read_stored_settings
from payment_sandbox.projects.store import ChangeSet, Configuration, Counters
from payment_sandbox.scenarios.loader import load_scenario
from payment_sandbox.scenarios.model import TransactionDecision
from payment_sandbox.storage.codec import FORMAT, AgendaEntry, StoredRecords, decode, encode

CAPTURE_MODES: Final = (None, "manual", "delayed")
SENT_FORM: Final = SentForm()
SIZES_PIXELS: Final = range(100, 2001)
SUCCESSES: Final = (200, 201)

NO_LIMITS: Final = Terms(
    datetime.min.replace(tzinfo=UTC),
    is_test=False,
    features=frozenset(FEATURES),
    find_credential=lambda token: None,
    ids=Ids(0),
    issuer_required=False,
)

Problem = tuple[str, str]
"""A path below ``state`` and its problem."""


@dataclass(frozen=True)
class FormattedDocument:
    """A document that begins with the name of its format."""

    format: str


@dataclass(frozen=True)
class StoredSnapshot(StoredRecords, Counters, Configuration, FormattedDocument):
    """The whole state of a project, except its ids and its key."""

    decisions: tuple[TransactionDecision, ...] = ()
    unsent: tuple[UnsentWebhook, ...] = ()


def refuse_inconsistent(snapshot: StoredSnapshot, rules: int) -> None:
    """Refuse an inconsistent snapshot; ``rules`` is the number of rules in its scenario.

    Raises:
        Invalid: the error lists all inconsistencies.
    """
    orders = {order.id: order for order in snapshot.orders}
    problems: list[Problem] = [
        *_clock_problems(snapshot),
        *_counter_problems(snapshot, rules),
        *_identifier_problems(snapshot),
        *_agenda_problems(snapshot, orders),
        *_delivery_problems(snapshot, orders),
        *_decision_problems(snapshot),
        *_unsent_problems(snapshot, orders),
        *_answer_problems(snapshot, orders),
    ]
    for index, order in enumerate(snapshot.orders):
        problems += _prefix_paths(f"orders[{index}]", _order_problems(order, orders))
    for index, request in enumerate(snapshot.qr_requests):
        problems += _prefix_paths(f"qr_requests[{index}]", _qr_request_problems(request))
    if problems:
        raise Invalid([Violation(f"state.{path}", problem) for path, problem in problems])


def _prefix_paths(path: str, problems: Iterable[Problem]) -> Iterator[Problem]:
    return ((f"{path}.{part}" if part else path, problem) for part, problem in problems)


def _clock_problems(snapshot: StoredSnapshot) -> Iterator[Problem]:
    if snapshot.clock_mode not in (RUNNING, FROZEN):
        yield "clock_mode", f"must be {RUNNING} or {FROZEN}"
    if not 0 < snapshot.clock_rate <= RATE_MAX:
        yield "clock_rate", f"must be above 0 and at most {RATE_MAX:g}"


def _counter_problems(snapshot: StoredSnapshot, rules: int) -> Iterator[Problem]:
    if any(not 0 <= index < rules or used < 0 for index, used in snapshot.rule_uses):
        yield "rule_uses", "is not a rule of the scenario"
    if min(snapshot.epoch, snapshot.id_series, snapshot.deliveries_dropped) < 0:
        yield "epoch", "must not be negative"
    counts = snapshot.id_counts
    if min(counts.values(), default=0) < 0 or any(
        counts.get(kind, 0) < n for kind, n in _id_counts(snapshot)
    ):
        yield "id_counts", "would generate identifiers that already exist"


def _id_counts(snapshot: StoredSnapshot) -> Iterator[tuple[str, int]]:
    """Count the identifiers of each kind in the snapshot."""
    attempts = [attempt for order in snapshot.orders for attempt in order.transactions]
    counts = {
        "order": len(snapshot.orders),
        "transaction": len(attempts),
        "event": sum(len(attempt.events) for attempt in attempts),
        "delivery": len(snapshot.deliveries),
        "vault": len(snapshot.credentials),
        "qr": len(snapshot.qr_requests),
    }
    yield from counts.items()


def _identifier_problems(snapshot: StoredSnapshot) -> Iterator[Problem]:
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


def _agenda_problems(snapshot: StoredSnapshot, orders: Mapping[str, Order]) -> Iterator[Problem]:
    deliveries = {delivery.id for delivery in snapshot.deliveries}
    seen: set[int] = set()
    for index, entry in enumerate(snapshot.agenda):
        path = f"agenda[{index}]"
        if entry.sequence in seen or not 0 < entry.sequence <= snapshot.sequence:
            yield f"{path}.sequence", "must be unique, from 1 to state.sequence"
        seen.add(entry.sequence)
        yield from _prefix_paths(f"{path}.command", _command_problems(entry.command, orders, deliveries))


def _command_problems(
    command: Command, orders: Mapping[str, Order], deliveries: set[str]
) -> Iterator[Problem]:
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
    if isinstance(command, PerformAction):
        yield from _prefix_paths("action", _action_problems(command.action))


def _action_problems(action: Action) -> Iterator[Problem]:
    if action.action not in ACTIONS.get(action.actor, ()):
        yield "", f"{action.name!r} is not a known action"
    if action.card is not None and action.card not in (*CARDS, *NETWORKS):
        yield "card", f"{action.card!r} is not a test card"
    if action.authorization not in (None, *AUTHORIZATION_METHODS):
        yield "authorization", f"{action.authorization!r} is not an authorization method"
    if action.amount_cents is not None and action.amount_cents < 1:
        yield "amount_cents", "must be at least 1"


def _delivery_problems(snapshot: StoredSnapshot, orders: Mapping[str, Order]) -> Iterator[Problem]:
    for index, delivery in enumerate(snapshot.deliveries):
        if delivery.order_id not in orders:
            yield f"deliveries[{index}].order_id", "is not an order of this snapshot"
        yield from _url_problems(f"deliveries[{index}].url", delivery.url)
        for number, attempt in enumerate(delivery.attempts):
            if not 0 <= attempt.reply.duration_ms <= DURATION_MS_MAX:
                path = f"deliveries[{index}].attempts[{number}].reply.duration_ms"
                yield path, f"must be between 0 and {DURATION_MS_MAX}"
    known = {delivery.id for delivery in snapshot.deliveries}
    for index, delivery_id in enumerate(snapshot.swapped):
        if delivery_id not in known:
            yield f"swapped[{index}]", "is not a webhook of this snapshot"


def _decision_problems(snapshot: StoredSnapshot) -> Iterator[Problem]:
    known = {attempt.id for order in snapshot.orders for attempt in order.transactions}
    for index, decision in enumerate(snapshot.decisions):
        if decision["transaction_id"] not in known:
            yield f"decisions[{index}].transaction_id", "is not a transaction of this snapshot"


def _unsent_problems(snapshot: StoredSnapshot, orders: Mapping[str, Order]) -> Iterator[Problem]:
    for index, webhook in enumerate(snapshot.unsent):
        if webhook.order_id not in orders:
            yield f"unsent[{index}].order_id", "is not an order of this snapshot"
        if webhook.status not in ORDER_TRANSITIONS:
            yield f"unsent[{index}].status", f"{webhook.status!r} is not a status of an order"


def _answer_problems(snapshot: StoredSnapshot, orders: Mapping[str, Order]) -> Iterator[Problem]:
    if len(snapshot.answers) > SAVED_ANSWERS_MAX:
        yield "answers", f"must have at most {SAVED_ANSWERS_MAX} items"
    for index, saved in enumerate(snapshot.answers):
        if saved.order_id is not None and saved.order_id not in orders:
            yield f"answers[{index}].order_id", "is not an order of this snapshot"
        if saved.status not in SUCCESSES:
            yield f"answers[{index}].status", f"must be one of {SUCCESSES}"


def _order_problems(order: Order, orders: Mapping[str, Order]) -> Iterator[Problem]:
    yield from _order_value_problems(order)
    if order.refund_of_order_id is not None:
        yield from _refund_problems(order, orders)
    yield from _prefix_paths("sent", _check_input(order.sent))
    for index, entry in enumerate(order.refunds):
        if entry.refund_id not in orders:
            yield f"refunds[{index}].refund_id", "is not a refund of this snapshot"
        yield from _quantity_problems(f"refunds[{index}].quantities", entry.quantities, order.order_lines)
    for index, attempt in enumerate(order.transactions):
        yield from _prefix_paths(f"transactions[{index}]", _attempt_problems(attempt))
        if attempt.authorization is not None and attempt.authorization.lines != order.order_lines:
            yield f"transactions[{index}].authorization.lines", "are not the lines of its order"


def _order_value_problems(order: Order) -> Iterator[Problem]:
    if order.status not in ORDER_TRANSITIONS:
        yield "status", f"{order.status!r} is not a status of an order"
    if order.amount_cents < 1 or order.currency != CURRENCY:
        yield "amount_cents", f"must be at least 1, in {CURRENCY}"
    if order.is_hosted and order.expires_at is None:
        yield "expires_at", "is required, because the payment page expires"


def _check_input(sent: Mapping[str, Any]) -> Iterator[Problem]:
    """Check the merchant's input by the rules of the original request."""
    for unknown in unknown_keys(SENT_FORM, sent):
        yield unknown.path, "is not a field of an order"
    for violation in load(SENT_FORM, sent)[1]:
        yield violation.path, violation.message


def _refund_problems(order: Order, orders: Mapping[str, Order]) -> Iterator[Problem]:
    if order.refund_of_order_id not in orders:
        yield "refund_of_order_id", "is not an order of this snapshot"
    if len(order.transactions) != 1:
        yield "transactions", "must contain exactly one transaction, because this is a refund"


def _attempt_problems(attempt: Transaction) -> Iterator[Problem]:
    if attempt.status not in TRANSACTION_TRANSITIONS:
        yield "status", f"{attempt.status!r} is not a status of a transaction"
    if attempt.method not in METHOD_NAMES:
        yield "method", f"{attempt.method!r} is not a payment method"
    if attempt.amount_cents < 1 or attempt.credited_cents < 0:
        yield "amount_cents", "must be at least 1, and credited_cents must not be negative"
    if attempt.capture_mode not in CAPTURE_MODES:
        yield "capture_mode", f"{attempt.capture_mode!r} is not a capture mode"
    yield from _text_problems(attempt)
    yield from _check_method(attempt)
    yield from _period_problems("expiration_period", attempt.expiration_period)
    if attempt.authorization is not None:
        yield from _prefix_paths("authorization", _authorization_problems(attempt.authorization))


def _check_method(attempt: Transaction) -> Iterator[Problem]:
    """Check the requirements of the payment method and of its page."""
    if attempt.method not in METHOD_NAMES:
        return
    method = behaviour_of(attempt)
    details = {**attempt.asked, "cvc": "000"}  # sent, but not stored
    request_details = details if "vault_token" not in details else {}  # the card was charged when it was sent
    draft = AttemptDraft("", attempt.amount_cents, request_details, attempt.capture_mode)
    for violation in method.check(draft, NO_LIMITS):
        yield "asked", f"is not a possible request: {violation.path.rpartition('.')[2]} {violation.message}"
    for name in method.capabilities.page_details:
        if not isinstance(attempt.details.get(name), str):
            yield f"details.{name}", "must be a string: the payment page shows it"


def _text_problems(attempt: Transaction) -> Iterator[Problem]:
    for name, values in (("asked", attempt.asked), ("plan", {**attempt.plan, "credit": ""})):
        if not all(isinstance(value, str) for value in values.values()):
            yield name, "must contain only strings"
    if not isinstance(attempt.details.get("issuer_id", ""), str):
        yield "details.issuer_id", "must be a string"


def _authorization_problems(authorization: Authorization) -> Iterator[Problem]:
    if authorization.remaining_cents < 0 or any(entry.amount_cents < 1 for entry in authorization.entries):
        yield "entries", "add up to more than the authorization, or include an empty entry"
    for index, entry in enumerate(authorization.entries):
        yield from _quantity_problems(f"entries[{index}].quantities", entry.quantities, authorization.lines)


def _quantity_problems(path: str, quantities: Quantities, lines: Sequence[OrderLine]) -> Iterator[Problem]:
    for index, quantity in quantities:
        if not 0 <= index < len(lines) or not 0 < quantity <= lines[index].quantity:
            yield path, f"take {quantity} of line {index}, which does not exist or has fewer items"


def _qr_request_problems(request: QrRequest) -> Iterator[Problem]:
    if request.size_pixels not in SIZES_PIXELS:
        yield "size_pixels", f"must be {SIZES_PIXELS.start} to {SIZES_PIXELS.stop - 1}"
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


def _period_problems(path: str, text: str | None) -> Iterator[Problem]:
    try:
        Period.parse(text or "P1D")
    except PeriodError:
        yield path, f"{text!r} is not a duration"


class ConsistentSnapshot(NamedTuple):
    """A consistent snapshot, with its state and its records."""

    snapshot: StoredSnapshot
    state: State
    change: ChangeSet


def capture(project: Project) -> Callable[[], dict[str, Any]]:
    """Take the project's state (CTL-10).

    The returned function encodes it, as often as it is called, as plain data with iterators for lists, which
    may be long.
    """
    return partial(_encode_parts, project.epoch.journal, _requeue_failed(project))


def _encode_parts(journal: EpochJournal, snapshot: StoredSnapshot) -> dict[str, Any]:
    settings = {name: snapshot.settings[name] for name in KNOWN_SETTINGS}
    decisions = journal.decisions(attempt for order in snapshot.orders for attempt in order.transactions)
    values = {**vars(snapshot), "settings": settings, "decisions": decisions}
    return {
        name: map(encode, value) if type(value) in (tuple, GeneratorType) else encode(value)
        for name, value in values.items()
    }


def _requeue_failed(project: Project) -> StoredSnapshot:
    """Return the project's state with failed commands requeued, because they may succeed elsewhere."""
    unsent = map(
        _unsent_webhook, project.epoch.unsent_webhooks()
    )  # a webhook sent meanwhile is in both lists
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

    Raises:
        Invalid: the document is not a snapshot, or is inconsistent; nothing changes (CTL-11).
    """
    snapshot = _decode_snapshot(_mask(project.masking, document))
    settings = read_stored_settings(snapshot.settings, "state.settings")
    checked = _check_consistency(project, snapshot, replace(settings, newer_settings={}))
    before = project.epoch
    is_fresh = not before.number and not before.store.order_ids()
    # A fresh project continues exactly as before; one with its own history must not repeat its ETags.
    number = checked.snapshot.epoch if is_fresh else max(before.number, checked.snapshot.epoch) + 1
    epoch = _create_epoch(project, checked, number)
    decisions = [_recorded_decision(epoch.journal, decision) for decision in snapshot.decisions]
    now = project.services.real.wall_now()
    statuses = [_reached_status(epoch.journal, webhook, now) for webhook in snapshot.unsent]
    epoch.journal.restore([*decisions, *statuses])
    project.replace_epoch(epoch, checked.change)
    project.send_pending()


def _unsent_webhook(reached: ReachedStatus) -> UnsentWebhook:
    return UnsentWebhook(reached.order_id, reached.status, reached.before, reached.at)


def _reached_status(journal: EpochJournal, webhook: UnsentWebhook, real_at: datetime) -> ReachedStatus:
    order_id, status, before, at = webhook
    status_id = journal.next_id("status")
    return ReachedStatus(status_id, order_id, None, None, status, at, real_at, None, before)


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
    if name in ("attempts", "decisions"):
        return masking.mask_record(document)
    if isinstance(document, dict):
        return {key: _mask(masking, value, key) for key, value in masking.masked_items(document)}
    if isinstance(document, list):
        return [_mask(masking, item) for item in document]
    return masking.mask_text(document) if isinstance(document, str) else document


def resume(project: Project, document: Any, real_at: datetime | None) -> None:
    """Restore the state of a state file; a running clock continues from ``real_at``, the time of the save.

    No webhook is sent before ``Project.send_pending``.

    Raises:
        Invalid: the document is inconsistent.
    """
    snapshot = _decode_snapshot(document)
    checked = _check_consistency(project, snapshot, read_stored_settings(snapshot.settings, "state.settings"))
    epoch = _create_epoch(project, checked, checked.snapshot.epoch)
    clock = epoch.state.clock
    if clock.running and real_at is not None:
        elapsed_seconds = max((project.services.real.wall_now() - real_at).total_seconds(), 0.0)
        epoch.state = epoch.state._replace(clock=clock.advanced_by(elapsed_seconds))
    epoch.store.load(checked.change._replace(chosen=epoch.state.chosen))
    project.adopt(epoch)


def _decode_snapshot(document: Any) -> StoredSnapshot:
    snapshot: StoredSnapshot = decode(StoredSnapshot, document, "state")
    if snapshot.format != FORMAT:
        raise Invalid([Violation("state.format", f"must be {FORMAT!r}", [FORMAT])])
    return snapshot


def _chosen_state(chosen: Configuration, settings: Settings, clock: ProjectClock) -> State:
    """Return a state with the stored settings, scenario and faults, before any use of them."""
    document = chosen.scenario
    if isinstance(document.get("description"), str):  # earlier versions had no limit
        document = {**document, "description": document["description"][: Label.LENGTH_MAX]}
    scenario = load_scenario(document, settings.method_names)._replace(is_inline=chosen.is_inline)
    state = State.initial(settings, clock).with_scenario(scenario).note_unmatched(chosen.unmatched)
    return state._replace(faults=ProjectFaults.parse(chosen.faults))


def _set_counters(epoch: Epoch, state: State, counters: Counters) -> None:
    """Set the state of an epoch, and all counters except the clock's."""
    epoch.state = state._replace(
        scenario_faults=state.scenario_faults.with_uses(counters.scenario_faults),
        faults=state.faults.with_uses(counters.fault_uses),
        rule_uses=dict(counters.rule_uses),
        swapped=counters.swapped,
    )
    epoch.ids = Ids(counters.seed, counters.id_counts, counters.id_series)
    epoch.store.deliveries_dropped = counters.deliveries_dropped


def _check_consistency(project: Project, snapshot: StoredSnapshot, settings: Settings) -> ConsistentSnapshot:
    clock = project.epoch.state.clock.set(
        snapshot.now, running=snapshot.clock_mode == RUNNING, rate=float(snapshot.clock_rate)
    )
    state = _chosen_state(snapshot, settings, clock)
    refuse_inconsistent(snapshot, len(state.scenario.rules))
    change = snapshot.change()
    state.faults.refuse_unknown_orders(change.orders.__contains__, "state.faults.")
    return ConsistentSnapshot(snapshot, state, change)


def _create_epoch(project: Project, checked: ConsistentSnapshot, number: int) -> Epoch:
    """Create an epoch with the state of the snapshot; its first commit adds the records."""
    snapshot = checked.snapshot
    epoch = project.create_epoch(number, checked.state.base_settings)
    _set_counters(epoch, checked.state, snapshot)
    epoch.timeline = Timeline(snapshot.now, snapshot.sequence, checked.change.dues)
    epoch.orders_created = len(snapshot.orders)
    return epoch
