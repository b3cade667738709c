"""Where a project's records live: a change set goes in whole, and is read back by identifier."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from sandbox.orders.commands import Command
from sandbox.orders.deliveries import Delivery
from sandbox.orders.order import Order
from sandbox.orders.qr import QrRequest
from sandbox.orders.vault import Credential

DELIVERIES_KEPT_MAX = 10_000
DELIVERIES_DROPPED_AT_ONCE = 1000


@dataclass(slots=True)
class ChangeSet:
    """Everything that one edit changed."""

    orders: dict[str, Order] = field(default_factory=dict)
    credentials: list[Credential] = field(default_factory=list)
    qr_requests: list[QrRequest] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    commands: list[tuple[datetime, Command]] = field(default_factory=list)
    rules_used: list[int] = field(default_factory=list)


class Store(Protocol):
    """Commits change sets and reads records back."""

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


class MemoryStore:
    """Keeps everything in memory; old webhooks that are over make room for new ones."""

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
        """Swap in the new versions."""
        self._orders.update(change.orders)
        for credential in change.credentials:
            self._credentials[credential.vault_token] = credential
        for request in change.qr_requests:
            self._qr_requests[request.id] = request
        for delivery in change.deliveries:
            self._deliveries[delivery.id] = delivery
        if len(self._deliveries) > DELIVERIES_KEPT_MAX + DELIVERIES_DROPPED_AT_ONCE:
            self._drop_oldest()

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

    def _drop_oldest(self) -> None:
        """What is over goes first, oldest first; if all are still owed, the oldest of them go."""
        by_use = sorted(self._deliveries.values(), key=lambda delivery: delivery.state == "pending")
        for delivery in by_use[:DELIVERIES_DROPPED_AT_ONCE]:
            del self._deliveries[delivery.id]
        self.deliveries_dropped += DELIVERIES_DROPPED_AT_ONCE
