"""The receivers of webhooks: what they get and return, and the listener, which polls for its shop."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from threading import Condition, Event
from typing import Final, NamedTuple, Protocol

from payment_sandbox.orders.webhooks import (
    Delivery,
    ReceiverAnswer,
    Reply,
    WebhookRequest,
    no_answer_within,
)
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.locks import RELAY, ranked_lock
from payment_sandbox.projects.outbox import QueuedDelivery
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.slots import Slot
from payment_sandbox.scenarios.effects import WebhookEffect

REPORT_SECONDS_MAX: Final = 2.0  # for the report of the shop's answer, after the time limit of the attempt
RECORDED_SECONDS_MAX: Final = 5.0
REPLACED_MAX: Final = 100  # replaced listeners to remember


class PreparedAttempt(NamedTuple):
    """A prepared attempt: what to send, when, and what a fault or a rehearsal does to it."""

    project: Project
    epoch: Epoch
    queued: QueuedDelivery
    delivery: Delivery
    request: WebhookRequest
    at: datetime
    real_at: datetime
    effect: WebhookEffect
    timeout_seconds: float


class DeliveryOutcome(NamedTuple):
    """What came of one copy, and when it was sent; ``on_recorded`` is called once it is stored."""

    reply: Reply
    sent_at: datetime
    on_recorded: Callable[[], None] | None = None


class Receiver(Protocol):
    """A receiver of webhooks: an HTTP address, an application in this process, a listener, or none."""

    def post(self, attempt: PreparedAttempt) -> list[DeliveryOutcome]:
        """Send all copies of an attempt, and wait for the answers; an empty list if nobody takes them now."""


class ProcessReceiver(Protocol):
    """An application in this process that receives webhooks."""

    def __call__(
        self, request: WebhookRequest, on_status: Callable[[int], None], timeout_seconds: float, /
    ) -> ReceiverAnswer:
        """Deliver one webhook, and report the response's status as soon as it is known."""

    def locate_handler(self, thread_id: int) -> str | None:
        """Locate the handler that a thread is waiting for, if any."""

    def report_late_handler(self, location: str, timeout_seconds: float) -> None:
        """Report a handler that has not answered in time, and whose call still waits for it."""


class Destination:
    """Where a project's webhooks go instead of over the network, and the allowed hosts on other machines."""

    receiver: ProcessReceiver | None = None
    hosts: frozenset[str] | None = None  # hosts served by the receiver; None: all hosts
    on_waiting_thread = False  # the receiver runs on the thread that waits for the webhooks, if any
    allowed: frozenset[str] = frozenset()  # hosts on other machines


@dataclass(eq=False)
class OfferedAttempt:
    """A copy of an attempt that is offered to a listener, until its answer is recorded."""

    attempt: PreparedAttempt
    copy: int
    is_taken: bool = False  # by the newest listener
    reply: Reply | None = None  # the shop's answer
    recorded: Event = field(default_factory=Event)

    @property
    def webhook(self) -> str:
        """The identity of the webhook, the same even after the server restarts."""
        project, epoch, _, delivery, *_ = self.attempt
        return f"{project.identity.origin}-{epoch.number}-{delivery.id}"

    @property
    def label(self) -> str:
        """The identity of the attempt; one by hand is never a duplicate."""
        attempt = self.attempt
        by_hand = f"/{attempt.real_at:%H%M%S.%f}" if attempt.queued.forced else ""
        return f"{self.webhook}/{attempt.delivery.next_number}/{self.copy}{by_hand}"

    @property
    def is_over(self) -> bool:
        """Whether the project was reset."""
        return self.attempt.epoch.outbox.is_closed


