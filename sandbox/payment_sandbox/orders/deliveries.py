"""A webhook owed: at most ten tries, two minutes apart, every one recorded."""

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

from payment_sandbox.kernel.periods import Period

DELIVERIES_MAX: Final = 10  # LIM-06
RETRY_AFTER: Final = Period.parse("PT2M")
TIMEOUT_SECONDS: Final = 5.0  # SET-57
BODY_KEPT_BYTES: Final = 4096
ATTEMPTS_KEPT_MAX: Final = 100
ANSWERED_BY_SCENARIO: Final = "answered by the scenario"
TIMED_OUT_BY_SCENARIO: Final = "timed out, as the scenario says"
DROPPED_BY_SCENARIO: Final = "dropped by the scenario: the merchant never got it"
BY_SCENARIO: Final = frozenset({ANSWERED_BY_SCENARIO, TIMED_OUT_BY_SCENARIO, DROPPED_BY_SCENARIO})


class DeliveryState(StrEnum):
    """Whether a webhook is still owed."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class WebhookRequest(NamedTuple):
    """What one attempt sends."""

    url: str
    headers: dict[str, str]
    body: bytes


Send = Callable[[WebhookRequest, Callable[[int], None]], bytes]
"""Sends a webhook: reports the status as soon as there is one, and returns the answer's body."""


class Reply(NamedTuple):
    """What came back: a status and a body, or the error that kept them away."""

    duration_ms: float
    status: int | None = None
    body: str = ""
    error: str | None = None
    warning: str | None = None

    @property
    def is_delivered(self) -> bool:
        """2xx and 3xx count, and what a scenario drops; 4xx, 5xx and no answer are tried again."""
        return self.error is None and (self.status is None or self.status < 400)


class Attempt(NamedTuple):
    """One try, with what was sent and what came back."""

    number: int
    at: datetime
    real_at: datetime
    request: WebhookRequest
    reply: Reply


class Delivery(NamedTuple):
    """One webhook for one status change; ``status`` is what the order had become."""

    id: str
    order_id: str
    url: str
    status: str
    created: datetime
    state: DeliveryState = DeliveryState.PENDING
    attempts: tuple[Attempt, ...] = ()
    postponed: bool = False  # a scenario delayed or swapped it; that happens once

    @property
    def next_number(self) -> int:
        """The number of the next attempt, from 1."""
        return self.attempts[-1].number + 1 if self.attempts else 1

    def attempted(self, attempt: Attempt, *, is_copy: bool = False) -> "tuple[Delivery, datetime | None]":
        """With one more attempt, and when the next one is due; None when none is owed.

        An attempt asked for by hand after the end is recorded too, and can still deliver. A duplicate that
        a scenario sent has the number of its original and counts for nothing else.
        """
        attempts = (*self.attempts, attempt)
        if len(attempts) > ATTEMPTS_KEPT_MAX:  # the first ten stay, and the newest of those by hand
            attempts = (*attempts[:DELIVERIES_MAX], *attempts[DELIVERIES_MAX + 1 :])
        state, next_at = self.state, None
        if attempt.reply.is_delivered:
            state = DeliveryState.DELIVERED
        elif state is DeliveryState.PENDING and not is_copy:
            if attempt.number >= DELIVERIES_MAX:
                state = DeliveryState.FAILED
            else:
                next_at = RETRY_AFTER.after(attempt.at)
        return self._replace(attempts=attempts, state=state), next_at
