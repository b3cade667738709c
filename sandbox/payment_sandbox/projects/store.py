"""Where a project's records live: a change set goes in whole, and is read back by identifier."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from payment_sandbox.kernel.timeline import Due
from payment_sandbox.orders.commands import Command
from payment_sandbox.orders.deliveries import Delivery
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.orders.vault import Credential

DELIVERIES_KEPT_MAX = 10_000
DELIVERIES_DROPPED_AT_ONCE = 1000


class StateRefused(Exception):
    """A state file cannot be used; it is as it was."""


@dataclass(slots=True)
class ChangeSet:
    """Everything that one edit changed."""

    orders: dict[str, Order] = field(default_factory=dict)
    credentials: list[Credential] = field(default_factory=list)
    qr_requests: list[QrRequest] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    commands: list[tuple[datetime, Command]] = field(default_factory=list)
    rules_used: list[int] = field(default_factory=list)
    touched: list[Delivery] = field(default_factory=list)  # known ones that were attempted or put off
    dues: list[Due[Command]] = field(default_factory=list)  # the commands, with their place on the agenda
    done: list[int] = field(default_factory=list)  # the places of those that are over
    running: Mapping[str, Any] | None = None  # clock and counters as they are now
    config: Mapping[str, Any] | None = None  # settings, scenario and faults, where they changed


class Store(Protocol):
    """Commits change sets and reads records back."""

    is_durable: bool
    is_new: bool  # a durable one that holds nothing yet: its first change set is a whole one
    deliveries_dropped: int

    def commit(self, change: ChangeSet) -> None:
        """Keep everything in it, or nothing."""
        ...

    def order(self, order_id: str) -> Order | None:
        """The newest version of an order or refund."""
        ...

    def order_ids(self) -> list[str]:
        """The identifiers of all orders and refunds, oldest first."""
        ...

    @property
    def newest_order_id(self) -> str | None:
        """The identifier of the newest order or refund, if there is one."""
        ...

    def credential(self, vault_token: str) -> Credential | None:
        """A stored card."""
        ...

    def qr_request(self, qr_id: str) -> QrRequest | None:
        """A QR request."""
        ...

    def delivery(self, delivery_id: str) -> Delivery | None:
        """A webhook, with its attempts."""
        ...

    def deliveries(self) -> list[Delivery]:
        """All webhooks, oldest first."""
        ...

    def credentials(self) -> list[Credential]:
        """All stored cards."""
        ...

    def qr_requests(self) -> list[QrRequest]:
        """All QR requests."""
        ...


class Storage(Protocol):
    """Where stores come from: one for each epoch of each project."""

    def store(self, project_id: str) -> Store:
        """An empty store; what an earlier epoch of this project left is gone with its first commit."""
        ...

    def together(self) -> AbstractContextManager[None]:
        """What is committed inside is kept whole or not at all."""
        ...


class MemoryStorage:
    """Keeps nothing beyond the process."""

    def store(self, project_id: str) -> "Store":
        """An empty store."""
        return MemoryStore()

    def together(self) -> AbstractContextManager[None]:
        """There is nothing that could be kept in part."""
        return nullcontext()


class MemoryStore:
    """Keeps everything in memory; old webhooks that are over make room for new ones."""

    is_durable = False
    is_new = False

    def __init__(self) -> None:
        self._orders: dict[str, Order] = {}
        self._credentials: dict[str, Credential] = {}
        self._qr_requests: dict[str, QrRequest] = {}
        self._deliveries: dict[str, Delivery] = {}
        self.deliveries_dropped = 0
        self.order = self._orders.get
        self.credential = self._credentials.get
        self.qr_request = self._qr_requests.get
        self.delivery = self._deliveries.get

    def commit(self, change: ChangeSet) -> None:
        """Swap in the new versions, and drop what there is no room for."""
        self.take(change)
        self.drop_deliveries()

    def take(self, change: ChangeSet) -> None:
        """Swap in the new versions."""
        self._orders.update(change.orders)
        for credential in change.credentials:
            self._credentials[credential.vault_token] = credential
        for request in change.qr_requests:
            self._qr_requests[request.id] = request
        for delivery in change.deliveries:
            self._deliveries[delivery.id] = delivery

    def drop_deliveries(self) -> list[str]:
        """Make room for new ones if there are too many; returns the identifiers of those that went.

        What is over goes first, oldest first; if all are still owed, the oldest of them go.
        """
        if len(self._deliveries) <= DELIVERIES_KEPT_MAX + DELIVERIES_DROPPED_AT_ONCE:
            return []
        by_use = sorted(self._deliveries.values(), key=lambda delivery: delivery.state == "pending")
        gone = [delivery.id for delivery in by_use[:DELIVERIES_DROPPED_AT_ONCE]]
        for delivery_id in gone:
            del self._deliveries[delivery_id]
        self.deliveries_dropped += len(gone)
        return gone

    def order_ids(self) -> list[str]:
        """The identifiers of all orders and refunds, oldest first."""
        return list(self._orders)

    @property
    def newest_order_id(self) -> str | None:
        """The identifier of the newest order or refund, if there is one."""
        return next(reversed(self._orders), None)

    def deliveries(self) -> list[Delivery]:
        """All webhooks, oldest first."""
        return list(self._deliveries.values())

    def credentials(self) -> list[Credential]:
        """All stored cards."""
        return list(self._credentials.values())

    def qr_requests(self) -> list[QrRequest]:
        """All QR requests."""
        return list(self._qr_requests.values())
