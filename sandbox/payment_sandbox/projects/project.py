"""A project: one merchant integration under test, isolated from all others."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, Final
from weakref import ref

from payment_sandbox.kernel.masking import SECRET_KINDS, Masking
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Invalid, Refusal, Violation
from payment_sandbox.orders.webhooks import DeliveryState
from payment_sandbox.projects.caller import caller
from payment_sandbox.projects.clock import ProjectClock, RealTime
from payment_sandbox.projects.edit import Edit
from payment_sandbox.projects.epoch import Epoch, State
from payment_sandbox.projects.events import Events
from payment_sandbox.projects.faults import ProjectFaults
from payment_sandbox.projects.identity import Identity
from payment_sandbox.projects.locks import STATE, ranked_lock
from payment_sandbox.projects.outbox import HeldDeliveries, Outbox, QueuedDelivery
from payment_sandbox.projects.rehearsal import NO_REHEARSAL, Rehearsal
from payment_sandbox.projects.settings import DEFAULT_SETTINGS, Settings, read_stored_settings
from payment_sandbox.projects.slots import Slots
from payment_sandbox.projects.store import ChangeSet, StateLost, Store
from payment_sandbox.projects.unmatched import (
    faults_unmatched,
    scenario_unmatched,
    unmatched_rules,
)
from payment_sandbox.scenarios.model import Scenario

SETTLE_SECONDS: float = 60.0
ADDRESS_SETTINGS: Final = ("webhook_url",)
"""Settings that are not masked, because a masked URL could not be called."""
KEPT_SETTINGS: Final = ("seed", "forward_to")
"""Settings that a reset keeps: a changed seed takes effect with it, and a listener stays connected."""


class ProjectReset(Refusal):
    """The project was reset or deleted during the call; the new epoch is unchanged."""

    rule = "CTL-09"


DELETED: Final = "the project was deleted in the meantime"
DROPPED: Final = (
    "this server lost its connection to the state during the call: repeat the call with its Idempotency-Key, "
    "or read first"
)


class Services:
    """The host of a project; this class has no server: it delivers nothing, and only calls move the clock."""

    public_url = ""
    """The base URL for merchants and payers, without a trailing slash."""
    projects_max: int | None = None
    """The greatest number of projects; None if there is no limit."""

    def __init__(self, real: RealTime) -> None:
        self.real = real

    def create_outbox(self, project: "Project") -> Outbox:
        """Create the outbox of the next epoch; by default, it accepts nothing."""
        return Outbox()

    def wake(self, project: "Project") -> None:
        """Recompute the time of the project's next agenda entry; by default, only calls look at it."""

    def on_opened(self, project: "Project") -> None:
        """Handle a new or resumed project."""

    def forget(self, project: "Project") -> None:
        """Drop all data of a deleted project."""


CreateStore = Callable[["Project"], Store]
"""Creates the empty store of a project's next epoch; its first commit deletes the records of earlier ones."""


