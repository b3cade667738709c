"""Records in memory: what every store reads from."""

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.orders.cards import Credential
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.orders.webhooks import Delivery, DeliveryState
from payment_sandbox.projects.clock import RealTime
from payment_sandbox.projects.identity import Identity
from payment_sandbox.projects.journal import Journal
from payment_sandbox.projects.outbox import QueuedDelivery
from payment_sandbox.projects.quotas import Meter
from payment_sandbox.projects.store import ChangeSet, HistoryRow
from payment_sandbox.storage.codec import encode

DELIVERIES_KEPT_MAX: Final = 10_000
DELIVERIES_DROPPED_AT_ONCE: Final = 1000
ALONE: Final = nullcontext()


class OneProcess:
    """A storage that no other server uses."""

    awaits_courier = False

    def transaction(self, project: Any) -> AbstractContextManager[None]:
        """Nothing: the project's own lock is enough."""
        return ALONE

    def answer(self, project: Any, request_id: str) -> str | None:
        """What this process has answered to a request."""
        answer: str | None = project.epoch.answered.get(request_id)
        return answer

    def flush(self, project: Any) -> None:
        """Do nothing: there is no other server."""

    def watch(self, project: Any) -> None:
        """Do nothing, for the same reason."""

    def follow(self, project: Any) -> None:
        """Do nothing, for the same reason."""

    def hold_clock(self, project: Any) -> bool:
        """True: there is no other server that could have it."""
        return True

    def take_over(self, project: Any) -> None:
        """Do nothing: no other server sends anything."""

    def stop_advance(self, project: Any) -> None:
        """Do nothing: no other server advances the clock."""

    def let_clock_go(self) -> None:
        """Do nothing."""


class MemoryStorage(OneProcess):
    """Storage that is lost when the process ends."""

    def __init__(self) -> None:
        self._deleted_keys: set[str] = set()

    def storage(self, identity: Identity, real: RealTime) -> "MemoryStorage":
        """The storage of a project: the same for all."""
        return self

    def store(self) -> "MemoryStore":
        """An empty store."""
        return MemoryStore()

    @contextmanager
    def drawing(self, ids: Ids) -> Iterator[Ids]:
        """A copy of the identifiers of new projects."""
        yield ids.copied()

    def remove(self, project_id: str, fixed_key: str | None) -> None:
        """Note the key of a deleted project, if a user chose it."""
        if fixed_key is not None:
            self._deleted_keys.add(fixed_key)

    def was_deleted(self, key_digest: str) -> bool:
        """Whether a deleted project had this key."""
        return key_digest in self._deleted_keys


class MemoryStore:
    """Keeps everything in memory; old finished webhooks make room for new ones."""

    is_durable = False
    is_new = False
    is_shared = False
    is_clock_held = False

    def __init__(self) -> None:
        self._orders: dict[str, Order] = {}
        self._credentials: dict[str, Credential] = {}
        self._qr_requests: dict[str, QrRequest] = {}
        self._deliveries: dict[str, Delivery] = {}
        self._deliveries_of: dict[str, dict[str, None]] = {}  # their ids, by order
        self.deliveries_dropped = 0
        self.meter: Meter | None = None
        self.bytes_kept = 0
        self._sizes: dict[str, int] = {}  # in bytes, by id, if there is a meter
        self.order = self._orders.get
        self.credential = self._credentials.get
        self.qr_request = self._qr_requests.get
        self.delivery = self._deliveries.get

    def carries(self, queued: QueuedDelivery) -> bool:
        """Whether this process sends it."""
        return True

    def is_pending(self, queued: QueuedDelivery) -> bool:
        """Whether no other server has sent it."""
        return True

    def share(self, journal: Journal) -> None:
        """Do nothing: no other server writes to it."""

    def leave(self) -> None:
        """Do nothing: no other server sends."""

    def has_jobs(self) -> bool:
        """Whether another server has something to send."""
        return False

    def holds_clock(self) -> bool:
        """Whether no other server has taken the clock."""
        return True

    def commit(self, change: ChangeSet) -> None:
        """Swap in the new versions, and drop the surplus webhooks."""
        self.swap_in(change, self.surplus(change))

    def keep_history(self, rows: Sequence[HistoryRow]) -> None:
        """Do nothing: the journal is in memory already."""

    def history(self, number_max: int) -> Sequence[HistoryRow]:
        """Nothing, for the same reason."""
        return ()

    def load(self, change: ChangeSet) -> None:
        """Commit it, since there is no other storage."""
        self.commit(change)

    def swap_in(self, change: ChangeSet, surplus: list[str]) -> None:
        """Swap in the new versions, without the surplus webhooks."""
        self._orders.update(change.orders)
        for credential in change.credentials:
            self._credentials[credential.vault_token] = credential
        for request in change.qr_requests:
            self._qr_requests[request.id] = request
        for delivery in change.deliveries:
            self._deliveries[delivery.id] = delivery
            self._deliveries_of.setdefault(delivery.order_id, {})[delivery.id] = None
        for delivery_id in surplus:
            order_id = self._deliveries.pop(delivery_id).order_id
            of_order = self._deliveries_of[order_id]
            del of_order[delivery_id]
            if not of_order:
                del self._deliveries_of[order_id]
        self.deliveries_dropped += len(surplus)
        if self.meter is not None:
            self._measure(self.meter, change, surplus)

    def _measure(self, meter: Meter, change: ChangeSet, surplus: list[str]) -> None:
        before = self.bytes_kept
        for _, record_id, record in change.records():
            size = len(json.dumps(encode(record)))
            self.bytes_kept += size - self._sizes.get(record_id, 0)
            self._sizes[record_id] = size
        for delivery_id in surplus:
            self.bytes_kept -= self._sizes.pop(delivery_id, 0)
        meter.add(self.bytes_kept - before)

    def surplus(self, change: ChangeSet) -> list[str]:
        """The webhooks that must be dropped to make room for a change.

        Finished webhooks are dropped first, then pending ones; oldest first.
        """
        known = self._deliveries
        if len(known) + len(change.deliveries) <= DELIVERIES_KEPT_MAX + DELIVERIES_DROPPED_AT_ONCE:
            return []
        changed = {delivery.id for delivery in change.deliveries}
        free = [delivery for delivery in known.values() if delivery.id not in changed]
        free.sort(key=lambda delivery: delivery.state is DeliveryState.PENDING)
        return [delivery.id for delivery in free[:DELIVERIES_DROPPED_AT_ONCE]]

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

    def deliveries_of(self, order_id: str) -> list[Delivery]:
        """The webhooks of one order, oldest first."""
        ids = list(self._deliveries_of.get(order_id, ()))
        deliveries = map(self._deliveries.get, ids)
        return [delivery for delivery in deliveries if delivery is not None]

    def orders_newest_first(self) -> Iterator[Order]:
        """All orders and refunds, newest first; those created meanwhile are not among them."""
        for order_id in reversed(list(self._orders)):
            yield self._orders[order_id]

    def credentials(self) -> list[Credential]:
        """All stored cards."""
        return list(self._credentials.values())

    def qr_requests(self) -> list[QrRequest]:
        """All QR requests."""
        return list(self._qr_requests.values())
