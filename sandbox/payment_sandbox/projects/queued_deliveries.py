"""The webhooks to send, and the outbox of a host that delivers nothing."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple


class ResendChanges(NamedTuple):
    """Changes to a resent webhook; None keeps the original value."""

    url: str | None = None
    body: str | None = None


NO_CHANGES: Final = ResendChanges()


class QueuedDelivery(NamedTuple):
    """A queued delivery; a manual resend is ``forced``, and may have ``changed`` values."""

    delivery_id: str
    order_id: str
    forced: bool = False
    changed: ResendChanges = NO_CHANGES

    @property
    def is_changed(self) -> bool:
        """Whether the webhook differs from the original."""
        return self.changed != NO_CHANGES


@dataclass(slots=True, eq=False)
class HeldDeliveries:
    """The webhooks of one call that are held until its response is sent."""

    outbox: "Outbox"
    entries: deque[Any] = field(default_factory=deque)
    precede_response: bool = False  # whether the call sends them itself, before its response
    wakes_scheduler: bool = False  # whether the agenda has a new earliest entry
    is_over: bool = False

    def is_holding(self, outbox: "Outbox") -> bool:
        """Whether deliveries for this outbox are held."""
        return self.outbox is outbox and not self.is_over


class Outbox:
    """The outbox of an epoch whose host delivers nothing; ``delivery.outbox`` has the one that delivers."""

    is_closed = False

    @property
    def is_idle(self) -> bool:
        """Whether nothing is held, queued or sent."""
        return True

    @property
    def is_delivering(self) -> bool:
        """Whether a webhook is being sent."""
        return False

    def put(self, queued: QueuedDelivery, held: HeldDeliveries | None = None) -> None:
        """Queue or hold a webhook."""

    def start(self) -> None:
        """Let somebody send what is queued."""

    def release(self, held: HeldDeliveries) -> None:
        """Queue the held webhooks."""
        held.is_over = True

    def send_now(self, queued: QueuedDelivery) -> None:
        """Send a webhook on this thread, outside the queue."""

    def send_held(self, held: HeldDeliveries) -> None:
        """Send the held webhooks on this thread."""
        self.release(held)

    def send_unsent(self) -> None:
        """Queue the webhooks that no listener took."""

    def settle(
        self,
        timeout_seconds: float,
        is_enough: Callable[[], bool] = lambda: False,
        orders: Iterable[str] | None = None,
    ) -> bool:
        """Wait for the answers to webhooks; return False on timeout, or once ``is_enough`` is true."""
        return True

    def pending(self) -> list[str]:
        """Return the ids of the webhooks that are held, queued or sent, oldest first."""
        return []

    def wake(self) -> None:
        """Wake the waiting threads to check ``is_enough`` again."""

    def close(self) -> None:
        """Drop all webhooks except those being sent, and accept no more."""
