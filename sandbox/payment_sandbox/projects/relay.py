"""Webhooks that a listener delivers: the ``listen`` command, near a shop that the server cannot reach."""

from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from datetime import datetime
from threading import Condition, Event
from typing import TYPE_CHECKING, Final, NamedTuple

from payment_sandbox.orders.webhooks import TIMEOUT_SECONDS, Reply, WebhookRequest
from payment_sandbox.projects.delivery_queue import QueuedDelivery
from payment_sandbox.projects.locks import RELAY, ranked_lock

if TYPE_CHECKING:
    from payment_sandbox.projects.epoch import Epoch

ANSWER_SECONDS_MAX: Final = TIMEOUT_SECONDS + 2.0  # for the listener, which gives the shop its five
RECORDED_SECONDS_MAX: Final = 5.0
AWAY_SECONDS_MAX: Final = 10.0  # between two calls of a listener that is still there


class Label(NamedTuple):
    """Which attempt this is; equal labels mean the same attempt, also after a restart of the server."""

    webhook: str
    number: int
    copy: int
    by_hand: bool = False  # somebody asked for it once more, so it is to be made in any case

    def __str__(self) -> str:
        return f"{self.webhook}/{self.number}/{self.copy}"


class Offer:
    """One attempt that is offered to a listener, until it has been answered and recorded."""

    def __init__(self, label: Label, order_id: str, request: WebhookRequest, at: datetime) -> None:
        self.at = at
        self.label = label
        self.order_id = order_id
        self.request = request
        self._answer: Future[Reply] = Future()
        self._ended = Event()
        self._is_recorded = False

    def answered(self, reply: Reply) -> None:
        """The shop's answer has come."""
        self._answer.set_result(reply)

    def wait(self) -> Reply | None:
        """The shop's answer; None if the listener did not report one in time."""
        try:
            return self._answer.result(ANSWER_SECONDS_MAX)
        except FutureTimeout:
            return None

    def end(self, *, is_recorded: bool) -> None:
        """Note whether the answer is recorded, which the listener waits to hear; the first call counts."""
        if not self._ended.is_set():
            self._is_recorded = is_recorded
            self._ended.set()

    def wait_until_recorded(self) -> bool:
        """Whether the answer was recorded; if not, the same webhook will come again."""
        return self._ended.wait(RECORDED_SECONDS_MAX) and self._is_recorded


Left = tuple["Epoch", QueuedDelivery]
"""A webhook that waits for a listener, and its epoch."""


class Relay:
    """Hands webhooks to a project's listener; while there is none, it keeps them."""

    def __init__(self, monotonic_seconds: Callable[[], float]) -> None:
        self._monotonic_seconds = monotonic_seconds
        self._changed = Condition(ranked_lock(RELAY))  # type: ignore[arg-type]
        self._offered: dict[str, Offer] = {}  # by label; not yet answered
        self._untaken: list[Offer] = []
        self._left: list[Left] = []
        self._polls = 0  # calls that wait now
        self._open_until_seconds = 0.0

    def leave(self, epoch: "Epoch", queued: QueuedDelivery) -> bool:
        """Keep a webhook until a listener comes; False if there is one."""
        with self._changed:
            is_there = self._polls > 0 or self._monotonic_seconds() < self._open_until_seconds
            if not is_there:
                self._left.append((epoch, queued))
            return not is_there

    def leave_again(self, epoch: "Epoch", queued: QueuedDelivery) -> None:
        """Keep a webhook that a listener took, but did not answer; it seems to have gone."""
        with self._changed:
            self._open_until_seconds = 0.0
            self._left.append((epoch, queued))

    def take_left(self) -> list[Left]:
        """The webhooks that waited; they are the caller's now."""
        with self._changed:
            left, self._left = self._left, []
            return left

    def offer(self, offer: Offer) -> None:
        """Offer an attempt to the listener."""
        with self._changed:
            self._offered[str(offer.label)] = offer
            self._untaken.append(offer)
            self._changed.notify_all()

    def withdraw(self, offer: Offer) -> None:
        """Offer an attempt no longer."""
        with self._changed:
            self._offered.pop(str(offer.label), None)
            if offer in self._untaken:
                self._untaken.remove(offer)

    def arrive(self) -> list[Left]:
        """A listener is there and will ``take``; returns the webhooks that waited for it."""
        with self._changed:
            self._open_until_seconds = self._monotonic_seconds() + AWAY_SECONDS_MAX
        return self.take_left()

    def take(self, timeout_seconds: float, is_over: Callable[[], bool]) -> list[Offer]:
        """Wait for attempts to deliver; none if there are none in this time, or once ``is_over`` is true."""
        with self._changed:
            self._polls += 1
            try:
                self._changed.wait_for(lambda: self._untaken or is_over(), timeout_seconds)
            finally:
                self._polls -= 1
                self._open_until_seconds = self._monotonic_seconds() + AWAY_SECONDS_MAX
            taken, self._untaken = self._untaken, []
            return taken

    def answer(self, label: str, reply: Reply) -> bool:
        """Pass on the shop's answer to an attempt, and wait until it is recorded; False if it is not."""
        with self._changed:
            offer = self._offered.pop(label, None)
            self._open_until_seconds = self._monotonic_seconds() + AWAY_SECONDS_MAX
        if offer is None:
            return False
        offer.answered(reply)
        return offer.wait_until_recorded()

    def wake(self) -> None:
        """Let waiting calls look again whether they are over."""
        with self._changed:
            self._changed.notify_all()
