"""The outbox of an epoch: the webhooks to send now, and their states."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter
from threading import Condition
from typing import Final, Protocol

from payment_sandbox.projects.caller import caller, during_delivery
from payment_sandbox.projects.locks import OUTBOX, ranked_lock

# A webhook enters each time it is to be sent now: by an edit, by a manual resend, or when a server loads, a
# snapshot restores or a store hands over what was in flight. Retries and delays are commands on the
# timeline, and enter when they are due.
#
#     HELD ──> QUEUED ──> SENDING ──> DONE
#       └────────────────────^ └────> UNSENT
#
# HELD: the call that caused the webhook has not answered. A shop must know the order that a webhook is about,
#   so webhooks follow the response (SET-59), and the end of the call queues them. If the shop makes the call
#   during a request from its test, the end of that request does. A call whose webhooks must precede its
#   response sends them itself (SET-60), as does a manual resend: its call cannot wait for another thread,
#   whose receiver may be waiting for this very call.
# QUEUED: the webhook waits for its turn: first in, first out, so an order's do not overtake each other.
# SENDING: one thread gives it to its receiver and records the answer. ``send_due`` sends what is queued, on a
#   thread of the courier or, in a test without sockets, on the thread that is about to wait for the webhooks,
#   because handlers must see the test's transaction.
# DONE: the attempt is recorded, or nothing was to be sent, or a reset has dropped the webhook.
# UNSENT: nobody takes it, because no listener is connected. No attempt is counted; a listener that connects
#   (and then looks for unsent ones), or the end of the forwarding, sends it as a new entry.
#
# ``_changed`` is held for each move, and never during an attempt, an edit or the start of a thread.
# ``_is_carried`` is set under it when a thread is asked to run ``send_due``, and cleared under it when that
# thread finds the queue empty or could not start, so there are never two of them, or none. After ``close``,
# a thread that is SENDING finds the epoch replaced when it records the answer.


class SendingState(StrEnum):
    """How far the sending of a webhook has got."""

    HELD = "held until its call has answered"
    QUEUED = "queued"
    SENDING = "sending"
    DONE = "done"
    UNSENT = "unsent"


HELD, QUEUED, SENDING, DONE, UNSENT = SendingState
MOVES: Final[Mapping[SendingState | None, Collection[SendingState]]] = {
    None: (HELD, QUEUED),
    HELD: (QUEUED, SENDING, DONE),
    QUEUED: (SENDING, DONE),
    SENDING: (DONE, UNSENT),
}
"""The possible moves by the state before; None for a new entry."""
ORDER_ID: Final = attrgetter("order_id")
EXTRA_DELIVERIES_MAX: Final = 50
"""Deliveries that a caller awaits in addition to its own, because they may be caused by handlers of these.

They look like deliveries caused by other clients. Without the limit, a caller would wait for all traffic.
"""


@dataclass(slots=True, eq=False)
class QueuedDelivery:
    """One sending of a webhook; a manual resend is ``forced``, and may have another URL or body."""

    delivery_id: str
    order_id: str
    forced: bool = False
    url: str | None = None
    body: str | None = None
    state: SendingState | None = None  # only its outbox changes it
    result: SendingState = DONE

    @property
    def is_changed(self) -> bool:
        """Whether the webhook differs from the original."""
        return self.url is not None or self.body is not None


@dataclass(slots=True, eq=False)
class HeldDeliveries:
    """The webhooks of one call that are held until its response is sent."""

    outbox: "Outbox"
    entries: deque[QueuedDelivery] = field(default_factory=deque)
    precede_response: bool = False  # whether the call sends them itself, before its response
    wakes_scheduler: bool = False  # whether the agenda has a new earliest entry
    is_over: bool = False

    def is_holding(self, outbox: "Outbox") -> bool:
        """Whether deliveries for this outbox are held."""
        return self.outbox is outbox and not self.is_over


class Sender(Protocol):
    """Sends the webhooks of a project."""

    def send(self, outbox: "Outbox", queued: QueuedDelivery, /) -> bool:
        """Send one webhook, and record the answer; return False if nobody takes it now."""

    def run(self, work: Callable[[], None], /) -> object:
        """Run work on another thread; raises RuntimeError if the system has no more threads."""

    def sends_on_waiting_thread(self) -> bool:
        """Whether the thread that waits for the webhooks sends them."""

    def monotonic_seconds(self) -> float:
        """Return real seconds."""

    def wake(self) -> None:
        """Wake the waiting calls of the project's listener, which may be over."""

    def on_idle(self) -> object:
        """Handle the end of all sending."""


