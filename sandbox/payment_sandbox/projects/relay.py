"""Delivery by listeners: the ``listen`` command forwards webhooks to a shop that the server cannot reach."""

from collections.abc import Callable
from concurrent.futures import CancelledError, Future, InvalidStateError
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from datetime import datetime
from itertools import count
from threading import Condition, Event
from typing import Final, NamedTuple

from payment_sandbox.orders.webhooks import TIMEOUT_SECONDS, Reply, WebhookRequest
from payment_sandbox.projects.locks import RELAY, ranked_lock

ANSWER_SECONDS_MAX: Final = TIMEOUT_SECONDS + 2.0  # longer than the shop's five seconds
RECORDED_SECONDS_MAX: Final = 5.0
AWAY_SECONDS_MAX: Final = 10.0  # the longest pause between two calls by a listener
REPLACED_MAX: Final = 100  # replaced listeners to remember

_manual_numbers = count(1)


class AttemptLabel(NamedTuple):
    """The identity of an attempt; equal labels mean the same attempt, even after the server restarts."""

    webhook: str
    number: int
    copy: int = 1
    by_hand: int = 0  # a unique number for a manual attempt, which is never a duplicate

    def __str__(self) -> str:
        return f"{self.webhook}/{self.number}/{self.copy}{f'/{self.by_hand}' if self.by_hand else ''}"


def create_label(webhook: str, number: int, *, by_hand: bool) -> AttemptLabel:
    """Create the label of an attempt."""
    return AttemptLabel(webhook, number, by_hand=next(_manual_numbers) if by_hand else 0)


class OfferedOrder(NamedTuple):
    """The order that a webhook is about, and the status that the webhook reports."""

    order_id: str
    status: str


class OfferedAttempt:
    """An attempt offered to a listener, until its answer is recorded."""

    def __init__(
        self, label: AttemptLabel, order: OfferedOrder, request: WebhookRequest, at: datetime
    ) -> None:
        self.label = label
        self.order = order
        self.request = request
        self.at = at
        self._answer: Future[Reply] = Future()
        self._ended = Event()
        self._is_recorded = False

    def set_answer(self, reply: Reply) -> None:
        """Set the shop's answer."""
        with suppress(InvalidStateError):  # cancelled, or already answered
            self._answer.set_result(reply)

    def cancel(self) -> None:
        """Stop waiting for an answer."""
        self._answer.cancel()

    def wait(self) -> Reply | None:
        """Wait for the shop's answer; return None if the listener does not report an answer in time."""
        try:
            return self._answer.result(ANSWER_SECONDS_MAX)
        except (FutureTimeout, CancelledError):
            return None

    def end(self, *, is_recorded: bool) -> None:
        """Inform the waiting listener whether the answer is recorded; only the first call counts."""
        if not self._ended.is_set():
            self._is_recorded = is_recorded
            self._ended.set()

    def wait_until_recorded(self) -> bool:
        """Wait until the answer is recorded; return False on failure, in which case the webhook is resent."""
        return self._ended.wait(RECORDED_SECONDS_MAX) and self._is_recorded


class Relay:
    """A relay of webhooks to a project's listener; without a listener, webhooks await one in the outbox.

    Every call by a listener ends the listener's earlier calls, whose connections may be dead, and repeats the
    offers of unanswered attempts. A new listener replaces the previous one.
    """

    def __init__(self, monotonic_seconds: Callable[[], float]) -> None:
        self._monotonic_seconds = monotonic_seconds
        self._changed = Condition(ranked_lock(RELAY))  # type: ignore[arg-type]
        self._offered: dict[str, OfferedAttempt] = {}  # unanswered attempts by label
        self._new_offers: list[OfferedAttempt] = []
        self._newest_call = 0
        self._waiting_calls = 0
        self._open_until_seconds = 0.0
        self._listener: str | None = None
        self._replaced: dict[str, None] = {}  # listeners, oldest first

    # For the courier

    def is_connected(self, *, is_doubtful: bool = False) -> bool:
        """Whether a listener waits for webhooks, or has called a moment ago and is not ``is_doubtful``."""
        with self._changed:
            if is_doubtful:
                self._open_until_seconds = 0.0  # the listener has probably disconnected
            return self._waiting_calls > 0 or self._monotonic_seconds() < self._open_until_seconds

    def offer(self, offers: list[OfferedAttempt]) -> None:
        """Offer attempts to the listener."""
        with self._changed:
            self._offered.update((str(offer.label), offer) for offer in offers)
            self._new_offers += offers
            self._changed.notify_all()

    def withdraw(self, offers: list[OfferedAttempt]) -> None:
        """Withdraw offered attempts."""
        with self._changed:
            for offer in offers:
                self._offered.pop(str(offer.label), None)
                if offer in self._new_offers:
                    self._new_offers.remove(offer)

    # For the project

    @property
    def is_awaited(self) -> bool:
        """Whether a listener is waiting for webhooks."""
        return self._waiting_calls > 0

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

    # For the listener

    def connect(self, listener: str) -> bool:
        """Register a listener before it calls ``take``; return False if it has left, or was replaced."""
        with self._changed:
            if listener in self._replaced:
                return False
            if self._listener is not None and self._listener != listener:
                self._refuse(self._listener)
            self._listener = listener
            self._new_offers = list(self._offered.values())
            self._open_until_seconds = self._monotonic_seconds() + AWAY_SECONDS_MAX
        return True

    def disconnect(self, listener: str) -> None:
        """Unregister a listener; its waiting and late calls become no-ops."""
        with self._changed:
            if listener:
                self._refuse(listener)
            if listener == self._listener:
                self._listener = None
                self._newest_call += 1
                self._open_until_seconds = 0.0
                self._changed.notify_all()

    def is_disconnected(self, listener: str) -> bool:
        """Whether a listener has disconnected, or was replaced."""
        with self._changed:
            return listener in self._replaced

    def _refuse(self, listener: str) -> None:
        self._replaced[listener] = None
        while len(self._replaced) > REPLACED_MAX:
            del self._replaced[next(iter(self._replaced))]

    def take(self, timeout_seconds: float, is_over: Callable[[], bool]) -> list[OfferedAttempt]:
        """Wait for attempts to deliver; return an empty list on timeout, or once ``is_over`` is true."""
        with self._changed:
            self._newest_call += 1
            call = self._newest_call
            self._changed.notify_all()  # makes earlier calls return
            self._waiting_calls += 1
            try:
                self._changed.wait_for(
                    lambda: self._new_offers or call < self._newest_call or is_over(), timeout_seconds
                )
            finally:
                self._waiting_calls -= 1
            if call < self._newest_call:
                return []
            self._open_until_seconds = self._monotonic_seconds() + AWAY_SECONDS_MAX
            taken, self._new_offers = self._new_offers, []
            return taken

    def answer(self, label: str, reply: Reply) -> bool:
        """Set the shop's answer to an attempt, and wait until it is recorded; return False on failure."""
        with self._changed:
            offer = self._offered.pop(label, None)
            if offer in self._new_offers:
                self._new_offers.remove(offer)
            self._open_until_seconds = self._monotonic_seconds() + AWAY_SECONDS_MAX
        if offer is None:
            return False
        offer.set_answer(reply)
        return offer.wait_until_recorded()
