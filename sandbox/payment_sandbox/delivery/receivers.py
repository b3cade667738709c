"""What a receiver of webhooks gets, and what it returns."""

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple, Protocol

from payment_sandbox.orders.webhooks import Delivery, Reply, WebhookRequest
from payment_sandbox.projects.outbox import QueuedDelivery
from payment_sandbox.scenarios.effects import OneByOne, Together, WebhookEffect


class PreparedAttempt(NamedTuple):
    """A prepared attempt: what to send, when, and what a fault or a rehearsal does to it."""

    queued: QueuedDelivery
    delivery: Delivery
    request: WebhookRequest
    at: datetime
    real_at: datetime
    effect: WebhookEffect
    timeout_seconds: float
    webhook: str  # identifies the webhook to a listener, even after the server restarts

    @property
    def copies(self) -> int:
        """The number of copies to send."""
        return self.effect.copies

    def are_parallel(self, *, over_network: bool) -> bool:
        """Whether copies are sent in parallel, by default only over the network."""
        if isinstance(self.effect, Together):
            return True
        return over_network and not isinstance(self.effect, OneByOne)


class DeliveryOutcome(NamedTuple):
    """What came of one copy, and when it was sent; ``on_recorded`` is called once it is stored."""

    reply: Reply
    sent_at: datetime
    on_recorded: Callable[[], None] = lambda: None


class Receiver(Protocol):
    """A receiver of webhooks: an HTTP address, an application in this process, or a listener."""

    def post(self, attempt: PreparedAttempt) -> list[DeliveryOutcome]:
        """Send all copies of an attempt, and wait for the answers; an empty list if nobody takes them now."""
        ...