class ProjectListener:
    """The listener of a project, which has at most one; a new listener replaces the previous one.

    Every call by a listener ends the listener's earlier calls, whose connections may be dead, and repeats the
    offers of unanswered attempts.
    """

    def __init__(self) -> None:
        self._changed = Condition(ranked_lock(RELAY))  # type: ignore[arg-type]
        self._offered: dict[str, OfferedAttempt] = {}  # unanswered attempts by label
        self._newest_call = 0
        self.is_connected = False
        """Whether a listener has called, has not left, and has taken the last attempt in time."""
        self._name: str | None = None
        self.replaced: deque[str] = deque(maxlen=REPLACED_MAX)
        """The listeners that have disconnected, or were replaced."""

    # As a receiver

    def post(self, attempt: PreparedAttempt) -> list[DeliveryOutcome]:
        """Offer all copies, and wait for the shop's answers; an empty list if no listener takes them.

        A listener that does not take them in time counts as disconnected.
        """
        seconds, copies = attempt.timeout_seconds, range(1, attempt.effect.copies + 1)
        offers = {offer.label: offer for offer in (OfferedAttempt(attempt, copy) for copy in copies)}
        first = next(iter(offers.values()))
        with self._changed:
            self._offered |= offers
            self._changed.notify_all()
            try:
                is_in_time = self._changed.wait_for(
                    lambda: first.is_taken or not self.is_connected or first.is_over, seconds
                )
                self.is_connected = self.is_connected and is_in_time
                if not first.is_taken:
                    return []
                replies = [(offer, self._await_reply(offer, seconds)) for offer in offers.values()]
            finally:
                for label in offers:
                    self._offered.pop(label, None)
        return [
            DeliveryOutcome(reply, attempt.real_at, offer.recorded.set)
            for offer, reply in replies
            if reply is not None
        ]

    def _await_reply(self, offer: OfferedAttempt, seconds: float) -> Reply | None:
        """Wait for the shop's answer; return None if the project was reset."""
        self._changed.wait_for(lambda: offer.reply or offer.is_over, seconds + REPORT_SECONDS_MAX)
        if offer.reply is None and not offer.is_over:
            return Reply(seconds * 1000, error=f"{no_answer_within(seconds)} from the listener")
        return offer.reply

    # For the project

    def wake(self) -> None:
        """Drop the offers of an epoch that has ended, and wake the waiting calls, which may be over."""
        with self._changed:
            self._offered = {label: each for label, each in self._offered.items() if not each.is_over}
            self._changed.notify_all()

    # For the listener's calls

    def connect(self, name: str) -> bool:
        """Register a listener before it calls ``take``; return False if it has left, or was replaced."""
        with self._changed:
            if name in self.replaced:
                return False
            if self._name is not None and self._name != name:
                self.replaced.append(self._name)
            self._name, self.is_connected = name, True
            for offer in self._offered.values():
                offer.is_taken = False
        return True

    def disconnect(self, name: str) -> None:
        """Unregister a listener; its waiting and late calls become no-ops."""
        with self._changed:
            if name and name not in self.replaced:
                self.replaced.append(name)
            if name == self._name:
                self._name, self.is_connected = None, False
                self._newest_call += 1
                self._changed.notify_all()

    def take(self, timeout_seconds: float, is_over: Callable[[], bool]) -> list[OfferedAttempt]:
        """Wait for attempts to deliver; return an empty list on timeout, or once ``is_over`` is true."""
        with self._changed:
            self._newest_call += 1
            call = self._newest_call
            self._changed.notify_all()  # makes earlier calls return
            self._changed.wait_for(
                lambda: self._new_offers() or call < self._newest_call or is_over(), timeout_seconds
            )
            if call < self._newest_call:
                return []
            taken = self._new_offers()
            for offer in taken:
                offer.is_taken = True
            self._changed.notify_all()
            return taken

    def _new_offers(self) -> list[OfferedAttempt]:
        return [offer for offer in self._offered.values() if not offer.is_taken]

    def answer(self, label: str, reply: Reply) -> bool:
        """Set the shop's answer to an attempt, and wait until it is recorded; return False on failure."""
        with self._changed:
            offer = self._offered.pop(label, None)
            if offer is None:
                return False
            offer.is_taken, offer.reply = True, reply
            self._changed.notify_all()
        return offer.recorded.wait(RECORDED_SECONDS_MAX)


_LISTENER: Final = Slot(ProjectListener)
_DESTINATION: Final = Slot(Destination)


def listener_of(project: Project) -> ProjectListener:
    """Return the listener of a project."""
    return project.slots.of(_LISTENER)


def destination_of(project: Project) -> Destination:
    """Return the destination of a project's webhooks."""
    return project.slots.of(_DESTINATION)