class Project:
    """A project: its identity and its current epoch; ``projects.locks`` describes the locks."""

    def __init__(
        self, identity: Identity, settings: Settings, services: Services, create_store: CreateStore
    ) -> None:
        """Create a project in memory; ``begin`` saves it to its storage."""
        self.identity = identity
        self.project_id = identity.project_id
        self.merchant_id = identity.merchant_id
        self.services = services
        self.masking = Masking()
        self.events = Events(self.masking)
        self.is_deleted = False
        self.is_dropped = False
        self.used_at_seconds = services.real.monotonic_seconds()  # time of its last call
        self.loaded_at = services.real.wall_now()
        self.rehearsal: Rehearsal = NO_REHEARSAL
        self.slots = Slots()
        self._create_store = create_store
        self._state_lock = ranked_lock(STATE)
        self.epoch = self.create_epoch(0, settings)

    # Epochs

    def create_epoch(self, number: int, settings: Settings) -> Epoch:
        """Create an epoch in its initial state, without making it current."""
        start, real = self.identity.start, self.services.real
        clock = ProjectClock.start(real, start.at or real.wall_now(), start.mode)
        store, outbox = self._create_store(self), self.services.create_outbox(self)
        epoch = Epoch(number, State.initial(settings, clock), store, self.events, outbox)
        epoch.rehearsal = self.rehearsal
        return epoch

    @property
    def is_rehearsed(self) -> bool:
        """Whether a rehearsal may vary the steps of this project."""
        return self.rehearsal is not NO_REHEARSAL

    def rehearse(self, rehearsal: Rehearsal) -> None:
        """Use this rehearsal at every step, even after resets."""
        self.rehearsal = self.epoch.rehearsal = rehearsal

    def begin(self, scenario: Scenario | None = None, *, is_declared: bool = False) -> None:
        """Save the first epoch to the storage.

        Raises:
            Invalid: the settings or the scenario contain a secret, and were not declared at the start.
        """
        with self._state_lock:
            if scenario is not None:
                self.epoch.state = self.epoch.state.with_scenario(scenario)
            if not is_declared:
                initial = State.initial(DEFAULT_SETTINGS, self.epoch.state.clock)
                self._refuse_secrets(initial, self.epoch.state)
            self._commit_epoch(self.epoch)

    def adopt(self, epoch: Epoch) -> None:
        """Make an epoch from the storage current."""
        before, self.epoch = self.epoch, epoch
        before.outbox.close()

    def reset(self, scenario: Scenario) -> None:
        """Return to the initial state, with this scenario (CTL-09); work in progress is discarded.

        Raises:
            Invalid: the scenario does not fit the settings; nothing changes.
        """
        with self._state_lock:
            epoch = self.create_epoch(self.epoch.number + 1, self.start_settings())
            still_active = (
                set(scenario_unmatched(self.epoch))
                if scenario.document == self.epoch.state.scenario.document
                else ()
            )
            removed = (each for each in unmatched_rules(self.epoch) if each not in still_active)
            epoch.state = epoch.state.with_scenario(scenario).note_unmatched(removed)
            self._replace_current(epoch, ChangeSet())
        self.publish("reset")

    def start_settings(self) -> Settings:
        """Return the settings after a reset."""
        current, start = self.epoch.state.base_settings, self.identity.start.settings
        if start is None:
            return current
        kept = {name: getattr(current, name) for name in KEPT_SETTINGS}
        return read_stored_settings({**start, **kept}, "settings")

    def replace_epoch(self, epoch: Epoch, change: ChangeSet) -> None:
        """Switch to a restored epoch; ``change`` holds all records of the epoch.

        Raises:
            ProjectReset: the project was deleted.
            Invalid: the epoch's settings, scenario or faults add a secret.
        """
        with self._state_lock:
            self._check_current(None)
            self._refuse_secrets(self.epoch.state, epoch.state)
            self._replace_current(epoch, change)
        self.publish("restored")
        self.services.wake(self)

    def end(self) -> None:
        """Mark the project as deleted: drop pending work and wake all waiting threads."""
        with self._state_lock:
            self.is_deleted = True
            self.epoch.outbox.close()
        self.end_waiting()
        self.services.forget(self)

    def drop(self) -> None:
        """End the project in this process, without waiting for its locks: its state is read again.

        A thread that holds them may wait for the new reading, to learn whether its change was committed.
        """
        self.is_dropped = self.is_deleted = True
        self.epoch.outbox.close()
        self.end_waiting()
        self.services.forget(self)

    def refuse_dropped(self) -> None:
        """Refuse to go on with a project that was dropped.

        Raises:
            StateLost: the state is read again.
        """
        if self.is_dropped:
            raise StateLost(DROPPED)

    def publish(self, kind: str, /, **data: Any) -> None:
        """Show an event to the watchers."""
        self.events.publish(kind, **data)

    def is_over(self) -> bool:
        """Whether the project has been idle longer than its settings allow."""
        most = self.settings.idle_seconds_max
        return most is not None and self.unused_seconds() > most

    def note_use(self) -> None:
        """Note that the project is in use."""
        self.used_at_seconds = self.services.real.monotonic_seconds()

    def unused_seconds(self) -> float:
        """Return the real seconds since the project was last called."""
        return self.services.real.monotonic_seconds() - self.used_at_seconds

    def end_waiting(self) -> None:
        """End all calls that wait for this project."""
        self.events.end()
        self.epoch.outbox.wake()

    def _replace_current(self, epoch: Epoch, change: ChangeSet) -> None:
        self._check_current(None)
        self._commit_epoch(epoch, change)
        before, self.epoch = self.epoch, epoch
        before.outbox.close()
        before.journal.close()

    def _refuse_secrets(self, before: State, after: State) -> None:
        """Refuse new secrets in settings, scenario or faults, which are stored and shown unmasked."""
        for known, document in zip(before.documents, after.documents, strict=True):
            if document is known:
                continue
            changed = {
                key: value for key, value in document.items() if key not in known or known[key] != value
            }
            paths = list(self.masking.secret_paths(changed, ADDRESS_SETTINGS))
            if paths:
                message = f"must not contain {SECRET_KINDS}, because it is stored and shown unmasked"
                raise Invalid([Violation(path, message) for path in paths])

    def _commit_epoch(self, epoch: Epoch, change: ChangeSet | None = None) -> None:
        whole = (change or ChangeSet())._replace(chosen=epoch.state.chosen)
        if epoch.store.is_durable:
            counters = epoch.counters(epoch.state, epoch.ids, epoch.timeline.sequence, epoch.now())
            whole = whole._replace(counters=counters)
        epoch.store.commit(whole)

    # Editing

    @contextmanager
    def edit(self, epoch: Epoch | None = None, now: datetime | None = None) -> Iterator[Edit]:
        """Make an atomic change; ``epoch`` is the caller's epoch, ``now`` the time of an event.

        Raises:
            ProjectReset: the project was reset or deleted in the meantime.
            AlreadyAnswered, KeyReused: an earlier request with the caller's key was executed.
        """
        with self._state_lock:
            current = self._check_current(epoch)
            edit = Edit(current, now or current.now(), self.services.real.wall_now(), caller())
            if (tracked := edit.caller.tracked) is not None:
                tracked.refuse_repeat(current.saved_answer(tracked.key_digest))
            yield edit
            change = edit.plan()
            if change is not None:
                current.store.commit(change)
                edit.apply(change)
            edit.log()
            edit.queue_webhooks()
        self._notify_services(edit)

    def _check_current(self, epoch: Epoch | None) -> Epoch:
        self.refuse_dropped()
        if self.is_deleted:
            raise ProjectReset(DELETED)
        if epoch is not None and epoch is not self.epoch:
            raise ProjectReset("the project was reset in the meantime")
        return self.epoch

    def _notify_services(self, edit: Edit) -> None:
        """Let the services work on the effects of an edit."""
        if edit.to_send:
            edit.epoch.outbox.start()
        if edit.is_due_earlier and not edit.epoch.is_advancing:
            self._wake(edit)

    def _wake(self, edit: Edit) -> None:
        """Let the scheduler check the agenda, after the response if the call defers webhooks until then."""
        held = edit.caller.held
        if held is not None and held.is_holding(edit.epoch.outbox):
            held.wakes_scheduler = True
        else:
            self.services.wake(self)

    @contextmanager
    def blocking_edits(self, epoch: Epoch | None = None) -> Iterator[Epoch]:
        """Block edits for a moment, for changes to an epoch that are not stored.

        Raises:
            ProjectReset: the project was reset or deleted in the meantime.
        """
        with self._state_lock:
            yield self._check_current(epoch)

    # Scenario, faults and settings

    def activate(self, scenario: Scenario) -> None:
        """Switch to a scenario."""
        with self.edit() as edit:
            if scenario.document != edit.state.scenario.document:
                edit.state = edit.state.note_unmatched(scenario_unmatched(edit.epoch))
            edit.state = edit.state.with_scenario(scenario)
            self._refuse_secrets(edit.epoch.state, edit.state)
            edit.publish("scenario", name=scenario.name)

    def put_faults(self, data: Any) -> None:
        """Set faults in addition to the scenario's; an invalid document changes nothing."""
        faults = ProjectFaults.parse(data)
        self.change_faults(lambda before: faults)

    def change_faults(self, change: Callable[[ProjectFaults], ProjectFaults]) -> None:
        """Read and replace the faults atomically.

        Raises:
            Invalid: they would contain a secret.
        """
        with self.edit() as edit:
            faults = change(edit.state.faults)
            if faults is edit.state.faults:
                return
            faults.refuse_unknown_orders(lambda order_id: edit.epoch.store.order(order_id) is not None)
            unmatched = faults_unmatched(edit.epoch, edit.state.faults, faults)
            edit.state = edit.state.note_unmatched(unmatched)._replace(faults=faults)
            self._refuse_secrets(edit.epoch.state, edit.state)
            edit.publish("faults", **faults.document)

    def change_settings(self, data: Any) -> None:
        """Change some settings; if one is invalid, nothing changes (CTL-01)."""
        with self.edit() as edit:
            edit.state = edit.state.with_settings(data)
            self._refuse_secrets(edit.epoch.state, edit.state)
            edit.publish("settings", **data)

    def forward_webhooks(self, url: str | None, *, unless: Callable[[], bool] = lambda: False) -> None:
        """Let a listener forward all webhooks to an address; None lets the server send them again.

        The call is a no-op if ``unless`` returns true, which is evaluated with the project locked.
        """
        with self.edit() as edit:
            if unless():
                return
            base, settings = edit.state.base_settings, edit.state.settings
            edit.state = edit.state._replace(
                base_settings=replace(base, forward_to=url), settings=replace(settings, forward_to=url)
            )
            edit.publish("settings", forward_to=url)
        if url is None:
            self.send_unsent()

    # Webhooks

    def send_unsent(self) -> None:
        """Queue the webhooks that no listener took: a listener has connected, or forwarding has ended."""
        store = self.epoch.store
        if all(each.state is not DeliveryState.UNSENT for each in store.deliveries()):
            return
        with self.edit(self.epoch) as edit:
            for each in edit.epoch.store.deliveries():
                if each.state is DeliveryState.UNSENT:
                    edit.store_delivery(each._replace(state=DeliveryState.PENDING))
                    edit.send(each.id)

    def put(self, epoch: Epoch, queued: QueuedDelivery) -> None:
        """Queue a webhook."""
        epoch.outbox.put(queued, caller().held)
        epoch.outbox.start()

    def send_pending(self) -> None:
        """Send the pending webhooks, and wake the project for its due commands."""
        epoch = self.epoch
        for queued in epoch.webhooks_to_send():
            self.put(epoch, queued)
        self.services.wake(self)

    def release(self, held: HeldDeliveries) -> None:
        """Queue the held webhooks."""
        held.outbox.release(held)
        wakes_scheduler, held.wakes_scheduler = held.wakes_scheduler, False
        if wakes_scheduler:
            self.services.wake(self)

    def deliver_held(self, held: HeldDeliveries) -> None:
        """Deliver the held webhooks on this thread, outside the queue, and return once they are answered."""
        held.outbox.send_held(held)
        self.release(held)

    def settle(
        self,
        timeout_seconds: float = SETTLE_SECONDS,
        epoch: Epoch | None = None,
        is_enough: Callable[[], bool] = lambda: False,
        orders: Iterable[str] | None = None,
    ) -> bool:
        """Wait for the answers to these orders' webhooks, which this thread may have to deliver itself.

        Without orders, wait for all webhooks queued or in flight at the time of the call. Return False on
        timeout, or once ``is_enough`` is true.
        """
        return (epoch or self.epoch).outbox.settle(timeout_seconds, is_enough, orders)

    # Reading

    @property
    def settings(self) -> Settings:
        """The settings, including those of the active scenario."""
        return self.epoch.state.settings

    def now(self) -> datetime:
        """Return the sandbox time."""
        return self.epoch.now()

    def find_order(self, order_id: str) -> Order:
        """Return the newest version of an order or refund.

        Raises:
            Unknown: the project has no such order.
        """
        return self.epoch.find_order(order_id)

    def real_seconds_until_due(self) -> float | None:
        """Return the real seconds until the next due entry; None if the clock is frozen before it."""
        epoch = self.epoch
        head = epoch.timeline.head()
        if head is None or self.is_deleted or epoch.is_advancing:  # an advance wakes the scheduler at its end
            return None
        if epoch.awaits_advance:
            return None
        if head.at <= epoch.now():
            return 0.0
        return epoch.state.clock.real_seconds_until(head.at)


def weakly(project: Project) -> Callable[[], Project]:
    """Return a function that finds the project while it exists, so that a deleted one is freed at once.

    The function raises ``ProjectReset`` once the project was deleted.
    """
    reference = ref(project)

    def find() -> Project:
        if (found := reference()) is None:
            raise ProjectReset(DELETED)
        return found

    return find
