"""A project: state, locks and editing; everything of one merchant, nothing of another."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from threading import Lock, RLock
from typing import Any

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.kernel.timeline import Timeline
from payment_sandbox.methods.base import Terms
from payment_sandbox.orders.commands import Command
from payment_sandbox.orders.deliveries import Delivery, Post
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Stale, Unknown
from payment_sandbox.projects.clock import Clock, ClockStart, RealTime
from payment_sandbox.projects.edit import Edit
from payment_sandbox.projects.events import Feed
from payment_sandbox.projects.faults import Faults, read_faults
from payment_sandbox.projects.journal import Journal
from payment_sandbox.projects.kept import config_of, running_of
from payment_sandbox.projects.outbox import Errand, Outbox
from payment_sandbox.projects.settings import Settings, read_settings
from payment_sandbox.projects.store import ChangeSet, MemoryStorage, Storage, Store
from payment_sandbox.scenarios.default import default_scenario
from payment_sandbox.scenarios.model import Scenario
from payment_sandbox.scenarios.near_misses import explain

IfMatch = Callable[[str], bool]
"""Whether a tag is among those that a request accepts."""


class Project:
    """One merchant integration under test.

    Locks, in this order and never reversed: ``advance_lock`` (try only, held across webhook I/O),
    ``state_lock`` (microseconds, never during I/O), then the outbox's own condition.
    """

    def __init__(
        self,
        project_id: str,
        merchant_id: str,
        key_digest: str,
        settings: Settings,
        start: ClockStart,
        real: RealTime,
        storage: Storage | None = None,
    ) -> None:
        self.project_id = project_id
        self.merchant_id = merchant_id
        self.key_digest = key_digest
        self.base_settings = settings
        self.storage = storage or MemoryStorage()
        self.real = real
        self.start = ClockStart(start.mode, start.at or (real.wall_now() if start.mode == "frozen" else None))
        self.state_lock = RLock()
        self.feed = Feed()
        self.serve_outbox: Callable[[Outbox], None] = lambda outbox: None  # the courier's
        self.resets = -1
        self.post: Post | None = None  # instead of the courier's wire
        self.wake: Callable[[Project], None] = lambda project: None  # the pacer's
        self.on_order: Callable[[], None] | None = None  # the server counts orders, for the collector
        self.is_deleted = False
        self._begin()

    def _begin(self) -> None:
        """A fresh epoch; who still works for the one before holds its locks, outbox and timeline."""
        at = self.start.at or self.real.wall_now()
        self.resets += 1
        self.advance_lock = Lock()
        self.advancing = False
        self.outbox = Outbox()
        self.outbox.on_idle = lambda: self.feed.publish("idle")
        self.serve_outbox(self.outbox)
        self.clock = Clock(self.real, at, self.start.mode)
        self.timeline: Timeline[Command] = Timeline(at)
        self.tidy_at = 0  # the length of the agenda at which it is looked through again
        self.ids = Ids(self.base_settings.seed)
        self.store: Store = self.storage.store(self.project_id)
        self.done: list[int] = []  # places on the agenda that are over, for the next change set
        self.journal = Journal()
        self.answers: dict[str, tuple[str, bytes]] = {}  # order id -> (etag, body), for the web to keep
        self.swapped: list[Errand] = []  # webhooks that wait for the next one to go first
        self.advance_log: list[dict[str, Any]] | None = None
        self.faults = Faults()
        self.settings: Settings = self.base_settings
        self.scenario: Scenario = default_scenario()
        self.scenario_faults = Faults()
        self.rule_uses: dict[int, int] = {}
        self.activate(self.scenario)

    def reset(self) -> None:
        """Be as at the start (CTL-09); what is still on its way finds nothing to change."""
        self.begin_anew()
        self.feed.publish("reset")

    def begin_anew(self) -> None:
        """Drop everything and begin a fresh epoch."""
        with self.state_lock, self.storage.together():
            self.outbox.close()
            self._begin()

    def let_go(self) -> None:
        """Be deleted: drop everything, end what waits, and hold nothing that holds this project in turn."""
        with self.state_lock:
            self.is_deleted = True
        self.reset()
        self.serve_outbox = lambda outbox: None
        self.post = None
        self.outbox.close()
        self.feed.end()
        self.wake(self)

    # Settings and scenario

    def activate(self, scenario: Scenario) -> None:
        """Switch to a scenario; its settings hold while it is active (SCN-07)."""
        settings = read_settings(dict(scenario.settings), self.base_settings, "settings")
        faults = Faults(scenario.faults, scenario.webhooks)
        self._choose(settings=settings, scenario=scenario, rule_uses={}, scenario_faults=faults)
        self.feed.publish("scenario", name=scenario.name)

    def put_faults(self, data: Any) -> None:
        """Let things go wrong besides the scenario's, or none when the document is wrong."""
        faults = read_faults(data)
        self._choose(faults=faults)
        self.feed.publish("faults", **faults.document)

    def change_settings(self, data: Any) -> None:
        """Change some settings, or none when one is wrong (CTL-01)."""
        with self.state_lock:
            base = read_settings(data, self.base_settings)
            settings = read_settings(dict(self.scenario.settings), base, "settings")
            self._choose(base_settings=base, settings=settings)
        self.feed.publish("settings", **data)

    def _choose(self, **chosen: Any) -> None:
        """Set what somebody chose; when a durable store cannot hold it, it was not chosen."""
        with self.state_lock:
            before = {name: self.__dict__[name] for name in chosen if name in self.__dict__}
            self.__dict__.update(chosen)
            try:
                self.keep(config=True)
            except BaseException:
                self.__dict__.update(before)
                raise

    # Time

    def now(self) -> datetime:
        """Sandbox time: while an advance steps, the time of its event."""
        if self.advancing or not self.clock.running:
            return self.timeline.now
        return max(self.timeline.now, self.clock.read())

    def real_seconds_until_due(self) -> float | None:
        """How long until something on the agenda is due; None when only a command moves the clock there."""
        with self.state_lock:
            head = self.timeline.head()
            if head is None or self.is_deleted or self.advancing:  # an advance wakes the pacer when it ends
                return None
            if head.at <= self.now():
                return 0.0
            return self.clock.real_seconds_until(head.at)

    # Reading and editing

    def find_order(self, order_id: str) -> Order:
        """The newest version of an order or refund.

        Raises:
            Unknown: there is none of this id here.
        """
        order = self.store.order(order_id)
        if order is None:
            raise Unknown(f"there is no order {order_id!r} in this project")
        return order

    def terms(self, now: datetime) -> Terms:
        """What a payment method may know of this project at a time."""
        settings = self.settings
        return Terms(now, settings.is_test, settings.features, self.store.credential, self.ids)

    def etag(self, order: Order) -> str:
        """What names a version of an order: it changes with every edit, and with how answers look."""
        epoch = f".{self.resets}" if self.resets else ""  # a reset makes the same ids anew
        return f"{order.id[:8]}-{order.version}{self.settings.presentation}{epoch}"

    @contextmanager
    def edit(self, now: datetime | None = None) -> Iterator[Edit]:
        """Change state as one unit; with ``now`` at an event's own time."""
        with self.state_lock:
            edit = Edit(self, now or self.now())
            yield edit
            change = edit.finish()
            for index in change.rules_used:
                self.rule_uses[index] = self.rule_uses.get(index, 0) + 1
            head = self.timeline.head()
            change.dues = [self.timeline.schedule(at, command) for at, command in change.commands]
            self._commit(change)
            if change.commands and not self.advancing:
                first = self.timeline.head()
                if head is None or (first is not None and first.at < head.at):
                    self._wake()
            if edit.has_created and self.on_order is not None:
                self.on_order()
            for delivery in change.deliveries:
                self.outbox.put(Errand(delivery.id))
            if edit.decisions:
                self.journal.note(edit.decisions)
            self._tell(edit)

    def keep(self, *, config: bool = False, touched: Sequence[Delivery] = ()) -> None:
        """Have a durable store hold what is no edit: clock and counters, with ``config`` what was chosen."""
        if self.store.is_durable:
            change = ChangeSet(touched=list(touched))
            change.config = config_of(self) if config else None
            self._commit(change)

    def _commit(self, change: ChangeSet) -> None:
        if self.store.is_durable:
            change.done, self.done = self.done, []
            change.running = {**running_of(self), "real_at": self.real.wall_now()}
            if self.store.is_new:
                change.config = config_of(self)
        try:
            self.store.commit(change)
        except BaseException:
            self.done = [*change.done, *self.done]  # the file holds them still
            raise

    def _tell(self, edit: Edit) -> None:
        """Let those who watch know."""
        if self.feed.watchers:
            for transaction_id, decision in edit.decisions.items():
                self.feed.publish("decision", transaction_id=transaction_id, **explain(decision))
        moves = list(edit.moved)
        self.journal.statuses.extend(edit.reached(moves, self.real.wall_now()))
        for moved in moves:
            self.feed.publish("status", **moved)

    def require_match(self, order_id: str, if_match: IfMatch | None) -> Order:
        """Refuse to change an order that is not as the merchant read it; to be called within an edit.

        Raises:
            Unknown: there is no such order here.
            Stale: its tag is not among those given (SET-33).
        """
        order = self.find_order(order_id)
        if if_match is not None and not if_match(self.etag(order)):
            raise Stale(
                f"order {order_id} has changed since: its ETag is now {self.etag(order)!r}, read it again"
            )
        return order

    def release_swapped(self) -> bool:
        """Send what waited for another webhook to go first; says whether there was any."""
        with self.state_lock:
            waiting, self.swapped = self.swapped, []
        for errand in waiting:
            self.outbox.put(errand)
        return bool(waiting)

    def _wake(self) -> None:
        if not self.outbox.on_release(lambda: self.wake(self)):
            self.wake(self)

    def plain(self) -> Mapping[str, Any]:
        """Who this project is, without its key."""
        return {
            "project_id": self.project_id,
            "merchant_id": self.merchant_id,
            "settings": self.settings.as_mapping(),
        }
