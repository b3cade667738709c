"""The receivers of webhooks: what they get and return, and the listener, which polls for its shop."""

from collections.abc import Callable
from concurrent.futures import CancelledError, Future, InvalidStateError
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from datetime import datetime
from itertools import count
from threading import Condition, Event
from typing import Final, NamedTuple, Protocol

from payment_sandbox.orders.webhooks import Delivery, Reply, WebhookRequest, no_answer_within
from payment_sandbox.projects.locks import RELAY, ranked_lock
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.queued_deliveries import QueuedDelivery
from payment_sandbox.projects.slots import Slot
from payment_sandbox.scenarios.effects import Together, WebhookEffect

REPORT_SECONDS_MAX: Final = 2.0  # for the report of the shop's answer, after the time limit of the attempt
RECORDED_SECONDS_MAX: Final = 5.0
REPLACED_MAX: Final = 100  # replaced listeners to remember

_manual_numbers = count(1)


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

    def are_parallel(self, *, over_network: bool) -> bool:
        """Whether copies are sent in parallel, by default only over the network."""
        return over_network or isinstance(self.effect, Together)


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


class AttemptLabel(NamedTuple):
    """The identity of an attempt; equal labels mean the same attempt, even after the server restarts."""

    webhook: str
    number: int
    copy: int = 1
    by_hand: int = 0  # a unique number for a manual attempt, which is never a duplicate

    def __str__(self) -> str:
        return f"{self.webhook}/{self.number}/{self.copy}{f'/{self.by_hand}' if self.by_hand else ''}"


class OfferedAttempt:
    """A copy of an attempt that is offered to a listener, until its answer is recorded."""

    def __init__(self, label: AttemptLabel, attempt: PreparedAttempt) -> None:
        self.label = label
        self.attempt = attempt
        self._answer: Future[Reply] = Future()
        self.recorded = Event()

    def set_answer(self, reply: Reply) -> None:
        """Set the shop's answer."""
        with suppress(InvalidStateError):  # cancelled, or already answered
            self._answer.set_result(reply)

    def cancel(self) -> None:
        """Stop waiting for an answer."""
        self._answer.cancel()

    def wait(self) -> Reply | None:
        """Wait for the shop's answer; return None if the project was reset."""
        seconds = self.attempt.timeout_seconds
        try:
            return self._answer.result(seconds + REPORT_SECONDS_MAX)
        except FutureTimeout:
            return Reply(seconds * 1000, error=f"{no_answer_within(seconds)} from the listener")
        except CancelledError:
            return None


class ProjectListener:
    """The listener of a project, which has at most one; a new listener replaces the previous one.

    Every call by a listener ends the listener's earlier calls, whose connections may be dead, and repeats the
    offers of unanswered attempts.
    """

    def __init__(self) -> None:
        self._changed = Condition(ranked_lock(RELAY))  # type: ignore[arg-type]
        self._offered: dict[str, OfferedAttempt] = {}  # unanswered attempts by label
        self._new_offers: list[OfferedAttempt] = []
        self._newest_call = 0
        self.is_connected = False
        """Whether a listener has called, has not left, and has taken the last attempt in time."""
        self._name: str | None = None
        self._replaced: dict[str, None] = {}  # listeners, oldest first

    # As a receiver

    def post(self, attempt: PreparedAttempt) -> list[DeliveryOutcome]:
        """Offer all copies, and wait for the shop's answers; an empty list if no listener takes them."""
        by_hand = next(_manual_numbers) if attempt.queued.forced else 0
        number = attempt.delivery.next_number
        offers = [
            OfferedAttempt(AttemptLabel(attempt.webhook, number, copy, by_hand), attempt)
            for copy in range(1, attempt.effect.copies + 1)
        ]
        try:
            if not self._offer(offers, attempt.timeout_seconds):
                return []
            replies = [(offer, offer.wait()) for offer in offers]
        finally:
            self._withdraw(offers)
        answered = [(offer, reply) for offer, reply in replies if reply is not None]
        return [DeliveryOutcome(reply, attempt.real_at, offer.recorded.set) for offer, reply in answered]

    def _offer(self, offers: list[OfferedAttempt], seconds: float) -> bool:
        """Offer attempts; a listener that does not take them in time counts as disconnected."""
        with self._changed:
            self._offered.update((str(offer.label), offer) for offer in offers)
            self._new_offers += offers
            self._changed.notify_all()
            is_taken = self._changed.wait_for(
                lambda: offers[0] not in self._new_offers or not self.is_connected, seconds
            )
            self.is_connected = self.is_connected and is_taken
            return offers[0] not in self._new_offers

    def _withdraw(self, offers: list[OfferedAttempt]) -> None:
        with self._changed:
            for offer in offers:
                self._offered.pop(str(offer.label), None)
                if offer in self._new_offers:
                    self._new_offers.remove(offer)

    # For the project

    def clear(self) -> None:
        """Drop all offers, because the epoch has ended."""
        with self._changed:
            offers = list(self._offered.values())
            self._offered.clear()
            self._new_offers.clear()
            self._changed.notify_all()
        for offer in offers:
            offer.cancel()

    def wake(self) -> None:
        """Wake the waiting calls to check ``is_over`` again."""
        with self._changed:
            self._changed.notify_all()

    # For the listener's calls

    def connect(self, name: str) -> bool:
        """Register a listener before it calls ``take``; return False if it has left, or was replaced."""
        with self._changed:
            if name in self._replaced:
                return False
            if self._name is not None and self._name != name:
                self._refuse(self._name)
            self._name, self.is_connected = name, True
            self._new_offers = list(self._offered.values())
        return True

    def disconnect(self, name: str) -> None:
        """Unregister a listener; its waiting and late calls become no-ops."""
        with self._changed:
            if name:
                self._refuse(name)
            if name == self._name:
                self._name, self.is_connected = None, False
                self._newest_call += 1
                self._changed.notify_all()

    def is_disconnected(self, name: str) -> bool:
        """Whether a listener has disconnected, or was replaced."""
        with self._changed:
            return name in self._replaced

    def _refuse(self, name: str) -> None:
        self._replaced[name] = None
        while len(self._replaced) > REPLACED_MAX:
            del self._replaced[next(iter(self._replaced))]

    def take(self, timeout_seconds: float, is_over: Callable[[], bool]) -> list[OfferedAttempt]:
        """Wait for attempts to deliver; return an empty list on timeout, or once ``is_over`` is true."""
        with self._changed:
            self._newest_call += 1
            call = self._newest_call
            self._changed.notify_all()  # makes earlier calls return
            self._changed.wait_for(
                lambda: self._new_offers or call < self._newest_call or is_over(), timeout_seconds
            )
            if call < self._newest_call:
                return []
            taken, self._new_offers = self._new_offers, []
            self._changed.notify_all()
            return taken

    def answer(self, label: str, reply: Reply) -> bool:
        """Set the shop's answer to an attempt, and wait until it is recorded; return False on failure."""
        with self._changed:
            offer = self._offered.pop(label, None)
            if offer in self._new_offers:
                self._new_offers.remove(offer)
        if offer is None:
            return False
        offer.set_answer(reply)
        return offer.recorded.wait(RECORDED_SECONDS_MAX)


_LISTENER: Final = Slot(ProjectListener)


def listener_of(project: Project) -> ProjectListener:
    """Return the listener of a project."""
    return project.slots.of(_LISTENER)
