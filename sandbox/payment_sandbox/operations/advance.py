"""Clock advances: each event runs at its own time, after the webhooks of earlier events."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple, TypedDict

from payment_sandbox.kernel.timeline import DueItem
from payment_sandbox.kernel.times import LAST_MOMENT, timestamp
from payment_sandbox.operations.agenda import applies, clean_up_agenda, event, job_event, next_due
from payment_sandbox.operations.due_commands import handler_of
from payment_sandbox.orders.commands import AttemptDelivery, Command, PerformAction
from payment_sandbox.orders.refusals import ClockBusy
from payment_sandbox.projects.edit import Edit
from payment_sandbox.projects.epoch import Epoch, FailedCommand, ProcessedEvent
from payment_sandbox.projects.jobs import JOB_KIND, Job
from payment_sandbox.projects.journal import LoggedFailure
from payment_sandbox.projects.project import Project, ProjectReset
from payment_sandbox.projects.rehearsal import ClockAdvance
from payment_sandbox.projects.store import NotStored
from payment_sandbox.storage.codec import StepsInterrupted


def run_job(project: Project, epoch: Epoch, job: Job) -> frozenset[str]:
    """Run a job on this thread; return the orders whose webhooks are pending.

    A failure is recorded, and the job runs again at its next time.
    """
    with suppress(ProjectReset):
        with project.blocking_edits(epoch):
            epoch.timeline.move_to(job.at)
        epoch.jobs.running = job
        try:
            problem = epoch.rehearsal.perform(job, lambda due: due.run())
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        finally:
            epoch.jobs.running = None
        _record_failure(project, epoch, job, problem)
    pending = map(epoch.store.delivery, epoch.outbox.pending())
    return frozenset(delivery.order_id for delivery in pending if delivery is not None)


def _record_failure(project: Project, epoch: Epoch, job: Job, problem: str | None) -> None:
    problem = project.masking.mask_text(problem) if problem is not None else None
    entry = job_event(job, problem)
    with project.blocking_edits(epoch):
        if epoch.advance_log is not None:
            epoch.advance_log.append(entry)
        if problem is not None:
            real_at = project.services.real.wall_now()
            number = epoch.journal.next_id("failure")
            epoch.journal.add([LoggedFailure(number, "", JOB_KIND, job.label, problem, job.at, real_at)])


ADVANCE_RUNNING: Final = (
    "another advance of this project's clock is running; wait for its response. Threads of one test, such as "
    "those of pytest-run-parallel, need a project each: payment_sandbox_server.project()"
)
EVENTS_MAX: Final = 10_000
TIMEOUT_SECONDS: Final = 60.0
UNANSWERED_SHOWN_MAX: Final = 100

TargetTime = Callable[[datetime], datetime]
"""Computes an advance's target time from its start time."""

Orders = frozenset[str]
"""Identifiers of orders."""

log = logging.getLogger(__name__)


class AdvanceLimits(NamedTuple):
    """The limits of an advance: the number of events, and real time."""

    events_max: int = EVENTS_MAX
    timeout_seconds: float = TIMEOUT_SECONDS


class WebhookInFlight(TypedDict):
    """A webhook in flight: sent, and not answered yet."""

    delivery_id: str
    order_id: str
    url: str


@dataclass(slots=True)
class AdvanceResult:
    """The result of an advance; ``under_way`` lists all webhooks in flight, even those of other clients."""

    begun: datetime
    ended: datetime
    events: list[ProcessedEvent] = field(default_factory=list)
    stopped: bool = False
    under_way: list[WebhookInFlight] = field(default_factory=list)
    by_hand: bool = False  # whether a call stopped the advance


def advance(
    project: Project,
    target: TargetTime | None,
    *,
    next_only: bool = False,
    limits: AdvanceLimits | None = None,
) -> AdvanceResult:
    """Run all events due up to the time returned by ``target``, and stop there; None runs until idle.

    With ``next_only``, stop at the time of the next event instead.

    Raises:
        ClockBusy: another advance is running.
    """
    limits = limits or AdvanceLimits()
    rehearsal = project.epoch.rehearsal
    return rehearsal.perform(ClockAdvance(), lambda _: _advance(project, target, limits, next_only=next_only))


