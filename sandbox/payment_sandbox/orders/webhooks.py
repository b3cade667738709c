"""Webhook deliveries: at most ten automatic attempts, two minutes apart."""

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

from payment_sandbox.kernel.times import Period

ATTEMPTS_MAX: Final = 10  # LIM-06
RETRY_AFTER: Final = Period.parse("PT2M")
TIMEOUT_SECONDS: Final = 5.0  # SET-57
ATTEMPT_BODY_BYTES: Final = 4096
ATTEMPTS_STORED_MAX: Final = 100
ANSWERED_BY_SCENARIO: Final = "answered by the scenario"
TIMED_OUT_BY_SCENARIO: Final = "timed out, as the scenario says"
DROPPED_BY_SCENARIO: Final = "dropped by the scenario: the merchant never got it"
LOST: Final = "lost"
"""The outcome of a webhook that counts as delivered, although a fault withheld it from the shop."""
NOT_SENT_IN_TESTS: Final = "not sent: webhooks of tests stay on this machine"
LISTEN: Final = "Make the shop listen at"
"""The beginning of advice to which the helpers for tests add a call of their own language."""
NO_ANSWER: Final = "no answer within"
THEN_FAILED: Final = ", then failed: "
LEADS_TO: Final = "this one leads to "
"""In the warning about a failure after the response: ``answered 200, then failed: KeyError: 'sku'``."""
NOT_DELIVERED_TO: Final = "not sent: this server delivers webhooks only to"


class DeliveryState(StrEnum):
    """The state of a delivery."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"
    UNSENT = "unsent"  # no listener was connected, or, without a stored record, no address was set


class WebhookRequest(NamedTuple):
    """The HTTP request of one attempt."""

    url: str
    headers: dict[str, str]
    body: bytes


class ReceiverAnswer(NamedTuple):
    """A receiver's response without its status; ``traceback`` is set if its handler raised an exception.

    ``failure`` is an exception that followed the response, so that nobody outside the process can notice it.
    """

    body: bytes = b""
    failure: str | None = None
    traceback: str | None = None
    location: str | None = None  # the target of a redirect


class Undelivered(Exception):
    """The receiver failed; the message explains the failure to the receiver's developer."""

    traceback: str | None = None


Send = Callable[[WebhookRequest, Callable[[int], None], float], ReceiverAnswer]
"""Sends a webhook within some seconds, and reports the status of the response as soon as it arrives.

Raises:
    Undelivered: the receiver sent no response, or only part of it.
"""


def no_answer_within(timeout_seconds: float) -> str:
    """Return the error of an attempt that was not answered in time."""
    return f"{NO_ANSWER} {timeout_seconds:g} second{'' if timeout_seconds == 1 else 's'}"


DURATION_MS_MAX: Final = 86_400_000  # no attempt takes a day


class Reply(NamedTuple):
    """The result of an attempt: a status and a body, or an error; ``duration_ms`` has a maximum."""

    duration_ms: float
    status: int | None = None
    body: str = ""
    error: str | None = None
    warning: str | None = None
    traceback: str | None = None  # if a handler in this process raised an exception

    @property
    def is_delivered(self) -> bool:
        """Whether the attempt counts as delivered (2xx, 3xx, or dropped by a scenario) and needs no retry."""
        return self.error is None and (self.status is None or self.status < 400)

    @property
    def fault(self) -> str | None:
        """The outcome of a fault, such as ``lost (fault)``; None if the shop received the webhook."""
        if self.warning == DROPPED_BY_SCENARIO:
            return f"{LOST} (fault)"
        if self.warning == ANSWERED_BY_SCENARIO:
            return f"{self.status} (fault)"
        return "timed out (fault)" if self.error == TIMED_OUT_BY_SCENARIO else None


class WebhookAttempt(NamedTuple):
    """One attempt, with request and reply."""

    number: int
    at: datetime
    real_at: datetime
    request: WebhookRequest
    reply: Reply

    @property
    def is_withheld(self) -> bool:
        """Whether a fault withheld the webhook from the shop."""
        return self.reply.fault is not None


MANUAL_ATTEMPT: Final = 0
"""The attempt number of a manual resend with another URL or body."""


class UnsentWebhook(NamedTuple):
    """A status whose webhook was not sent, because no address was set."""

    order_id: str
    status: str
    before: str | None
    at: datetime


class Delivery(NamedTuple):
    """One webhook for one status change; ``status`` is the new status of the order."""

    id: str
    order_id: str
    url: str
    status: str
    created: datetime
    state: DeliveryState = DeliveryState.PENDING
    attempts: tuple[WebhookAttempt, ...] = ()
    postponed: bool = False  # whether a delay or a swap has postponed an attempt
    postponed_number: int = 0  # the last attempt that was postponed; 0 in records of older versions

    @property
    def next_number(self) -> int:
        """The number of the next attempt, from 1."""
        return max((attempt.number for attempt in self.attempts), default=0) + 1

    @property
    def is_postponed(self) -> bool:
        """Whether the next attempt has been postponed, which happens at most once to each attempt."""
        return self.postponed and self.postponed_number in (0, self.next_number)

    @property
    def delivery_attempts(self) -> tuple[WebhookAttempt, ...]:
        """The delivery attempts, without manual resends with overrides."""
        return tuple([attempt for attempt in self.attempts if attempt.number != MANUAL_ATTEMPT])

    @property
    def is_lost(self) -> bool:
        """Whether the webhook counts as delivered, although a fault withheld it from the shop."""
        arrived = any(each.reply.is_delivered and not each.is_withheld for each in self.delivery_attempts)
        return self.state is DeliveryState.DELIVERED and not arrived

    @property
    def outcome(self) -> str:
        """The displayed state: ``lost`` instead of ``delivered`` if a fault withheld the webhook."""
        return LOST if self.is_lost else str(self.state)

    def record_attempt(
        self, attempt: WebhookAttempt, *, is_copy: bool = False
    ) -> "tuple[Delivery, datetime | None]":
        """Record an attempt; return the new delivery and the time of the next attempt, if any.

        A manual attempt after the last retry is recorded, too, and can still deliver the webhook. A
        scenario's duplicate has the number of its original and does not count as an attempt.
        """
        attempts = (*self.attempts, attempt)
        if len(attempts) > ATTEMPTS_STORED_MAX:  # the first ten attempts and the newest resends are stored
            attempts = (*attempts[:ATTEMPTS_MAX], *attempts[ATTEMPTS_MAX + 1 :])
        state, next_at = self.state, None
        if attempt.reply.is_delivered:
            state = DeliveryState.DELIVERED
        elif state is DeliveryState.PENDING and not is_copy:
            if attempt.number >= ATTEMPTS_MAX:
                state = DeliveryState.FAILED
            else:
                next_at = RETRY_AFTER.after(attempt.at)
        return self._replace(attempts=attempts, state=state), next_at
