"""The clock of a project: freeze it, run it, set it forward, or advance it event by event.

Each event runs at its own time, after the webhooks of earlier events.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, Final, NamedTuple, TypedDict

from payment_sandbox.kernel.timeline import DueItem
from payment_sandbox.kernel.times import LAST_MOMENT, Period, timestamp
from payment_sandbox.operations.agenda import (
    applies,
    clean_up_agenda,
    event,
    job_event,
    must_catch_up,
    next_due,
)
from payment_sandbox.operations.due_commands import handler_of
from payment_sandbox.orders.commands import AttemptDelivery, Command, PerformAction
from payment_sandbox.orders.refusals import ClockBusy, Invalid, Violation
from payment_sandbox.projects.clock import FROZEN
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
FORWARD_EVENTS_MAX: Final = 10_000_000
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


class AdvanceResult(NamedTuple):
    """The result of an advance; ``under_way`` lists all webhooks in flight, even those of other clients."""

    begun: datetime
    ended: datetime
    events: list[ProcessedEvent]
    stopped: bool
    under_way: list[WebhookInFlight]
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

    def run(_: ClockAdvance) -> AdvanceResult:
        return _AdvanceRun(project, limits or AdvanceLimits()).advance(target, next_only=next_only)

    return project.epoch.rehearsal.perform(ClockAdvance(), run)


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
    """An advance of an epoch's clock, with its log and its limits."""

    def __init__(self, project: Project, limits: AdvanceLimits) -> None:
        self.epoch = project.epoch
        self._project = project
        self._log: list[ProcessedEvent] = []
        self._events_max = limits.events_max
        self._until_seconds = project.services.real.monotonic_seconds() + limits.timeout_seconds
        self._end: datetime | None = None  # the final time, if later than the last event

    def advance(self, target: TargetTime | None, *, next_only: bool) -> AdvanceResult:
        """Advance, and return the result."""
        epoch = self.epoch
        with report_progress(self._project), self._hold_clock():
            begun = epoch.timeline.now
            until = target(begun) if target is not None else None
            is_settled = self._settle()
            if next_only:
                due = next_due(epoch)
                until = max(due.at if due is not None else begun, epoch.timeline.now)
            while is_settled and (orders := self._step(until)) is not None:
                is_settled = self._settle(orders)
            is_settled = is_settled and self._settle(frozenset())
            is_reset = epoch is not self._project.epoch
            stopped = not is_settled or is_reset or self._is_over_limit(until)
            by_hand = stopped and epoch.is_stopping
            epoch.is_moment_cut = stopped and next_due(epoch, epoch.timeline.now) is not None
            if not stopped:
                self._end = until
            events, under_way = list(self._log), _list_unanswered(self._project, epoch)
        return AdvanceResult(begun, epoch.timeline.now, events, stopped, under_way, by_hand)

    @contextmanager
    def _hold_clock(self) -> Iterator[None]:
        """Hold the clock; a reset of the project cancels the rest of the advance."""
        project, epoch = self._project, self.epoch
        if not epoch.advance_lock.acquire(blocking=False):
            raise ClockBusy(ADVANCE_RUNNING)
        try:
            epoch.is_stopping = False  # before a call can see the held clock and request a stop
            epoch.is_moment_cut = False
            if len(epoch.timeline) >= epoch.cleanup_length:
                clean_up_agenda(project, epoch)
            with project.blocking_edits(epoch):
                epoch.timeline.move_to(epoch.now())
                epoch.advance_log = self._log
            yield
        except ProjectReset:
            raise ClockBusy("the project was just reset; try again") from None
        finally:
            try:
                self._release_clock()
            finally:
                epoch.advance_log = None
                epoch.advance_lock.release()
        project.publish("clock", now=timestamp(project.now()))
        project.services.wake(project)

    def _release_clock(self) -> None:
        """Store the time reached by the advance."""
        clock, end = self.epoch.state.clock, self._end or self.epoch.timeline.now
        if self.epoch.advance_log is None or (clock.anchor == end and not clock.running):
            return  # the project was reset before, or nothing has changed
        with suppress(ProjectReset), self._project.edit(self.epoch, end) as edit:
            edit.state = edit.state._replace(clock=edit.state.clock.set(edit.now))

    def _step(self, until: datetime | None) -> Orders | None:
        """Run the next event up to ``until``; return None at the end or at a limit."""
        epoch = self.epoch
        if self._is_over_limit(until):
            return None
        if epoch.jobs:
            due = next_due(epoch, until)
            job = epoch.jobs.take(until, due.at if due is not None else None)
            if job is not None:
                return run_job(self._project, epoch, job)
        return _run_next(self._project, epoch, until or LAST_MOMENT)

    def _settle(self, orders: Orders | None = None) -> bool:
        """Wait for the webhooks of these orders, or for all webhooks in flight; return False at a limit."""
        remaining_seconds = self._until_seconds - self._project.services.real.monotonic_seconds()
        return self.epoch.outbox.settle(remaining_seconds, self._is_enough, orders)

    def _is_enough(self) -> bool:
        """Whether to stop; not inside a moment whose other events would run right after, unreported."""
        epoch = self.epoch
        is_enough = len(self._log) >= self._events_max and not (
            epoch.state.clock.running and next_due(epoch, epoch.timeline.now) is not None
        )
        return epoch.is_stopping or is_enough

    def _is_over_limit(self, until: datetime | None) -> bool:
        """Whether a limit is reached before all due events have run."""
        is_late = self._project.services.real.monotonic_seconds() >= self._until_seconds
        return (is_late or self._is_enough()) and next_due(self.epoch, until) is not None


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