def _advance(
    project: Project, target: TargetTime | None, limits: AdvanceLimits, *, next_only: bool
) -> AdvanceResult:
    until_seconds = project.services.real.monotonic_seconds() + limits.timeout_seconds
    with report_progress(project), _hold_clock(project) as held:
        epoch = held.epoch
        run = _AdvanceRun(project, epoch, limits.events_max, until_seconds)
        result = AdvanceResult(epoch.timeline.now, epoch.timeline.now)
        until = target(epoch.timeline.now) if target is not None else None
        is_settled = run.settle()
        if next_only:
            until = run.next_time()
        while is_settled and (orders := run.step(until)) is not None:
            is_settled = run.settle(orders)
        is_settled = is_settled and run.settle(frozenset())
        run.record_end(result, until, is_settled=is_settled)
        if until is not None and not result.stopped:
            held.until = until
        result.events, result.under_way = list(run.log), _list_unanswered(project, epoch)
    result.ended = epoch.timeline.now
    return result


def stop_advance(project: Project) -> bool:
    """Stop the current advance; return False if no advance is running."""
    epoch = project.epoch
    if not epoch.is_advancing:
        return False
    epoch.is_stopping = True
    epoch.outbox.wake()
    return True


def run_due(project: Project) -> None:
    """Run all due events without waiting for webhooks; a no-op during an advance.

    This function never holds the clock, so it cannot cause ``ClockBusy``.
    """
    epoch = project.epoch
    steps = 0
    while steps < EVENTS_MAX and not (epoch.is_advancing or epoch.awaits_advance):
        if _run_next(project, epoch, None) is None:
            break
        steps += 1
    if steps:
        project.publish("due", steps=steps)


class _AdvanceRun:
    """An advance in progress, with its log and its limits."""

    def __init__(self, project: Project, epoch: Epoch, events_max: int, until_seconds: float) -> None:
        assert epoch.advance_log is not None, "the clock is held"
        self.log = epoch.advance_log
        self._project = project
        self._epoch = epoch
        self._events_max = events_max
        self._until_seconds = until_seconds

    def step(self, until: datetime | None) -> Orders | None:
        """Run the next event up to ``until``; return None at the end or at a limit."""
        if self.is_over_limit(until):
            return None
        if self._epoch.jobs and (job := self._next_job(until)) is not None:
            return run_job(self._project, self._epoch, job)
        return _run_next(self._project, self._epoch, until or LAST_MOMENT)

    def _next_job(self, until: datetime | None) -> Job | None:
        due = next_due(self._epoch, until)
        before = due.at if due is not None else None
        return self._epoch.jobs.take(until, before)

    def settle(self, orders: Orders | None = None) -> bool:
        """Wait for the webhooks of these orders, or for all webhooks in flight; return False at a limit."""
        remaining_seconds = self._until_seconds - self._project.services.real.monotonic_seconds()
        return self._project.settle(remaining_seconds, self._epoch, self._is_enough, orders)

    def _is_enough(self) -> bool:
        is_enough = len(self.log) >= self._events_max and not self._is_inside_moment()
        return self._epoch.is_stopping or is_enough

    def _is_inside_moment(self) -> bool:
        """Whether more events of this moment would run right after the advance, unreported."""
        epoch = self._epoch
        return epoch.state.clock.running and next_due(epoch, epoch.timeline.now) is not None

    def is_over_limit(self, until: datetime | None) -> bool:
        """Whether a limit is reached before all due events have run."""
        is_late = self._project.services.real.monotonic_seconds() >= self._until_seconds
        return (is_late or self._is_enough()) and next_due(self._epoch, until) is not None

    def record_end(self, result: AdvanceResult, until: datetime | None, *, is_settled: bool) -> None:
        """Note whether the advance stopped early because of a limit, a call, or a project reset."""
        is_reset = self._epoch is not self._project.epoch
        result.stopped = not is_settled or is_reset or self.is_over_limit(until)
        result.by_hand = result.stopped and self._epoch.is_stopping
        rest = next_due(self._epoch, self._epoch.timeline.now)
        self._epoch.is_moment_cut = result.stopped and rest is not None

    def next_time(self) -> datetime:
        """Return the time of the next event, or now if there is none."""
        due, now = next_due(self._epoch), self._epoch.timeline.now
        return now if due is None else max(due.at, now)


def _list_unanswered(project: Project, epoch: Epoch) -> list[WebhookInFlight]:
    """List the unanswered webhooks."""
    pending = epoch.outbox.pending()[:UNANSWERED_SHOWN_MAX]
    return [
        {
            "delivery_id": delivery.id,
            "order_id": delivery.order_id,
            "url": project.masking.mask_text(delivery.url),
        }
        for delivery in map(epoch.store.delivery, pending)
        if delivery is not None
    ]


