"""The outbox of an epoch: the webhooks to send now, and the thread that sends them."""

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Condition
from typing import Final

from payment_sandbox.delivery.receivers import listener_of
from payment_sandbox.delivery.sending import Host, send
from payment_sandbox.orders.webhooks import DeliveryState
from payment_sandbox.projects.caller import caller, during_delivery
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.locks import OUTBOX, ranked_lock
from payment_sandbox.projects.project import Project, ProjectReset, weakly
from payment_sandbox.projects.queued_deliveries import HeldDeliveries, Outbox, QueuedDelivery

# The states of a webhook in the outbox
# =====================================
#
# A webhook enters each time it is to be sent now: by an edit, by a manual resend, or when a server loads, a
# snapshot restores or a store hands over what was in flight. Retries and delays are commands on the
# timeline, and enter when they are due.
#
#            an edit                           a manual resend
#       ┌───────┴────────┐                            │
#       v                v                            v
#     HELD ──────────> QUEUED ───────────────────> SENDING ──> DONE
#       │  its holder            the carrier       ^   │
#       └────────────── its call ──────────────────┘   └──> UNSENT
#
# HELD: the call that caused the webhook has not answered. A shop must know the order that a webhook is about,
#   so webhooks follow the response (SET-59), and the end of the call queues them. If the shop makes the call
#   during a request from its test, the end of that request does. A call whose webhooks must precede its
#   response sends them itself (SET-60).
# QUEUED: the webhook waits for its turn.
# SENDING: one thread gives it to its receiver (an address, an application in this process, a listener) and
#   records the answer: the function ``send``. The carrier takes the queued ones one after the other. It is a
#   thread of the courier or, in a test without sockets, the thread that is about to wait for the webhooks,
#   because handlers must see the test's transaction. A manual resend skips the queue: its call cannot wait
#   for the carrier, whose receiver may be waiting for this very call.
# DONE: the attempt is recorded, or nothing was to be sent, or a reset has dropped the webhook.
# UNSENT: nobody takes it, because no listener is connected. No attempt is counted; a listener that connects,
#   or the end of the forwarding, sends it as a new entry.
#
# ``MOVES`` lists the possible moves. ``_changed``, of rank ``OUTBOX``, is held for each of them, and never
# during an attempt, an edit or the start of a thread.
#
# What cannot happen, and why
# ---------------------------
# - Two threads send the same entry: one thread takes it out of the queue or its holder, under the lock.
# - Two carriers, or none: ``_is_carried`` is set under the lock when a carrier is asked for, and cleared
#   under the lock when the carrier finds the queue empty or could not start.
# - The webhooks of an order overtake each other in the queue: it is first in, first out. Held and manual ones
#   may overtake on purpose.
# - A webhook stays unsent while a listener is connected: a listener connects first and then looks for unsent
#   ones; ``send`` marks them in an edit that looks for a listener. One of the two edits sees the other.
# - A caller waits for ever: whatever ends a call releases its held webhooks, and a sender ends its entry
#   even if the attempt fails. A sender that cannot store its attempt tries again until the epoch or the
#   server ends.
# - A webhook of an old epoch is recorded: ``close`` drops what is not SENDING, later ones are refused, and a
#   thread that is SENDING finds the epoch replaced when it records the answer.


class SendingState(StrEnum):
    """How far the sending of a webhook has got."""

    HELD = "held until its call has answered"
    QUEUED = "queued"
    SENDING = "sending"
    DONE = "done"
    UNSENT = "unsent"


MOVES: Final[Mapping[SendingState | None, Collection[SendingState]]] = {
    None: (SendingState.HELD, SendingState.QUEUED, SendingState.SENDING),
    SendingState.HELD: (SendingState.QUEUED, SendingState.SENDING, SendingState.DONE),
    SendingState.QUEUED: (SendingState.SENDING, SendingState.DONE),
    SendingState.SENDING: (SendingState.DONE, SendingState.UNSENT),
}
"""The possible moves by the state before; None for a new entry."""
PENDING: Final = (SendingState.HELD, SendingState.QUEUED, SendingState.SENDING)
"""The states of entries that callers wait for."""
EXTRA_DELIVERIES_MAX: Final = 50

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class OutboxEntry:
    """One sending of a webhook; only its outbox changes it."""

    queued: QueuedDelivery
    state: SendingState | None = None


