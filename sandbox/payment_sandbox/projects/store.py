"""The records of an epoch, the interface to their storage, and the change set of an edit."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from payment_sandbox.kernel.timeline import DueItem
from payment_sandbox.orders.cards import Credential
from payment_sandbox.orders.commands import Command
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.projects.caller import SavedAnswer
from payment_sandbox.projects.faults import Use


@dataclass(frozen=True)
class Configuration:
    """The configuration of a project: settings, scenario and faults, as plain data."""

    settings: dict[str, Any]
    scenario: Mapping[str, Any]
    faults: Mapping[str, Any]
    is_inline: bool = field(default=False, kw_only=True)  # whether a test has sent the scenario
    unmatched: tuple[str, ...] = field(default=(), kw_only=True)  # sentences about removed rules


@dataclass(frozen=True)
class Counters:
    """State that changes automatically: the clock, counters, and swapped webhooks."""

    now: datetime
    clock_mode: str
    clock_rate: float
    rule_uses: tuple[tuple[int, int], ...]
    scenario_faults: tuple[Use, ...]
    fault_uses: tuple[Use, ...]
    seed: int
    id_series: int
    id_counts: dict[str, int]
    epoch: int
    sequence: int
    deliveries_dropped: int
    swapped: tuple[str, ...]


class ChangeSet(NamedTuple):
    """The changes made by an edit: new versions of records, and added and removed agenda entries."""

    orders: Mapping[str, Order] = {}
    credentials: tuple[Credential, ...] = ()
    qr_requests: tuple[QrRequest, ...] = ()
    deliveries: tuple[Delivery, ...] = ()
    dues: tuple[DueItem[Command], ...] = ()
    finished_entries: tuple[int, ...] = ()  # sequence numbers of removed agenda entries
    chosen: Configuration | None = None  # None if unchanged
    counters: Counters | None = None  # after the edit; for a durable store only
    answers: tuple[SavedAnswer, ...] = ()
    forgotten_answers: tuple[str, ...] = ()  # ids of expired and surplus answers

    def records(self) -> Iterator[tuple[str, str, Any]]:
        """Yield every changed record: the name of its field, its id, and the record."""
        yield from (("orders", order_id, order) for order_id, order in self.orders.items())
        yield from (("credentials", credential.vault_token, credential) for credential in self.credentials)
        yield from (("qr_requests", request.id, request) for request in self.qr_requests)
        yield from (("deliveries", delivery.id, delivery) for delivery in self.deliveries)
        yield from (("answers", saved.id, saved) for saved in self.answers)


class JournalRow(NamedTuple):
    """A stored journal record; ``number`` is the number in its id."""

    kind: str
    number: int
    body: str


class NotStored(Exception):
    """The state could not be stored in ``place`` or read from there, so nothing has changed."""

    def __init__(self, place: str, reason: str, *, is_full: bool) -> None:
        super().__init__(f"nothing has changed, because {place} could not be used: {reason}")
        self.place = place
        self.reason = reason
        self.is_full = is_full


class StateLost(NotStored):
    """The server has lost its connection to the state during a call, whose effect it may not know."""

    def __init__(self, problem: str) -> None:
        super().__init__("", problem, is_full=False)
        self.args = (problem,)


class Store(ABC):
    """The records of an epoch in memory; subclasses commit change sets."""

    is_durable: bool = False
    is_new: bool = False
    """Whether the store is durable and still empty, so that its first change set must be complete."""

    def __init__(self) -> None:
        self._orders: dict[str, Order] = {}
        self._credentials: dict[str, Credential] = {}
        self._qr_requests: dict[str, QrRequest] = {}
        self._deliveries: dict[str, Delivery] = {}
        self._answers: dict[str, SavedAnswer] = {}  # oldest first
        self._deliveries_of: dict[str, tuple[Delivery, ...]] = {}  # by order; replaced by each change
        self.revision = 0
        """Increases after each change of orders and webhooks."""
        self.deliveries_dropped = 0
        self.order = self._orders.get
        """The newest version of an order or refund."""
        self.credential = self._credentials.get
        """A stored card, by its token."""
        self.qr_request = self._qr_requests.get
        self.delivery = self._deliveries.get
        """A webhook, with its attempts."""
        self.answer = self._answers.get
        """The answer to a request with an ``Idempotency-Key``, by the digest of the key."""

    @abstractmethod
    def commit(self, change: ChangeSet) -> None:
        """Commit a change set atomically."""

    @abstractmethod
    def load(self, change: ChangeSet) -> None:
        """Load saved records into memory."""

    def save_journal_rows(self, rows: Sequence[JournalRow]) -> None:
        """Save journal records, and delete the oldest beyond the limit."""
        return

    def journal_rows(self, number_max: int) -> Sequence[JournalRow]:
        """Read the saved journal records up to a number, oldest first.

        Raises:
            NotStored: the storage does not answer.
        """
        return ()

    def order_ids(self) -> list[str]:
        """Return the identifiers of all orders and refunds, oldest first."""
        return list(self._orders)

    @property
    def newest_order_id(self) -> str | None:
        """The identifier of the newest order or refund, if any."""
        return next(reversed(self._orders), None)

    def deliveries(self) -> list[Delivery]:
        """Return all webhooks, oldest first."""
        return list(self._deliveries.values())

    def deliveries_of(self, order_id: str) -> tuple[Delivery, ...]:
        """Return the webhooks of one order, oldest first."""
        return self._deliveries_of.get(order_id, ())

    def orders_newest_first(self) -> Iterator[Order]:
        """Yield all orders and refunds, newest first, except those created during the iteration."""
        for order_id in reversed(list(self._orders)):
            yield self._orders[order_id]

    def credentials(self) -> list[Credential]:
        """Return all stored cards."""
        return list(self._credentials.values())

    def answers(self) -> list[SavedAnswer]:
        """Return all answers to requests with an ``Idempotency-Key``, oldest first."""
        return list(self._answers.values())

    def qr_requests(self) -> list[QrRequest]:
        """Return all QR requests."""
        return list(self._qr_requests.values())