@contextmanager
def report_progress(project: Project) -> Iterator[None]:
    """Report the progress of an advance if storage fails; the usual error would say that nothing has changed.

    Raises:
        StepsInterrupted: a part of the advance has happened.
        NotStored: nothing has changed.
    """
    timeline = project.epoch.timeline
    before = timeline.sequence, len(timeline)  # each event ends an entry
    try:
        yield
    except StepsInterrupted:
        raise
    except NotStored as failed:
        if before == (timeline.sequence, len(timeline)):
            raise
        done = (
            f"the advance stopped early: all events due until {timestamp(project.now())} have run; "
            "read the clock, and continue from there"
        )
        raise StepsInterrupted(failed, done) from failed


@dataclass(slots=True)
class _HeldClock:
    """The clock of an epoch, held by an advance, and its final time, if later than the last event."""

    epoch: Epoch
    until: datetime | None = None


@contextmanager
def _hold_clock(project: Project) -> Iterator[_HeldClock]:
    """Hold the clock; a reset of the project cancels the rest of the advance."""
    epoch = project.epoch
    if not epoch.advance_lock.acquire(blocking=False):
        raise ClockBusy(ADVANCE_RUNNING)
    held = _HeldClock(epoch)
    try:
        epoch.is_stopping = False  # before a call can see the held clock and request a stop
        epoch.is_moment_cut = False
        clean_up_agenda(project, epoch)
        with project.blocking_edits(epoch):
            epoch.timeline.move_to(epoch.now())
            epoch.advance_log = []
        yield held
    except ProjectReset:
        raise ClockBusy("the project was just reset; try again") from None
    finally:
        try:
            _release_clock(project, held)
        finally:
            epoch.advance_lock.release()
    project.publish("clock", now=timestamp(project.now()))
    project.services.wake(project)


def _release_clock(project: Project, held: _HeldClock) -> None:
    """Store the time reached by the advance, then release the clock."""
    epoch = held.epoch
    if epoch.advance_log is None:  # the project was reset before
        return
    try:
        end = held.until or epoch.timeline.now
        with suppress(ProjectReset), project.edit(epoch, end) as edit:
            edit.state = edit.state._replace(clock=edit.state.clock.set(edit.now))
    finally:
        epoch.advance_log = None


def _run_next(project: Project, epoch: Epoch, until: datetime | None) -> Orders | None:
    """Run the next event at its own time, up to ``until`` (None: up to now).

    Returns:
        The orders with webhooks sent by the event; None if there was no event.
    """
    due: DueItem[Command] | None = None
    orders: Orders = frozenset()
    try:
        with project.edit(epoch, epoch.timeline.now) as edit:
            due = _take_event(edit, epoch.now() if until is None else until)
            if due is not None:
                if not isinstance(due.item, PerformAction | AttemptDelivery):  # recorded elsewhere
                    edit.record_agenda_event(due)
                handler_of(due.item).run(edit, due.item)
        orders = _orders_to_notify(edit)
    except ProjectReset:
        return None
    except Exception as error:
        if due is None or isinstance(error, NotStored):
            raise  # the event remains due; only an event's own failure sets it aside
        with suppress(ProjectReset):
            _record_failed_command(project, epoch, due, error)
    return orders if due is not None else None


def _orders_to_notify(edit: Edit) -> Orders:
    return frozenset(queued.order_id for queued in edit.to_send)


def _take_event(edit: Edit, until: datetime) -> DueItem[Command] | None:
    """Take the first event off the agenda and move to its time; drop obsolete events before it."""
    for due in edit.epoch.timeline.in_order():
        if due.at > until:
            return None
        edit.finished_entries.append(due.sequence)
        if applies(edit.epoch, due):
            edit.now = max(due.at, edit.epoch.timeline.now)
            if edit.epoch.advance_log is not None and edit.state.clock.running:  # continues if a commit fails
                edit.state = edit.state._replace(clock=edit.state.clock.set(edit.now))
            if not isinstance(due.item, AttemptDelivery):  # logged later, with the response
                edit.advance_log.append(event(due))
            return due
    return None


def _record_failed_command(project: Project, epoch: Epoch, due: DueItem[Command], error: Exception) -> None:
    """Take a failed event off the agenda and log the failure; the event is not retried."""
    problem = project.masking.mask_text(f"{type(error).__name__}: {error}")
    log.error("%s failed and will not be retried", due.item.label, exc_info=error)
    failure = LoggedFailure(
        epoch.journal.next_id("failure"),
        due.item.order_id,
        due.item.kind,
        due.item.label,
        problem,
        due.at,
        project.services.real.wall_now(),
    )
    with project.blocking_edits(epoch):
        epoch.timeline.move_to(due.at)
        epoch.timeline.remove([due.sequence])
        epoch.failed_commands[due.sequence] = FailedCommand(due, problem)
        epoch.journal.add([failure])
        if epoch.advance_log is not None:
            epoch.advance_log.append(event(due, problem))