@dataclass(slots=True, eq=False)
class AwaitedDeliveries:
    """The deliveries awaited by a caller: all those of its orders, and a few more, caused by handlers.

    Deliveries caused by the shop's handlers look like deliveries caused by other clients, so their number is
    limited. Without the limit, a caller would wait as long as there is traffic.
    """

    orders: frozenset[str]
    remaining: int
    extra_remaining: int = field(default=EXTRA_DELIVERIES_MAX)

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


class DeliveringOutbox(Outbox):
    """The webhooks of one epoch to send now, first in, first out."""

    def __init__(self, project: Project, host: Host) -> None:
        self._find_project = weakly(project)
        self._project_id = project.project_id
        self._events = project.events
        self._host = host
        self._changed = Condition(ranked_lock(OUTBOX))  # type: ignore[arg-type]
        self._pending: dict[OutboxEntry, None] = {}  # oldest first
        self._queue: deque[OutboxEntry] = deque()
        self._awaited: list[AwaitedDeliveries] = []
        self._carried: OutboxEntry | None = None  # the entry that the carrier is sending
        self._is_carried = False
        self._was_idle = True
        self.is_closed = False

    @property
    def _project(self) -> Project:
        """The project of this outbox; see ``weakly``."""
        return self._find_project()

    @property
    def _epoch(self) -> Epoch:
        """The epoch of this outbox.

        Raises:
            ProjectReset: the epoch has ended.
        """
        epoch = self._project.epoch
        if epoch.outbox is not self:
            raise ProjectReset("the project was reset in the meantime")
        return epoch

    def _move(self, entry: OutboxEntry, to: SendingState) -> None:
        """Move an entry; the caller holds the lock."""
        before, entry.state = entry.state, to
        assert to in MOVES.get(before, ()), f"a webhook moved from {before!r} to {to!r}"
        change = (to in PENDING) - (before in PENDING)
        for awaited in self._awaited if change else ():
            awaited.count(entry.queued.order_id, change)
        if change > 0:
            self._was_idle = False
            self._pending[entry] = None
        elif change < 0:
            del self._pending[entry]
        if to is SendingState.QUEUED:
            self._queue.append(entry)

    # Enter the queue

    def put(self, queued: QueuedDelivery, held: HeldDeliveries | None = None) -> None:
        """Queue or hold a delivery."""
        with self._changed:
            if self.is_closed:
                return
            entry = OutboxEntry(queued)
            is_held = held is not None and held.is_holding(self)
            self._move(entry, SendingState.HELD if is_held else SendingState.QUEUED)
            if held is not None and is_held:
                held.entries.append(entry)

    def release(self, held: HeldDeliveries) -> None:
        """Queue the held deliveries, and stop holding; a second call is a no-op."""
        with self._changed:
            entries, held.entries, held.is_over = held.entries, deque(), True
            for entry in entries if not self.is_closed else ():
                self._move(entry, SendingState.QUEUED)
        if entries:
            self.start()

    # Send

    def start(self) -> None:
        """Let a carrier send what is queued: this thread when it waits for the webhooks, or another one."""
        with self._changed:
            if self._is_carried or not self._queue:
                return
            self._is_carried = True
        waiting = caller().waiting_thread()
        if waiting is not None and self._host.delivers_on_waiting_thread(self._project):
            waiting.carriers.append(self)
        else:
            self.start_thread()

    def start_thread(self) -> None:
        """Let another thread be the carrier."""
        try:
            self._host.run(self.carry)
        except RuntimeError:  # the system has no more threads; the next webhook asks for a carrier again
            with self._changed:
                self._is_carried = False
            raise

    def carry(self, is_enough: Callable[[], bool] = lambda: False) -> None:
        """Send what is queued, one after the other; another carrier takes over once ``is_enough`` is true."""
        is_over = False
        while (entry := self._next(is_over=is_over)) is not None:
            try:
                self._send(entry)
            except KeyboardInterrupt:  # on a test's thread, whose run ends
                self._next(is_over=True)
                raise
            except BaseException:  # the next webhook must still be delivered
                log.exception(
                    "webhook %s of project %s was not delivered",
                    entry.queued.delivery_id,
                    self._project_id,
                )
            is_over = is_enough()
        if is_over:
            self.start()

    def _next(self, *, is_over: bool) -> OutboxEntry | None:
        """End the carrier's attempt, and take its next webhook; None ends the carrier."""
        with self._changed:
            if self._carried is not None:
                self._end_sending(self._carried)
            self._is_carried = bool(self._queue) and not is_over
            self._carried = self._queue.popleft() if self._is_carried else None
            if self._carried is not None:
                self._move(self._carried, SendingState.SENDING)
            self._notify()
            return self._carried

    def _send(self, entry: OutboxEntry) -> None:
        with during_delivery(self), suppress(ProjectReset):
            if not send(self._project, self._epoch, entry.queued, self._host):
                with self._changed:
                    self._move(entry, SendingState.UNSENT)

    def _end_sending(self, entry: OutboxEntry) -> None:
        if entry.state is SendingState.SENDING:
            self._move(entry, SendingState.DONE)

    def send_now(self, queued: QueuedDelivery) -> None:
        """Send a webhook on this thread, outside the queue."""
        with self._changed:
            entry = OutboxEntry(queued)
            self._move(entry, SendingState.SENDING)
        self._send_outside_queue(entry)

    def send_held(self, held: HeldDeliveries) -> None:
        """Send the held webhooks on this thread, and return once they are answered."""
        while True:
            with self._changed:
                if not held.entries or self.is_closed:
                    break
                entry = held.entries.popleft()
                self._move(entry, SendingState.SENDING)
            self._send_outside_queue(entry)
        self.release(held)

    def _send_outside_queue(self, entry: OutboxEntry) -> None:
        try:
            self._send(entry)
        finally:
            with self._changed:
                self._end_sending(entry)
                self._notify()

    def send_unsent(self) -> None:
        """Queue the webhooks that no listener took: a listener has connected, or forwarding has ended."""
        project, epoch = self._project, self._epoch
        store = epoch.store
        if all(each.state is not DeliveryState.UNSENT for each in store.deliveries()):
            return
        with project.edit(epoch) as edit:
            for each in store.deliveries():
                if each.state is DeliveryState.UNSENT:
                    edit.store_delivery(each._replace(state=DeliveryState.PENDING))
                    edit.send(each.id)

    # Wait

    def settle(
        self,
        timeout_seconds: float,
        is_enough: Callable[[], bool] = lambda: False,
        orders: Iterable[str] | None = None,
    ) -> bool:
        """Wait for the answers to these orders' webhooks, which this thread may have to deliver itself."""
        monotonic_seconds = self._project.services.real.monotonic_seconds
        until_seconds = monotonic_seconds() + timeout_seconds

        def is_late() -> bool:
            return is_enough() or monotonic_seconds() >= until_seconds

        self.start()
        with self._awaiting(orders) as awaited:
            if (waiting := caller().waiting_thread()) is not None:
                waiting.deliver(lambda: is_late() or self._is_settled(awaited))
            if caller().is_handling(self):  # the callback would wait for its own end
                return True
            with self._changed:
                remaining_seconds = max(until_seconds - monotonic_seconds(), 0.0)
                self._changed.wait_for(lambda: self._is_settled(awaited) or is_enough(), remaining_seconds)
                return self._is_settled(awaited)

    @contextmanager
    def _awaiting(self, orders: Iterable[str] | None) -> Iterator[AwaitedDeliveries]:
        """Await the deliveries of these orders; None: all orders with a pending delivery."""
        with self._changed:
            pending = [entry.queued.order_id for entry in self._pending]
            names = frozenset(pending if orders is None else orders)
            self._awaited.append(awaited := AwaitedDeliveries(names, sum(each in names for each in pending)))
        try:
            yield awaited
        finally:
            with self._changed:
                self._awaited.remove(awaited)

    def wake(self) -> None:
        """Wake the waiting threads to check ``is_enough`` again."""
        listener_of(self._project).wake()
        with self._changed:
            self._changed.notify_all()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is held, queued or sent."""
        return self.is_closed or not (self._is_carried or self._pending)

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
            for entry in list(self._pending):
                if entry.state is not SendingState.SENDING:
                    self._move(entry, SendingState.DONE)
            self._queue.clear()
            self._notify()
        listener_of(self._project).clear()

    def _is_settled(self, awaited: AwaitedDeliveries) -> bool:
        return awaited.is_over or self.is_idle

    def _notify(self) -> None:
        """Wake waiting threads; publish an event if the outbox has become idle."""
        self._changed.notify_all()
        is_idle = self.is_idle
        if is_idle and not self._was_idle:
            self._events.publish("idle")
        self._was_idle = is_idle
