"""An edit is a unit of work: on a clean exit all of it is so, on an exception none of it ever was."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.kernel.moments import timestamp
from payment_sandbox.methods.base import Terms
from payment_sandbox.orders.commands import Command
from payment_sandbox.orders.deliveries import Delivery
from payment_sandbox.orders.facts import StatusChanged
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.orders.statuses import OrderStatus, Trigger, move
from payment_sandbox.orders.transaction import Transaction, TransactionEvent
from payment_sandbox.orders.vault import Credential
from payment_sandbox.projects.journal import StatusReached
from payment_sandbox.projects.settings import Settings
from payment_sandbox.projects.store import ChangeSet
from payment_sandbox.scenarios.model import Decision, Subject

if TYPE_CHECKING:
    from payment_sandbox.projects.project import Project


Moved = dict[str, str | None]
"""A status that an order has reached: ``order_id``, ``before``, ``after``, ``at``."""


class Edit:
    """Copies to work on, and what shall follow from them.

    It is made with the project's state lock held, by ``Project.edit``.
    """

    __slots__ = ("_created", "_moves", "_project", "_recorded", "change", "decisions", "now", "settings")

    def __init__(self, project: "Project", now: datetime) -> None:
        self._project = project
        self._created: set[str] = set()
        self._moves: list[StatusChanged] = []
        self._recorded: set[str] = set()
        self.change = ChangeSet()
        self.decisions: dict[str, Decision] = {}  # by transaction
        self.now = now
        self.settings: Settings = project.settings

    @property
    def has_created(self) -> bool:
        """Whether there is a new order."""
        return bool(self._created)

    @property
    def ids(self) -> Ids:
        """The project's identifiers."""
        return self._project.ids

    @property
    def terms(self) -> Terms:
        """What a payment method may know."""
        return self._project.terms(self.now)

    def order(self, order_id: str) -> Order:
        """A copy of an order to work on; the same one each time.

        Raises:
            Unknown: there is no such order here.
        """
        order = self.change.orders.get(order_id)
        if order is None:
            order = self.change.orders[order_id] = self._project.find_order(order_id).copied()
        return order

    def add(self, order: Order) -> Order:
        """A new order."""
        self._created.add(order.id)
        self.change.orders[order.id] = order
        return order

    def move_order(self, order: Order, trigger: Trigger) -> None:
        """Set the order's next status; its webhook follows."""
        self._moves.append(move(order, trigger, self.now))

    def move_transaction(self, transaction: Transaction, trigger: Trigger) -> None:
        """Set the transaction's next status and record the event."""
        move(transaction, trigger, self.now)
        self.record_event(transaction)

    def record_event(self, transaction: Transaction) -> None:
        """Note the status that a transaction has reached (TEV-01)."""
        event = TransactionEvent(self.ids.uuid("event"), transaction.status, self.now)
        transaction.events = (*transaction.events, event)
        self._recorded.add(event.id)

    def decide(self, transaction_id: str, subject: Subject) -> dict[str, Any]:
        """Ask the scenario for the outcome of an attempt; the use counts once the edit is done."""
        decision = self._project.scenario.decide(subject, self._project.rule_uses)
        if decision.rule is not None:
            self.change.rules_used.append(decision.rule)
        self.decisions[transaction_id] = decision
        return decision.outcome

    def schedule(self, at: datetime, command: Command) -> None:
        """Put a command on the agenda."""
        self.change.commands.append((at, command))

    def touch(self, delivery: Delivery) -> None:
        """Keep what happened to a webhook that was owed before."""
        self.change.touched.append(delivery)

    def store_credential(self, credential: Credential) -> None:
        """Keep a card in the vault."""
        self.change.credentials.append(credential)

    def store_qr_request(self, request: QrRequest) -> None:
        """Keep a QR request."""
        self.change.qr_requests.append(request)

    @property
    def moved(self) -> Iterator[Moved]:
        """The statuses that orders have reached, for those who watch."""
        at = timestamp(self.now)
        for order_id in self._created:
            status = self.change.orders[order_id].status
            yield {"order_id": order_id, "before": None, "after": status, "at": at}
        for moved in self._moves:
            if moved.subject_id not in self._created:
                yield {"order_id": moved.subject_id, "before": moved.before, "after": moved.after, "at": at}

    def reached(self, moves: Iterable[Moved], real_at: datetime) -> Iterator[StatusReached]:
        """The statuses that attempts and, by ``moves``, orders have reached, for the journal."""
        for order in self.change.orders.values():
            for attempt in order.transactions:
                for event in attempt.events:
                    if event.id in self._recorded:
                        yield StatusReached(order.id, attempt.payment_method, event.event, self.now, real_at)
        for moved in moves:
            yield StatusReached(str(moved["order_id"]), None, str(moved["after"]), self.now, real_at)

    def finish(self) -> ChangeSet:
        """Number the new versions and owe their webhooks."""
        for order in self.change.orders.values():
            order.version += 1
            order.modified = self.now
            if order.id in self._created and order.status != OrderStatus.NEW:
                self._owe(order, order.status)
        for moved in self._moves:
            if moved.subject_id not in self._created:
                self._owe(self.change.orders[moved.subject_id], moved.after)
        return self.change

    def _owe(self, order: Order, status: str) -> None:
        url = order.webhook_url or self.settings.webhook_url
        if url is not None:
            self.change.deliveries.append(
                Delivery(self.ids.uuid("delivery"), order.id, url, status, self.now)
            )
