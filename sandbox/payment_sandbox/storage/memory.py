"""Records in memory, whose limits and quotas every store shares."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.orders.webhooks import DeliveryState
from payment_sandbox.projects.project import CreateStore
from payment_sandbox.projects.quotas import Usage
from payment_sandbox.projects.store import ChangeSet, Store
from payment_sandbox.storage.codec import encode

DELIVERIES_MAX: Final = 10_000
DELIVERIES_DROPPED_AT_ONCE: Final = 1000
CHOICES_ID: Final = ""  # settings, scenario and faults are records with this id

Sizes = dict[str | int, int]
"""The sizes of records in bytes, by id; the id of an agenda entry is its sequence number."""


class MemoryStorage:
    """Volatile storage in the memory of the process."""

    def __init__(self) -> None:
        self._deleted_keys: set[str] = set()

    def storage(self, project_id: str) -> CreateStore:
        """Return what creates the stores of a project."""
        return lambda project: MemoryStore()

    @contextmanager
    def draw_ids(self, ids: Ids) -> Iterator[Ids]:
        """Provide a copy of the project id generator."""
        yield ids.copy()

    def remove(self, project_id: str, fixed_key: str | None) -> None:
        """Remember the key of a deleted project, if a user chose it."""
        if fixed_key is not None:
            self._deleted_keys.add(fixed_key)

    def was_deleted(self, key_digest: str) -> bool:
        """Whether a deleted project had this key."""
        return key_digest in self._deleted_keys


def measure_records(change: ChangeSet) -> Sizes:
    """Measure the records of a change set in bytes of their snapshot form."""
    sizes: Sizes = {record_id: _encoded_size(record) for _, record_id, record in change.records()}
    sizes.update((due.sequence, _encoded_size((due.at, due.sequence, due.item))) for due in change.dues)
    if change.chosen is not None:
        sizes[CHOICES_ID] = _encoded_size(change.chosen)
    for sequence in change.finished_entries:
        sizes.pop(sequence, None)
    return sizes


def _encoded_size(record: Any) -> int:
    return len(json.dumps(encode(record)))


class RecordSizes:
    """The sizes of all records of a store, in bytes."""

    def __init__(self) -> None:
        self.sizes: Sizes = {}
        self.total = 0

    def total_after(self, sizes: Sizes, deleted: Iterable[str | int]) -> int:
        """Return the total after some records change size and others are deleted."""
        growth = sum(size - self.sizes.get(record_id, 0) for record_id, size in sizes.items())
        return self.total + growth - sum(self.sizes.get(record_id, 0) for record_id in deleted)

    def replace(self, sizes: Sizes, deleted: Iterable[str | int]) -> None:
        """Update the sizes of changed and deleted records."""
        deleted = set(deleted)
        self.total = self.total_after(sizes, deleted)
        self.sizes.update(sizes)
        for record_id in deleted:
            self.sizes.pop(record_id, None)


class MemoryStore(Store):
    """A store in memory; old finished webhooks make room for new ones."""

    def __init__(self) -> None:
        super().__init__()
        self._record_sizes = RecordSizes()  # empty if no quota counts bytes

    def commit(self, change: ChangeSet, *, ignores_quotas: bool = False) -> None:
        """Save the new versions, and drop the surplus webhooks."""
        surplus = self.surplus(change)
        if self.account is None:
            self.save(change, surplus)
            self.apply(change, surplus)
            return
        sizes = self.measure(change)
        usage = self.usage_after(change, sizes, surplus)
        if ignores_quotas and self.account.excess(usage) > 0:
            surplus += self._oldest_finished(change, surplus, self.account.excess(usage))
            usage = self.usage_after(change, sizes, surplus)
        with self.account.change_usage(usage, ignores_quotas=ignores_quotas):
            self.save(change, surplus)
            self.apply(change, surplus, sizes)

    def save(self, change: ChangeSet, surplus: Sequence[str]) -> None:
        """Do nothing, because there is no other storage."""

    def load(self, change: ChangeSet) -> None:
        """Apply saved records, and count their sizes."""
        sizes = self.measure(change)
        usage = self.usage_after(change, sizes, ())
        self.apply(change, (), sizes)
        if self.account is not None:
            self.account.set_usage(usage)

    def apply(self, change: ChangeSet, surplus: Sequence[str], sizes: Sizes | None = None) -> None:
        """Apply the new versions, without the surplus webhooks."""
        self._orders.update(change.orders)
        for credential in change.credentials:
            self._credentials[credential.vault_token] = credential
        for request in change.qr_requests:
            self._qr_requests[request.id] = request
        self._apply_deliveries(change, surplus)
        for answer_id in change.forgotten_answers:
            self._answers.pop(answer_id, None)
        for saved in change.answers:
            self._answers.pop(saved.id, None)  # an expired one, so that the order stays that of time
            self._answers[saved.id] = saved
        self.deliveries_dropped += len(surplus)
        self.revision += 1
        if sizes is not None:
            self._record_sizes.replace(sizes, (*surplus, *change.finished_entries, *change.forgotten_answers))

    def _apply_deliveries(self, change: ChangeSet, surplus: Sequence[str]) -> None:
        for delivery in change.deliveries:
            own = {each.id: each for each in self.deliveries_of(delivery.order_id)}
            self._deliveries_of[delivery.order_id] = tuple({**own, delivery.id: delivery}.values())
            self._deliveries[delivery.id] = delivery
        for order_id in {self._deliveries.pop(delivery_id).order_id for delivery_id in surplus}:
            rest = tuple(each for each in self._deliveries_of[order_id] if each.id in self._deliveries)
            self._deliveries_of[order_id] = rest
            if not rest:
                del self._deliveries_of[order_id]

    def measure(self, change: ChangeSet) -> Sizes | None:
        """Measure a change in bytes; None if no quota counts bytes."""
        return measure_records(change) if self.account is not None and self.account.needs_bytes else None

    def usage_after(self, change: ChangeSet, sizes: Sizes | None, surplus: Iterable[str]) -> Usage:
        """Return the usage after a change."""
        orders = len(self._orders) + sum(order_id not in self._orders for order_id in change.orders)
        deleted: set[str | int] = {*surplus, *change.finished_entries, *change.forgotten_answers}
        return Usage(orders, self._record_sizes.total_after(sizes, deleted) if sizes is not None else 0)

    def _oldest_finished(self, change: ChangeSet, surplus: Iterable[str], excess: int) -> list[str]:
        """Return the oldest finished webhooks whose removal brings the usage below a quota."""
        excluded = {*surplus, *(delivery.id for delivery in change.deliveries)}
        oldest: list[str] = []
        for delivery in self._deliveries.values():
            if excess <= 0:
                break
            if delivery.state is not DeliveryState.PENDING and delivery.id not in excluded:
                oldest.append(delivery.id)
                excess -= self._record_sizes.sizes.get(delivery.id, 0)
        return oldest

    def surplus(self, change: ChangeSet) -> list[str]:
        """Return the webhooks to drop to make room for a change.

        Finished webhooks are dropped first, then pending webhooks, each group oldest first.
        """
        known = self._deliveries
        if len(known) + len(change.deliveries) <= DELIVERIES_MAX + DELIVERIES_DROPPED_AT_ONCE:
            return []
        changed = {delivery.id for delivery in change.deliveries}
        candidates = [delivery for delivery in known.values() if delivery.id not in changed]
        candidates.sort(key=lambda delivery: delivery.state is DeliveryState.PENDING)
        return [delivery.id for delivery in candidates[:DELIVERIES_DROPPED_AT_ONCE]]