def _run_next(project: Project, epoch: Epoch, until: datetime | None) -> Orders | None:
    """Run the next event at its own time, up to ``until`` (None: up to now).

    Returns:
        The orders with webhooks sent by the event; None if there was no event.
    """
    head, until = epoch.timeline.head(), epoch.now() if until is None else until
    if head is None or head.at > until:
        return None
    due: DueItem[Command] | None = None
    orders: Orders = frozenset()
    try:
        with project.edit(epoch, epoch.timeline.now) as edit:
            due = _take_event(edit, until)
            if due is not None:
                if not isinstance(due.item, PerformAction | AttemptDelivery):  # recorded elsewhere
                    edit.record_agenda_event(due)
                handler_of(due.item).run(edit, due.item)
        orders = frozenset(queued.order_id for queued in edit.to_send)
    except ProjectReset:
        return None
    except Exception as error:
        if due is None or isinstance(error, NotStored):
            raise  # the event remains due; only an event's own failure sets it aside
        with suppress(ProjectReset):
            _record_failed_command(project, epoch, due, error)
    return orders if due is not None else None


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


def advance_clock(
    project: Project, aim: Mapping[str, Any], limits: AdvanceLimits | None = None
) -> AdvanceResult:
    """Advance ``by`` a period, ``to`` a time, or ``until`` the next event or until idle (CTL-13).

    Raises:
        Invalid: the time is in the past.
        ClockBusy: another advance is running.
    """
    if "until" in aim:
        return advance(project, None, next_only=aim["until"] == "next", limits=limits)
    if "by" in aim:
        return advance(project, Period.parse(aim["by"]).after, limits=limits)
    return advance(project, _advance_to(aim["to"], "to"), limits=limits)


def catch_up(project: Project) -> None:
    """Run the due events of a running clock, whatever its rate."""
    if must_catch_up(project):
        run_due(project)


def change_clock(
    project: Project, mode: str | None = None, rate: float | None = None, now: datetime | None = None
) -> AdvanceResult:
    """Set the clock forward, then freeze or run it (CTL-12).

    Returns:
        The advance. The mode and rate change even if a limit stopped the advance early.

    Raises:
        Invalid: the time is in the past; nothing changes.
        ClockBusy: an advance is running.
    """
    # The advance also runs the events due now, so that changing the mode does not skip them.
    aim = _advance_to(now, "now") if now is not None else _stay_at_now
    with report_progress(project):
        result = advance(project, aim, limits=AdvanceLimits(FORWARD_EVENTS_MAX))
        with project.edit() as edit:
            running = None if mode is None else mode != FROZEN
            clock = edit.state.clock.set(edit.now, running=running, rate=rate)
            edit.state = edit.state._replace(clock=clock)
            edit.publish("clock", now=timestamp(edit.now), mode=clock.mode, rate=clock.rate)
    project.services.wake(project)
    return result


def _stay_at_now(now: datetime) -> datetime:
    return now


def _advance_to(moment: datetime, path: str) -> TargetTime:
    def target(now: datetime) -> datetime:
        if moment < now:
            raise Invalid(
                [
                    Violation(
                        path, f"is in the past: the clock only moves forward, and it is now {now.isoformat()}"
                    )
                ]
            )
        return moment

    return target
