"""An edit, the unit of work: planned on copies, committed to the store, then applied in memory and logged.

If an edit fails before it is applied, nothing has changed: no record, no agenda entry, no rule use and no
identifier.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.kernel.timeline import DueItem
from payment_sandbox.methods.common import Terms
from payment_sandbox.orders.actions import Action
from payment_sandbox.orders.cards import Credential
from payment_sandbox.orders.commands import AttemptDelivery, Command
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.orders.statuses import OrderStatus, StatusChange, Trigger, move
from payment_sandbox.orders.transaction import Transaction, TransactionEvent
from payment_sandbox.orders.webhooks import Delivery, DeliveryState
from payment_sandbox.projects.caller import SAVED_ANSWERS_MAX, SAVED_FOR, Caller, SavedAnswer
from payment_sandbox.projects.epoch import Epoch, IfMatch, ProcessedEvent, State
from payment_sandbox.projects.events import Entry
from payment_sandbox.projects.journal import (
    AgendaEvent,
    PerformedAction,
    ReachedStatus,
    Record,
    RecordedDecision,
)
from payment_sandbox.projects.outbox import QueuedDelivery
from payment_sandbox.projects.rehearsal import NO_REHEARSAL
from payment_sandbox.projects.settings import Settings
from payment_sandbox.projects.store import ChangeSet
from payment_sandbox.projects.unmatched import faults_unmatched
from payment_sandbox.scenarios.model import ScenarioDecision, Subject

SCAN_FORMS_MAX: Final = 1000

ACTION_FIELDS: Final = ("actor", "action")


class Edit:
    """Copies of records, and the effects of their changes; created by ``Project.edit``."""

    def __init__(self, epoch: Epoch, now: datetime, real_at: datetime, caller: Caller) -> None:
        self.epoch = epoch
        self.caller = caller
        self.now = now
        self.real_at = real_at
        self.cause = caller.cause  # the id of the record that causes the statuses
        self.state: State = epoch.state
        self.ids: Ids = epoch.ids.copy()
        self.to_send: list[QueuedDelivery] = []
        self.advance_log: list[ProcessedEvent] = []  # entries for the log of the current advance
        self.orders: dict[str, Order] = {}
        self.finished_entries: list[int] = []  # sequence numbers of agenda entries that end with this edit
        self.is_due_earlier = False  # whether the agenda of the applied edit has a new first entry
        self._records: list[Record] = []  # actions and due events
        self._decisions: dict[str, ScenarioDecision] = {}  # by transaction
        self._shown: list[tuple[str, Entry]] = []  # other entries for watchers
        self._new_events: set[str] = set()  # ids of transaction events
        self.created: set[str] = set()  # ids of new orders and refunds
        self._moves: list[StatusChange] = []
        self._reached: list[tuple[str, str | None, str]] = []  # the orders' new statuses, after those before
        self._announced: list[Order] = []
        self._scheduled: list[tuple[datetime, Command]] = []
        self._deliveries: dict[str, Delivery] = {}
        self._credentials: list[Credential] = []
        self._qr_requests: dict[str, QrRequest] = {}
        self._scan_forms: dict[str, str] = {}

    @property
    def settings(self) -> Settings:
        """The project's settings, including those of the active scenario."""
        return self.state.settings

    @property
    def terms(self) -> Terms:
        """The parts of the project that payment methods use."""
        return self.epoch.terms(self.now, self.state.settings, self.ids)

    def order(self, order_id: str) -> Order:
        """Return a copy of an order to edit; every call returns the same copy.

        Raises:
            Unknown: the project has no such order.
        """
        order = self.orders.get(order_id)
        if order is None:
            order = self.orders[order_id] = self.epoch.find_order(order_id).copy()
        return order

    def order_if_match(self, order_id: str, if_match: IfMatch | None) -> Order:
        """Return a copy of an order to edit, if the order is unchanged since the merchant's last read.

        Raises:
            Unknown: the project has no such order.
            OrderChanged: the order's ETag does not match (SET-33).
        """
        if if_match is not None:
            self.epoch.check_etag(order_id, if_match)
        return self.order(order_id)

    def delivery(self, delivery_id: str) -> Delivery | None:
        """Return the newest version of a webhook, as changed by this edit."""
        return self._deliveries.get(delivery_id) or self.epoch.store.delivery(delivery_id)

    def qr_request(self, qr_id: str) -> QrRequest:
        """Return the newest version of a QR request, as changed by this edit.

        Raises:
            Unknown: the project has no such QR request.
        """
        return self._qr_requests.get(qr_id) or self.epoch.find_qr_request(qr_id)

    def add(self, order: Order) -> Order:
        """Add a new order."""
        self.created.add(order.id)
        self.orders[order.id] = order
        return order

    def move_order(self, order: Order, trigger: Trigger) -> None:
        """Set the order's next status, and prepare its webhook."""
        self._moves.append(move(order, trigger, self.now))

    def move_transaction(self, transaction: Transaction, trigger: Trigger) -> None:
        """Set the transaction's next status and record the event."""
        move(transaction, trigger, self.now)
        self.record_event(transaction)

    def record_event(self, transaction: Transaction) -> None:
        """Record the transaction's new status as an event (TEV-01)."""
        event = TransactionEvent(self.ids.uuid("event"), transaction.status, self.now)
        transaction.events = (*transaction.events, event)
        self._new_events.add(event.id)

    def decide(self, transaction_id: str, subject: Subject) -> Mapping[str, Any]:
        """Return the scenario's outcome for an attempt; a rehearsal takes precedence."""
        rehearsal = self.epoch.rehearsal
        decided = rehearsal.choose(subject) if rehearsal is not NO_REHEARSAL else None
        if decided is not None:
            return {key: value for key, value in decided.items() if key in subject.outcome_keys}
        uses = self.state.rule_uses
        decision = self.state.scenario.decide(subject, uses)
        if decision.rule is not None:
            uses = {**uses, decision.rule: uses.get(decision.rule, 0) + 1}
            self.state = self.state._replace(rule_uses=uses)
        self._decisions[transaction_id] = decision
        return decision.outcome

    def schedule(self, at: datetime, command: Command) -> None:
        """Add a command to the agenda."""
        self._scheduled.append((at, command))

    def announce(self, order: Order) -> None:
        """Send a webhook of an order, even if its status stays (A79)."""
        self._announced.append(order)

    def store_credential(self, credential: Credential) -> None:
        """Store a card."""
        self._credentials.append(credential)

    def store_qr_request(self, request: QrRequest) -> None:
        """Store a QR request, or its next version."""
        self._qr_requests[request.id] = request

    def store_delivery(self, delivery: Delivery) -> None:
        """Store a webhook's next version."""
        self._deliveries[delivery.id] = delivery

    def send(self, delivery_id: str, **resend: Any) -> None:
        """Send a webhook now; a no-op for a webhook dropped to make room for newer webhooks.

        ``resend`` has the fields of a manual resend (``QueuedDelivery``).
        """
        delivery = self.delivery(delivery_id)
        if delivery is not None:
            self.to_send.append(QueuedDelivery(delivery_id, delivery.order_id, **resend))

    def release_swapped(self) -> None:
        """Send the webhook deferred by a ``swap``, if any, and take its attempt off the agenda."""
        deferred = self.state.swapped
        if not deferred:
            return
        self.state = self.state._replace(swapped=())
        for due in self.epoch.timeline:
            if type(due.item) is AttemptDelivery and due.item.delivery_id in deferred:
                self.finished_entries.append(due.sequence)
        for delivery_id in deferred:
            self.send(delivery_id)

    def record_scan_form(self, form_id: str, order_id: str) -> None:
        """Record the order created by submitting a form on the QR page."""
        self._scan_forms[form_id] = order_id

    def record_action(
        self,
        action: Action,
        via: str,
        order_id: str | None,
        transaction_id: str | None = None,
        **details: Any,
    ) -> None:
        """Record an action as the cause of the statuses reached by this edit."""
        fields = {name: value for name, value in action.as_mapping().items() if name not in ACTION_FIELDS}
        self.cause = self.epoch.journal.next_id("action")
        self._records.append(
            PerformedAction(
                id=self.cause,
                at=self.now,
                real_at=self.real_at,
                actor=action.actor,
                action=action.action,
                via=via,
                order_id=order_id,
                transaction_id=transaction_id,
                how=self.epoch.journal.events.masking.mask_record({**fields, **details}),
            )
        )

    def record_agenda_event(self, due: DueItem[Command]) -> None:
        """Record a due event as the cause of the statuses reached by this edit."""
        command, self.cause = due.item, self.epoch.journal.next_id("event")
        self._records.append(
            AgendaEvent(self.cause, command.order_id, command.kind, command.label, self.now, self.real_at)
        )

    def publish(self, kind: str, /, **data: Any) -> None:
        """Publish an event once the edit is applied."""
        self.show(kind, self.epoch.journal.events.notice(**data))

    def show(self, kind: str, entry: Entry) -> None:
        """Show an entry to watchers once the edit is applied."""
        self._shown.append((kind, entry))

    def plan(self) -> ChangeSet | None:
        """Build the change set, with new versions and webhooks; return None if nothing has changed."""
        self._drop_unchanged()
        for order in self.orders.values():
            order.version += 1
            order.modified = self.now
        self._add_webhooks()
        self._remove_faults_at_rest()
        dues: list[DueItem[Command]] = []
        for number, (at, due) in enumerate(self._scheduled, self.epoch.timeline.sequence + 1):
            dues.append(DueItem(at, number, due))
        change = ChangeSet(
            self.orders,
            tuple(self._credentials),
            tuple(self._qr_requests.values()),
            tuple(self._deliveries.values()),
            tuple(dues),
            (*self.epoch.finished_entries, *self.finished_entries),
        )
        if self._is_empty(change):
            return None
        tracked = self.caller.tracked
        if tracked is not None and (answer := tracked.answer(self)) is not None:
            change = self._claim_key(change, answer)
        return self._add_state(change)

    def _claim_key(self, change: ChangeSet, answer: SavedAnswer) -> ChangeSet:
        """Add the answer to a request with a key, and forget the expired and surplus answers (A57)."""
        known = [saved for saved in self.epoch.store.answers() if saved.id != answer.id]
        surplus = len(known) + 1 - SAVED_ANSWERS_MAX
        forgotten = tuple(
            saved.id
            for place, saved in enumerate(known)
            if place < surplus or saved.at + SAVED_FOR <= self.now
        )
        return change._replace(answers=(answer,), forgotten_answers=forgotten)

    def apply(self, change: ChangeSet) -> None:
        """Apply the change in memory."""
        epoch = self.epoch
        timeline = epoch.timeline
        before = timeline.head()
        epoch.state = self.state
        epoch.ids = self.ids
        timeline.move_to(self.now)
        if self.finished_entries:
            timeline.remove(self.finished_entries)
        epoch.finished_entries.clear()
        for due in change.dues:
            timeline.add(due)
        if change.counters is not None:
            timeline.sequence = change.counters.sequence
        for form_id, order_id in self._scan_forms.items():
            epoch.scan_forms[form_id] = order_id
            if len(epoch.scan_forms) > SCAN_FORMS_MAX:
                epoch.scan_forms.popitem(last=False)
        if epoch.advance_log is not None:
            epoch.advance_log += self.advance_log
        epoch.orders_created += len(self.created)
        if change.answers and self.caller.tracked is not None:
            self.caller.tracked.end()
        after = timeline.head()
        self.is_due_earlier = after is not None and (before is None or after.at < before.at)

    def log(self) -> None:
        """Add what has happened to the journal, which shows it to watchers."""
        journal, records, moves = self.epoch.journal, self._records, list[tuple[str, Entry]]()
        for transaction_id, decision in self._decisions.items():
            explanation = journal.explain(decision)
            records.append(RecordedDecision(journal.next_id("decision"), transaction_id, explanation))
        for order in self.orders.values() if self._new_events else ():
            for attempt in order.transactions:
                for event in attempt.events:
                    if event.id in self._new_events:
                        records.append(self._reached_status(order.id, event.event, attempt))
        for order_id, before, after in self._reached:
            reached = self._reached_status(order_id, after, before=before)
            records.append(reached)
            moves.append(("status", reached))
        if records or self._shown:
            journal.add(records, [*moves, *self._shown])

    def queue_webhooks(self) -> None:
        """Queue the webhooks to send now."""
        for queued in self.to_send:
            self.epoch.outbox.put(queued, self.caller.held)

    @property
    def newest_created(self) -> Order | None:
        """The order or refund created by the edit, if any."""
        newest = next(reversed([order_id for order_id in self.orders if order_id in self.created]), None)
        return self.orders[newest] if newest is not None else None

    @property
    def newest_qr_request(self) -> QrRequest | None:
        """The QR request created or changed by the edit, if any."""
        return next(reversed(self._qr_requests.values()), None)

    def _drop_unchanged(self) -> None:
        """Drop unchanged orders, which need no new version."""
        for order_id, order in list(self.orders.items()):
            if order_id not in self.created and order == self.epoch.store.order(order_id):
                del self.orders[order_id]

    def _remove_faults_at_rest(self) -> None:
        """Remove the fault rules for orders at rest."""
        named = self.state.faults.order_ids if self.state.faults.webhooks else None
        if not named:
            return
        touched = {*self.orders, *(delivery.order_id for delivery in self._deliveries.values())}
        at_rest = {order_id for order_id in named & touched if self._is_at_rest(order_id)}
        if at_rest:
            faults = self.state.faults.without_orders(at_rest)
            unmatched = faults_unmatched(self.epoch, self.state.faults, faults)
            self.state = self.state.note_unmatched(unmatched)._replace(faults=faults)
            self.publish("faults", **self.state.faults.document)

    def _is_at_rest(self, order_id: str) -> bool:
        """Whether an order has reached a final status, and no webhook is pending or awaits a listener."""
        order = self.orders.get(order_id) or self.epoch.find_order(order_id)
        stored = {delivery.id: delivery for delivery in self.epoch.store.deliveries_of(order_id)}
        own = {item.id: item for item in self._deliveries.values() if item.order_id == order_id}
        deliveries = (stored | own).values()
        waiting = (DeliveryState.PENDING, DeliveryState.UNSENT)
        return order.is_final and all(item.state not in waiting for item in deliveries)

    def _add_state(self, change: ChangeSet) -> ChangeSet:
        epoch, state, before = self.epoch, self.state, self.epoch.state
        is_chosen = (
            state.base_settings is not before.base_settings
            or state.scenario is not before.scenario
            or state.faults.document is not before.faults.document
        )
        if is_chosen or epoch.store.is_new:
            change = change._replace(chosen=state.chosen)
        if not epoch.store.is_durable:
            return change
        sequence = epoch.timeline.sequence + len(change.dues)
        counters = epoch.counters(state, self.ids, sequence, max(epoch.timeline.now, self.now))
        return change._replace(counters=counters)

    def _is_empty(self, change: ChangeSet) -> bool:
        is_unchanged = not (any(change[:5]) or self.finished_entries or self.to_send)
        return is_unchanged and self.state is self.epoch.state

    def _reached_status(
        self, order_id: str, status: str, attempt: Transaction | None = None, before: str | None = None
    ) -> ReachedStatus:
        """Return the record of a new status of an order, or of its attempt."""
        return ReachedStatus(
            id=self.epoch.journal.next_id("status"),
            order_id=order_id,
            payment_method=attempt.payment_method if attempt is not None else None,
            transaction_id=attempt.id if attempt is not None else None,
            status=status,
            at=self.now,
            real_at=self.real_at,
            cause=self.cause,
            before=before,
        )

    def _add_webhooks(self) -> None:
        """Note the orders with a new status, and add their webhooks and those of announced orders."""
        for order_id in self.created:
            self._reached.append((order_id, None, self.orders[order_id].status))
        for moved in self._moves:
            if moved.subject_id not in self.created:
                self._reached.append((moved.subject_id, moved.before, moved.after))
        for order_id, before, after in self._reached:
            if before is not None or after != OrderStatus.NEW:
                self._add_webhook(self.orders[order_id], after)
        for order in self._announced:
            if order.id not in {order_id for order_id, *_ in self._reached}:
                self._add_webhook(order, order.status)

    def _add_webhook(self, order: Order, status: str) -> None:
        url = self.settings.webhook_url_of(order.webhook_url)
        if url is not None:
            delivery = Delivery(self.ids.uuid("delivery"), order.id, url, status, self.now)
            self.store_delivery(delivery)
            self.send(delivery.id)
