"""The interface of a store, and the change set of an edit, which is saved completely or not at all."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from payment_sandbox.kernel.timeline import Due
from payment_sandbox.orders.cards import Credential
from payment_sandbox.orders.commands import Command
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.projects.faults import Use
from payment_sandbox.projects.quotas import Account


class Chosen(NamedTuple):
    """What the user chose for a project: settings, scenario and faults, as plain data."""

    settings: dict[str, Any]
    scenario: Mapping[str, Any]
    faults: Mapping[str, Any]


class Counters(NamedTuple):
    """State that changes automatically: clock, counters, and webhooks that wait for others."""

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
    """Everything that one edit changed: new versions of records, and agenda entries added and removed."""

    orders: Mapping[str, Order] = {}
    credentials: tuple[Credential, ...] = ()
    qr_requests: tuple[QrRequest, ...] = ()
    deliveries: tuple[Delivery, ...] = ()
    dues: tuple[Due[Command], ...] = ()
    finished: tuple[int, ...] = ()  # sequence numbers of removed agenda entries
    chosen: Chosen | None = None  # None if it did not change
    counters: Counters | None = None  # after the edit; for a durable store only

    def records(self) -> Iterator[tuple[str, str, Any]]:
        """Every record in it: the name of its field here, its id, and itself."""
        yield from (("orders", order_id, order) for order_id, order in self.orders.items())
        yield from (("credentials", credential.vault_token, credential) for credential in self.credentials)
        yield from (("qr_requests", request.id, request) for request in self.qr_requests)
        yield from (("deliveries", delivery.id, delivery) for delivery in self.deliveries)


class HistoryRow(NamedTuple):
    """A record of a journal as it is stored; its number is that in its id, which grows."""

    kind: str
    number: int
    body: str


class Store(Protocol):
    """Commits change sets and reads records back."""

    is_durable: bool
    is_new: bool
    """Whether this is a durable store without any commit: its first change set must be complete."""
    deliveries_dropped: int
    account: Account | None
    """Counts what the project keeps; None if the server has no quotas."""

    def commit(self, change: ChangeSet, *, is_due: bool = False) -> None:
        """Save everything in it, or nothing; ``is_due`` if the service owes it.

        Raises:
            QuotaReached: the project would keep too much, and the change is not due.
        """
        ...

    def load(self, change: ChangeSet) -> None:
        """Load into memory what is already saved."""
        ...

    def keep_history(self, rows: Sequence[HistoryRow]) -> None:
        """Save records of the journal, and delete as many old ones as are too many."""
        ...

    def history(self, number_max: int) -> Sequence[HistoryRow]:
        """The saved records of the journal up to a number, oldest first.

        Raises:
            NotStored: they cannot be read just now.
        """
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

    def deliveries_of(self, order_id: str) -> list[Delivery]:
        """The webhooks of one order, oldest first."""
        ...

    def orders_newest_first(self) -> Iterator[Order]:
        """All orders and refunds, newest first."""
        ...

    def credentials(self) -> list[Credential]:
        """All stored cards."""
        ...

    def qr_requests(self) -> list[QrRequest]:
        """All QR requests."""
        ...


class Storage(Protocol):
    """Creates the stores of one project, one per epoch."""

    def store(self) -> Store:
        """An empty store; its first commit deletes what an earlier epoch left."""
        ...
