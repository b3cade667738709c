"""The outbox of an epoch: the webhooks to send now, and the one function that moves them."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Condition
from typing import Final, NamedTuple

from payment_sandbox.projects.events import Events
from payment_sandbox.projects.locks import OUTBOX, ranked_lock

# The states of a delivery in the outbox
# ======================================
#
# A webhook enters the outbox each time it is to be sent now: by an edit, by a manual resend, or with
# unanswered webhooks that a server loads or a snapshot restores. Retries and delays are not here: they are
# commands on the timeline, and enter when they are due. ``QueuedDelivery`` says what is sent; an
# ``OutboxEntry`` says how far its sending has got:
#
#                    an edit                         a manual resend
#            ┌──────────┴─────────┐                         │
#            v                    v                         │
#          HELD ── its holder ─> QUEUED ── the carrier ─> SENDING ──> DONE
#            │                    ^                       ^   │
#            └──── its call ──────┼───────────────────────┘   │
#                                 └─ a listener ─ AWAITING_LISTENER
#
# HELD: the call that caused the webhook has not answered. A shop must know the order that a webhook is about,
#   so its webhooks follow the response (SET-59). The entry is in the ``HeldDeliveries`` of the call until the
#   middleware ``release_webhooks`` decides who sends it. If the shop makes the call during a request
#   from its test, that request holds the entry until its end, as in production.
# QUEUED: the entry waits for its turn.
# SENDING: one thread makes an attempt and records the answer.
# AWAITING_LISTENER: the attempt would have gone to the command ``listen``, and no listener was connected, or
#   the listener has not answered. No attempt is counted, and nobody waits for the entry: an outbox with such
#   entries only is idle.
# DONE: the attempt is recorded, or nothing was to be sent, or the sending failed, or a newer resend has
#   replaced the entry, or a reset has dropped it. It has left the outbox; the delivery itself may get another
#   entry for its next attempt.
#
# Who may move an entry is the argument ``by`` of ``Outbox._move``, and ``MOVES`` lists what each may do:
#
# EDIT: ``Project.edit``, after its commit; also ``Project.put``, for webhooks that a server loads, a snapshot
#   restores, or a shared store holds.
# HOLDER: the end of a call or of a shop's request, whichever holds the entry.
# CARRIER: the one thread that sends the queued entries, one after the other. Usually it is a thread of the
#   courier. In a test without sockets it is the thread that is about to wait for the webhooks (the
#   ``WaitingThread`` of its caller), because handlers in the test's process must see the test's database
#   transaction. A waiting thread hands the rest over to the courier when it has waited long enough.
# CALL: a call that sends a webhook outside the queue, and returns when it is answered, or when it awaits a
#   listener: a manual resend, or a call whose webhooks must precede its response (SET-60). It cannot wait for
#   the carrier, who may be sending another webhook to a receiver that waits for this very call. A rehearsal
#   sends them on a thread of its own, and answers the call once a handler waits for a lock that the shop
#   holds during its request.
# LISTENER: a listener that connects or did not answer, the end of the forwarding, or a newer resend that
#   replaces the entry.
# RESET: the end of the epoch.
#
# Which lock
# ----------
# ``Outbox._changed``, of rank ``OUTBOX``, is held for every move; no attempt, no edit and no start of a
# thread runs under it. It is taken after the project's locks and before those of the events (to publish
# "idle") and of the relay (to ask for a listener). Methods that may leave the queue without a carrier return
# True, and their caller starts one after the lock is released.
#
# What cannot happen, and why
# ---------------------------
# - Two threads send the same entry: one thread takes it out of its queue or its holder, under the lock. An
#   entry that awaited a listener can be SENDING again while the thread that first sent it is still returning;
#   that thread then ends nothing, because the entry's last mover is another (``_end_sending``).
# - Two carriers: ``_is_carried`` is set under the lock when a carrier is asked for, and cleared under the
#   lock when the carrier finds the queue empty or could not start, so that an entry is either seen by that
#   carrier or needs a new one.
# - The webhooks of an order overtake each other in the queue: an order's entries are all in one of the two
#   queues, or its older ones in the one that is emptied first, and an entry that comes back from a listener
#   goes to the front. Held and manual ones may overtake on purpose, and while an entry awaits a listener,
#   later ones may be sent.
# - A webhook stays parked while a listener is connected: a listener first connects and then queues the
#   waiting entries, and ``await_listener`` asks for a listener under the lock. One of the two sees the other.
#   If the carrier doubts the listener, which has not answered, the entry can await the listener's next call,
#   at most 60 seconds.
# - A caller waits for ever: HELD entries of a call that has ended are released by whatever ended it, a sender
#   ends its entry even if the attempt fails, and nobody waits for AWAITING_LISTENER. A sender that cannot
#   store its attempt repeats that until it can, or until the epoch or the server ends. A call that waits for
#   its own held webhooks must release them first.
# - A webhook of an old epoch is recorded: ``close`` moves all but SENDING to DONE, and what is added later is
#   refused. A webhook that is SENDING may still reach the shop; its thread finds the epoch replaced when it
#   records the answer, and discards it.


class SendingState(StrEnum):
    """How far the sending of a webhook has got."""

    HELD = "held until its call has answered"
    QUEUED = "queued"
    SENDING = "sending"
    AWAITING_LISTENER = "awaiting a listener"
    DONE = "done"


class Mover(StrEnum):
    """Who moves an entry."""

    EDIT = "an edit"
    HOLDER = "the end of the call or of the shop's request"
    CARRIER = "the thread that sends the queued webhooks"
    CALL = "a call that sends a webhook itself"
    LISTENER = "a listener"
    RESET = "the end of the epoch"


Moves = Mapping[SendingState | None, Collection[SendingState]]
_SENT: Final[Moves] = {SendingState.SENDING: (SendingState.DONE, SendingState.AWAITING_LISTENER)}
MOVES: Final[Mapping[Mover, Moves]] = {
    Mover.EDIT: {None: (SendingState.HELD, SendingState.QUEUED)},
    Mover.HOLDER: {SendingState.HELD: (SendingState.QUEUED,)},
    Mover.CARRIER: {SendingState.QUEUED: (SendingState.SENDING,), **_SENT},
    Mover.CALL: {None: (SendingState.SENDING,), SendingState.HELD: (SendingState.SENDING,), **_SENT},
    Mover.LISTENER: {SendingState.AWAITING_LISTENER: (SendingState.QUEUED, SendingState.DONE)},
    Mover.RESET: dict.fromkeys(
        (SendingState.HELD, SendingState.QUEUED, SendingState.AWAITING_LISTENER), (SendingState.DONE,)
    ),
}
"""The moves that each mover may make, by the state before the move; None for a new entry."""
PENDING: Final = (SendingState.HELD, SendingState.QUEUED, SendingState.SENDING)
"""The states of entries that callers wait for."""

EXTRA_DELIVERIES_MAX: Final = 50


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
    job: int = 0  # the number in a shared store

    @property
    def is_changed(self) -> bool:
        """Whether the webhook differs from the original."""
        return self.changed != NO_CHANGES


@dataclass(slots=True, eq=False)
class OutboxEntry:
    """One sending of a webhook; only its outbox changes it."""

    queued: QueuedDelivery
    state: SendingState | None = None
    mover: Mover = Mover.EDIT  # the last mover


@dataclass(slots=True, eq=False)
class HeldDeliveries:
    """The webhooks of one call that are held until its response is sent."""

    outbox: "Outbox"
    entries: deque[OutboxEntry] = field(default_factory=deque)
    precede_response: bool = False  # whether the call sends them itself, before its response
    wakes_scheduler: bool = False  # whether the agenda has a new earliest entry
    is_over: bool = False

    def is_holding(self, outbox: "Outbox") -> bool:
        """Whether deliveries for this outbox are held."""
        return self.outbox is outbox and not self.is_over


@dataclass(slots=True, eq=False)
class AwaitedDeliveries:
    """The deliveries awaited by a caller: all those of its orders, and a few more, caused by handlers.

    Deliveries caused by the shop's handlers look like deliveries caused by other clients, so their number is
    limited. Without the limit, a caller would wait as long as there is traffic.
    """

    orders: frozenset[str]
    remaining: int
    has_priority: bool
    extra_remaining: int = EXTRA_DELIVERIES_MAX

    @property
    def is_over(self) -> bool:
        """Whether the wait is over."""
        return not self.remaining and self.extra_remaining <= 0

    def count(self, order_id: str, change: int) -> None:
        """Count a new delivery, or a finished one."""
        if order_id in self.orders:
            self.remaining += change
        elif change < 0 and not self.remaining:
            self.extra_remaining -= 1


class Outbox:
    """The entries of an epoch: first in, first out, except that awaited orders take priority.

    ``put``, ``release`` and ``end_listener_wait`` return whether a carrier must be started.
    """

    def __init__(self, events: Events) -> None:
        self._changed = Condition(ranked_lock(OUTBOX))  # type: ignore[arg-type]
        self._events = events
        self._pending: dict[OutboxEntry, None] = {}  # oldest first
        self._priority_queue: deque[OutboxEntry] = deque()
        self._queue: deque[OutboxEntry] = deque()
        self._awaiting_listener: list[OutboxEntry] = []
        self._awaited: list[AwaitedDeliveries] = []
        self._carried: OutboxEntry | None = None  # the entry that the carrier is sending
        self._is_carried = False
        self._was_idle = True
        self.is_closed = False

    def _move(self, entry: OutboxEntry, to: SendingState, by: Mover) -> None:
        """Move an entry; the caller holds the lock."""
        before = entry.state
        assert to in MOVES[by].get(before, ()), f"{by} moved a webhook from {before!r} to {to!r}"
        entry.state, entry.mover = to, by
        change, order_id = (to in PENDING) - (before in PENDING), entry.queued.order_id
        if change:
            for awaited in self._awaited:
                awaited.count(order_id, change)
        if change > 0:
            self._was_idle = False
            self._pending[entry] = None
        elif change < 0:
            del self._pending[entry]
        if to is SendingState.QUEUED and by is Mover.LISTENER:  # it precedes the later webhooks of its order
            self._queue_for(order_id).appendleft(entry)
        elif to is SendingState.QUEUED:
            self._queue_for(order_id).append(entry)
        elif to is SendingState.AWAITING_LISTENER:
            self._awaiting_listener.append(entry)

    def _queue_for(self, order_id: str) -> deque[OutboxEntry]:
        for awaited in self._awaited:
            if awaited.has_priority and order_id in awaited.orders:
                return self._priority_queue
        return self._queue

    # Enter the queue

    def put(self, queued: QueuedDelivery, held: HeldDeliveries | None = None) -> bool:
        """Queue or hold a delivery."""
        with self._changed:
            if self.is_closed:
                return False
            entry = OutboxEntry(queued)
            if held is not None and held.is_holding(self):
                self._move(entry, SendingState.HELD, Mover.EDIT)
                held.entries.append(entry)
                return False
            self._move(entry, SendingState.QUEUED, Mover.EDIT)
            return self._needs_carrier()

    def release(self, held: HeldDeliveries) -> bool:
        """Queue the held deliveries, and stop holding; a second call is a no-op."""
        with self._changed:
            entries, held.entries, held.is_over = held.entries, deque(), True
            return self._enqueue(entries, Mover.HOLDER)

    def end_listener_wait(self) -> bool:
        """Queue the deliveries that await a listener."""
        with self._changed:
            entries, self._awaiting_listener = self._awaiting_listener[::-1], []
            return self._enqueue(entries, Mover.LISTENER)

    def _enqueue(self, entries: Collection[OutboxEntry], by: Mover) -> bool:
        if not entries or self.is_closed:
            return False
        for entry in entries:
            self._move(entry, SendingState.QUEUED, by)
        needs_carrier = self._needs_carrier()
        self._notify()
        return needs_carrier

    def _needs_carrier(self) -> bool:
        if self._is_carried or not (self._priority_queue or self._queue):
            return False
        self._is_carried = True
        return True

    # Send

    def next(self) -> OutboxEntry | None:
        """Take the next delivery for the carrier; None stops the carrier."""
        with self._changed:
            self._end_carried()
            queue = self._priority_queue or self._queue
            self._is_carried = bool(queue)
            if queue:
                self._carried = queue.popleft()
                self._move(self._carried, SendingState.SENDING, Mover.CARRIER)
            self._notify()
            return self._carried

    def hand_over(self) -> None:
        """End the carrier's turn; another carrier takes over."""
        with self._changed:
            self._end_carried()

    def dismiss_carrier(self) -> None:
        """Let the next webhook ask for a carrier again, because no thread could be started."""
        with self._changed:
            self._is_carried = False

    def _end_carried(self) -> None:
        if self._carried is not None:
            self._end_sending(self._carried, Mover.CARRIER)
            self._carried = None

    def _end_sending(self, entry: OutboxEntry, by: Mover) -> None:
        """End an attempt, unless the entry awaits a listener or is already sent again by another mover."""
        if entry.state is SendingState.SENDING and entry.mover is by:
            self._move(entry, SendingState.DONE, by)

    @contextmanager
    def sending(self, source: QueuedDelivery | HeldDeliveries) -> Iterator[OutboxEntry | None]:
        """Take a webhook, or the next held one, to send it outside the queue; None if there is none."""
        with self._changed:
            if isinstance(source, QueuedDelivery):
                entry = OutboxEntry(source)
            elif source.entries and not self.is_closed:
                entry = source.entries.popleft()
            else:
                entry = None
            if entry is not None:
                self._move(entry, SendingState.SENDING, Mover.CALL)
        try:
            yield entry
        finally:
            if entry is not None:
                with self._changed:
                    self._end_sending(entry, Mover.CALL)
                    self._notify()

    def await_listener(self, entry: OutboxEntry, is_connected: Callable[[], bool]) -> bool:
        """Let an entry await a listener; return False if one is connected.

        A manual resend replaces an earlier one. A second call is a no-op: the caller repeats its transaction.
        """
        with self._changed:
            if entry.state is not SendingState.SENDING:
                return True
            if is_connected():
                return False
            if self.is_closed:
                return True
            queued = entry.queued
            for other in [each for each in self._awaiting_listener if queued.forced]:
                if other.queued.forced and other.queued.delivery_id == queued.delivery_id:
                    self._awaiting_listener.remove(other)
                    self._move(other, SendingState.DONE, Mover.LISTENER)
            self._move(entry, SendingState.AWAITING_LISTENER, entry.mover)
            return True

    # Wait

    @contextmanager
    def awaiting(self, orders: Iterable[str] | None = None) -> Iterator[AwaitedDeliveries]:
        """Await the deliveries of these orders, with priority; None: all orders with a pending delivery."""
        with self._changed:
            pending = [entry.queued.order_id for entry in self._pending]
            names = frozenset(pending if orders is None else orders)
            remaining = sum(order_id in names for order_id in pending)
            self._awaited.append(awaited := AwaitedDeliveries(names, remaining, orders is not None))
            queue, self._queue = self._queue, deque()
            for entry in queue:
                self._queue_for(entry.queued.order_id).append(entry)
        try:
            yield awaited
        finally:
            with self._changed:
                self._awaited.remove(awaited)

    def settle(
        self,
        awaited: AwaitedDeliveries,
        timeout_seconds: float,
        is_enough: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Wait for the awaited deliveries; return False on timeout or once ``is_enough`` is true."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_settled(awaited) or is_enough(), timeout_seconds)
            return self._is_settled(awaited)

    def wake(self) -> None:
        """Wake the waiting threads to check ``is_enough`` again."""
        with self._changed:
            self._changed.notify_all()

    def is_settled(self, awaited: AwaitedDeliveries) -> bool:
        """Whether the awaited deliveries are finished."""
        with self._changed:
            return self._is_settled(awaited)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is held, queued or sent."""
        with self._changed:
            return self._is_idle()

    @property
    def is_delivering(self) -> bool:
        """Whether a delivery is being sent."""
        with self._changed:
            return any(entry.state is SendingState.SENDING for entry in self._pending)

    def pending(self) -> list[str]:
        """Return the ids of deliveries that are held, queued or sent, oldest first."""
        with self._changed:
            return [entry.queued.delivery_id for entry in self._pending]

    def close(self) -> None:
        """Drop all deliveries except those being sent, and accept no more."""
        with self._changed:
            self.is_closed = True
            for entry in (*self._pending, *self._awaiting_listener):
                if entry.state is not SendingState.SENDING:
                    self._move(entry, SendingState.DONE, Mover.RESET)
            for queue in (self._priority_queue, self._queue, self._awaiting_listener):
                queue.clear()
            self._notify()

    def _is_idle(self) -> bool:
        return self.is_closed or not (self._is_carried or self._pending)

    def _is_settled(self, awaited: AwaitedDeliveries) -> bool:
        return awaited.is_over or self._is_idle()

    def _notify(self) -> None:
        """Wake waiting threads; publish an event if the outbox has become idle."""
        self._changed.notify_all()
        is_idle = self._is_idle()
        if is_idle and not self._was_idle:
            self._events.publish("idle")
        self._was_idle = is_idle