class Outbox:
    """The webhooks of one epoch to send now, first in, first out; without a sender, it accepts none."""

    def __init__(self, sender: Sender | None = None) -> None:
        self._sender: Sender = sender  # type: ignore[assignment]  # used for entries only
        self._changed = Condition(ranked_lock(OUTBOX))  # type: ignore[arg-type]
        self._pending: dict[QueuedDelivery, None] = {}  # those that callers wait for, oldest first
        self._queue: deque[QueuedDelivery] = deque()
        self._ended = 0  # the number of webhooks that are no longer pending
        self._is_carried = False
        self.is_closed = sender is None

    def _move(self, entry: QueuedDelivery, to: SendingState) -> None:
        """Move an entry; the caller holds the lock."""
        before, entry.state = entry.state, to
        assert to in MOVES.get(before, ()), f"a webhook moved from {before!r} to {to!r}"
        if to is QUEUED:
            self._queue.append(entry)
        if before is None:
            self._pending[entry] = None
        elif to not in MOVES:
            del self._pending[entry]
            self._ended += 1

    def put(self, entry: QueuedDelivery, held: HeldDeliveries | None = None) -> None:
        """Queue or hold a webhook."""
        with self._changed:
            if self.is_closed:
                return
            if held is not None and held.is_holding(self):
                self._move(entry, HELD)
                held.entries.append(entry)
            else:
                self._move(entry, QUEUED)

    def release(self, held: HeldDeliveries) -> None:
        """Queue the held webhooks, and stop holding; a second call is a no-op."""
        with self._changed:
            held.is_over, is_empty = True, not held.entries
            while held.entries and not self.is_closed:
                self._move(held.entries.popleft(), QUEUED)
        if not is_empty:
            self.start()

    # Send

    def start(self) -> None:
        """Let this thread send what is queued when it waits for the webhooks, or another one now."""
        with self._changed:
            if self._is_carried or not self._queue:
                return
            self._is_carried = True
        waiting = caller().waiting_thread()
        if waiting is not None and self._sender.sends_on_waiting_thread():
            waiting.outboxes.append(self)
        else:
            self.start_thread()

    def start_thread(self) -> None:
        """Let another thread send what is queued."""
        try:
            self._sender.run(self.send_due)
        except RuntimeError:  # the system has no more threads; the next webhook asks for one again
            with self._changed:
                self._is_carried = False
            raise

    def send_due(self, is_enough: Callable[[], bool] = lambda: False) -> None:
        """Send what is queued, one after the other; another thread goes on once ``is_enough`` is true."""
        if self._send_all(self._queue, is_enough):
            self.start()

    def send_held(self, held: HeldDeliveries) -> None:
        """Send the held webhooks on this thread, and return once they are answered."""
        self._send_all(held.entries, lambda: False)
        self.release(held)

    def _send_all(self, entries: deque[QueuedDelivery], is_enough: Callable[[], bool]) -> bool:
        """Send entries, and return whether there were enough."""
        is_over = False
        with during_delivery(self):
            entry = self._next(entries)
            while entry is not None:
                try:
                    entry.result = DONE if self._sender.send(self, entry) else UNSENT
                except BaseException:  # such as KeyboardInterrupt on a test's thread, whose run ends
                    self._next(entries, entry, is_over=True)
                    raise
                is_over = is_enough()
                entry = self._next(entries, entry, is_over=is_over)
        return is_over

    def _next(
        self, entries: deque[QueuedDelivery], sent: QueuedDelivery | None = None, *, is_over: bool = False
    ) -> QueuedDelivery | None:
        """End an attempt, and take the next entry; None if there is none for this thread."""
        with self._changed:
            if sent is not None:
                self._move(sent, sent.result)
                self._changed.notify_all()
                if not (self._pending or self.is_closed):
                    self._sender.on_idle()
            is_over = is_over or not entries or self.is_closed
            if entries is self._queue:
                self._is_carried = not is_over
            if is_over:
                return None
            entry = entries.popleft()
            self._move(entry, SENDING)
            return entry

    # Wait

    def settle(
        self,
        timeout_seconds: float,
        is_enough: Callable[[], bool] = lambda: False,
        orders: Iterable[str] | None = None,
    ) -> bool:
        """Wait for the answers to webhooks of these orders, which this thread may have to send itself.

        Without orders, wait for all of now. Return False on timeout, or once ``is_enough`` is true.
        """
        if self.is_idle:
            return True
        self.start()
        monotonic_seconds = self._sender.monotonic_seconds
        until_seconds = monotonic_seconds() + timeout_seconds
        names = frozenset(map(ORDER_ID, list(self._pending)) if orders is None else orders)
        ended_max: int | None = None

        def is_settled() -> bool:
            nonlocal ended_max
            if self.is_closed or not self._pending:
                return True
            if ended_max is None and names.isdisjoint(map(ORDER_ID, list(self._pending))):
                ended_max = self._ended + EXTRA_DELIVERIES_MAX
            return ended_max is not None and self._ended >= ended_max

        own = caller()
        if (waiting := own.waiting_thread()) is not None:
            waiting.send_due(lambda: is_settled() or is_enough() or monotonic_seconds() >= until_seconds)
        if own.is_handling(self):  # the callback would wait for its own end
            return True
        remaining_seconds = max(until_seconds - monotonic_seconds(), 0.0)
        with self._changed:
            self._changed.wait_for(lambda: is_settled() or is_enough(), remaining_seconds)
            return is_settled()

    def pause(self, seconds: float) -> bool:
        """Wait in real time; return True once the outbox is closed."""
        with self._changed:
            return self._changed.wait_for(lambda: self.is_closed, seconds)

    def wake(self) -> None:
        """Wake the waiting threads to check ``is_enough`` again."""
        if self._sender is not None:
            self._sender.wake()
        with self._changed:
            self._changed.notify_all()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is held, queued or sent."""
        return self.is_closed or not self._pending

    @property
    def is_delivering(self) -> bool:
        """Whether a webhook is being sent."""
        with self._changed:
            return any(entry.state is SENDING for entry in self._pending)

    def pending(self) -> list[str]:
        """Return the ids of the webhooks that are held, queued or sent, oldest first."""
        with self._changed:
            return [entry.delivery_id for entry in self._pending]

    def close(self) -> None:
        """Drop all webhooks except those being sent, and accept no more."""
        with self._changed:
            was_idle, self.is_closed = self.is_idle, True
            for entry in list(self._pending):
                if entry.state is not SENDING:
                    self._move(entry, DONE)
            self._queue.clear()
            if not was_idle:
                self._sender.on_idle()
        self.wake()
