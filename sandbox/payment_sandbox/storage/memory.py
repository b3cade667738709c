"""Records in memory, whose limits every store shares."""

from collections.abc import Sequence
from typing import Final

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.orders.webhooks import DeliveryState
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.store import ChangeSet, Store

DELIVERIES_MAX: Final = 10_000
DELIVERIES_DROPPED_AT_ONCE: Final = 1000


class MemoryStorage:
    """Volatile storage in the memory of the process."""

    def __init__(self) -> None:
        self._deleted_keys: set[str] = set()

    def create_store(self, project: Project) -> Store:
        """Create the empty store of a project's next epoch."""
        return MemoryStore()

    def save_ids(self, ids: Ids) -> None:
        """Do nothing, because no generator outlives the process."""

    def remove(self, project_id: str, fixed_key: str | None) -> None:
        """Remember the key of a deleted project, if a user chose it."""
        if fixed_key is not None:
            self._deleted_keys.add(fixed_key)

    def was_deleted(self, key_digest: str) -> bool:
        """Whether a deleted project had this key."""
        return key_digest in self._deleted_keys


class MemoryStore(Store):
    """A store in memory; old finished webhooks make room for new ones."""

    def commit(self, change: ChangeSet) -> None:
        """Save the new versions, and drop the surplus webhooks."""
        surplus = self.surplus(change)
        self.save(change, surplus)
        self.apply(change, surplus)

    def save(self, change: ChangeSet, surplus: Sequence[str]) -> None:
        """Do nothing, because there is no other storage."""

    def load(self, change: ChangeSet) -> None:
        """Apply saved records."""
        self.apply(change, ())

    def apply(self, change: ChangeSet, surplus: Sequence[str]) -> None:
        """Apply the new versions, without the surplus webhooks."""
        self._orders.update(change.orders)
        for credential in change.credentials:
            self._credentials[credential.vault_token] = credential
        for request in change.qr_requests:
            self._qr_requests[request.id] = request
        if change.deliveries or surplus:
            self._apply_deliveries(change, surplus)
        for answer_id in change.forgotten_answers:
            self._answers.pop(answer_id, None)
        for saved in change.answers:
            self._answers.pop(saved.id, None)  # an expired one, so that the order stays that of time
            self._answers[saved.id] = saved
        self.deliveries_dropped += len(surplus)
        self.revision += 1

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
