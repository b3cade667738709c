"""Moving a project's clock: event by event, each at its own time, its webhooks delivered before the next."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from payment_sandbox.kernel.moments import timestamp
from payment_sandbox.kernel.periods import LAST_MOMENT
from payment_sandbox.kernel.timeline import Due
from payment_sandbox.operations.due import meaning_of
from payment_sandbox.orders.commands import AttemptDelivery, Command
from payment_sandbox.orders.refusals import ClockBusy
from payment_sandbox.projects.edit import Edit
from payment_sandbox.projects.epoch import TIDY_AT_LEAST, Epoch, SetAside
from payment_sandbox.projects.journal import Failure
from payment_sandbox.projects.project import Project, ProjectReset

EVENTS_MAX: Final = 10_000
TIMEOUT_SECONDS: Final = 60.0
UNDER_WAY_SHOWN_MAX: Final = 100

Aim = Callable[[datetime], datetime]
"""Where an advance goes, from the time at which it begins."""

log = logging.getLogger(__name__)


class Limits(NamedTuple):
    """When an advance stops on its way: after so many events, or so much real time."""

    events_max: int = EVENTS_MAX
    timeout_seconds: float = TIMEOUT_SECONDS


@dataclass(slots=True)
class Advance:
    """What an advance did; one that a limit stopped also says which webhooks were under way."""

    begun: datetime
    ended: datetime
    events: list[dict[str, Any]] = field(default_factory=list)
    stopped: bool = False
    under_way: list[dict[str, Any]] = field(default_factory=list)


def event(due: Due[Command], error: str | None = None) -> dict[str, Any]:
    """An agenda entry as answers show it; ``failed`` says why it was set aside."""
    shown: dict[str, Any] = {
        "at": timestamp(due.at),
        "kind": due.item.kind,
        "order_id": due.item.order_id,
        "label": due.item.label,
    }
    return shown if error is None else {**shown, "failed": error}


def agenda(epoch: Epoch) -> list[dict[str, Any]]:
    """What is due and when, as an advance would run it, and what failed when it was due (CTL-17)."""
    failed = sorted(epoch.set_aside.values(), key=lambda aside: aside.due[:2])
    due = [due for due in epoch.timeline if _applies(epoch, due)]
    return [*(event(aside.due, aside.error) for aside in failed), *map(event, due)]


def is_something_due(epoch: Epoch) -> bool:
    """Whether something is due now or before, or an advance is under way."""
    if epoch.is_advancing:
        return True
    now = epoch.now()
    for due in epoch.timeline.first():
        if due.at > now:
            return False
        if _applies(epoch, due):
            return True
    return False


def advance(
    project: Project, aim: Aim | None, *, next_only: bool = False, limits: Limits | None = None
) -> Advance:
    """Run everything due up to where ``aim`` leads from now, and end there; None: until nothing is due.

    With ``next_only`` it ends at the next due event's time instead.

    Raises:
        ClockBusy: another advance is under way.
    """
    limits = limits or Limits()
    until_seconds = project.services.real.monotonic_seconds() + limits.timeout_seconds
    with _advancing(project) as epoch:
        walk = _Walk(project, epoch, limits.events_max, until_seconds)
        result = Advance(epoch.timeline.now, epoch.timeline.now)
        until = aim(epoch.timeline.now) if aim is not None else None
        is_settled = walk.settle()
        if next_only:
            until = walk.next_at()
        while is_settled and walk.step(until):
            is_settled = walk.settle()
        result.stopped = not is_settled or walk.is_ended(until)
        if until is not None and not result.stopped:
            with project.exclusively(epoch):
                epoch.timeline.move_to(until)
        result.events, result.ended = list(walk.log), epoch.timeline.now
        result.under_way = _under_way(epoch) if result.stopped else []
    return result


def run_due(project: Project) -> None:
    """Do what is due by now, without waiting for webhooks; nothing while an advance is under way.

    It works event by event, so that it never makes an advance find the clock busy.
    """
    epoch = project.epoch
    _tidy(project, epoch)
    steps = 0
    while steps < EVENTS_MAX and not epoch.is_advancing and _step(project, epoch, None):
        steps += 1
    if steps:
        project.events.publish("due", steps=steps)


class _Walk:
    """One advance: its log, and how far it may go."""

    def __init__(self, project: Project, epoch: Epoch, events_max: int, until_seconds: float) -> None:
        assert epoch.advance_log is not None, "the clock is held"
        self.log = epoch.advance_log
        self._project = project
        self._epoch = epoch
        self._events_max = events_max
        self._until_seconds = until_seconds

    def step(self, until: datetime | None) -> bool:
        """Do what is due next, up to ``until``; False when nothing is, or a limit is reached."""
        if self.is_over_limit(until):
            return False
        if _step(self._project, self._epoch, until or LAST_MOMENT):
            return True
        return until is None and self._release_swapped()

    def settle(self) -> bool:
        """Wait for the webhooks under way; False when a limit is reached first."""
        if not self._project.services.delivers:
            return True
        left_seconds = self._until_seconds - self._project.services.real.monotonic_seconds()
        return self._epoch.outbox.settle(max(left_seconds, 0.0), lambda: len(self.log) >= self._events_max)

    def is_over_limit(self, until: datetime | None) -> bool:
        """Whether something is left to do and no event may be added."""
        is_late = self._project.services.real.monotonic_seconds() >= self._until_seconds
        return (is_late or len(self.log) >= self._events_max) and self._is_due(until)

    def is_ended(self, until: datetime | None) -> bool:
        """Whether it ended before its time: by a limit, or because the project was reset."""
        return self._epoch is not self._project.epoch or self.is_over_limit(until)

    def next_at(self) -> datetime:
        """When the next thing is due; now where nothing is."""
        for due in self._epoch.timeline.first():
            if _applies(self._epoch, due):
                return max(due.at, self._epoch.timeline.now)
        return self._epoch.timeline.now

    def _is_due(self, until: datetime | None) -> bool:
        for due in self._epoch.timeline.first():
            if until is not None and due.at > until:
                return False
            if _applies(self._epoch, due):
                return True
        return False

    def _release_swapped(self) -> bool:
        """Until idle means that no webhook waits for another one any more, either."""
        try:
            with self._project.edit(self._epoch) as edit:
                return edit.release_swapped()
        except ProjectReset:
            return False


def _under_way(epoch: Epoch) -> list[dict[str, Any]]:
    """The webhooks that nobody has answered yet."""
    found = [epoch.store.delivery(delivery_id) for delivery_id in epoch.outbox.pending()]
    return [
        {"delivery_id": delivery.id, "order_id": delivery.order_id, "url": delivery.url}
        for delivery in found[:UNDER_WAY_SHOWN_MAX]
        if delivery is not None
    ]


def _applies(epoch: Epoch, due: Due[Command]) -> bool:
    return meaning_of(due.item).applies(epoch, due.item, due.at)


def _is_over(epoch: Epoch, due: Due[Command]) -> bool:
    return meaning_of(due.item).is_over(epoch, due.item, due.at)


@contextmanager
def _advancing(project: Project) -> Iterator[Epoch]:
    """Hold the clock; after a reset meanwhile, what is left of this advance touches nothing."""
    epoch = project.epoch
    if not epoch.advance_lock.acquire(blocking=False):
        raise ClockBusy("another advance of this project's clock is under way; wait for its answer")
    try:
        _tidy(project, epoch)
        with project.exclusively(epoch):
            epoch.timeline.move_to(epoch.now())
            epoch.advance_log = []
        yield epoch
    except ProjectReset:
        raise ClockBusy("the project was reset just now; try again") from None
    finally:
        try:
            _let_go(project, epoch)
        finally:
            epoch.advance_lock.release()
    project.events.publish("clock", now=timestamp(project.now()))
    project.services.wake(project)


def _let_go(project: Project, epoch: Epoch) -> None:
    """Let the clock go on from where the advance has led it."""
    try:
        with suppress(ProjectReset), project.edit(epoch, epoch.timeline.now) as edit:
            edit.state = edit.state._replace(clock=edit.state.clock.set(edit.now))
    finally:
        epoch.advance_log = None


def _step(project: Project, epoch: Epoch, until: datetime | None) -> bool:
    """Do what is due next, at its own time; ``until`` None means up to now. False when nothing is."""
    due: Due[Command] | None = None
    try:
        with project.edit(epoch, epoch.timeline.now) as edit:
            due = _take(edit, epoch.now() if until is None else until)
            if due is not None:
                meaning_of(due.item).run(edit, due.item)
    except ProjectReset:
        return False
    except Exception as error:
        if due is None:
            raise
        with suppress(ProjectReset):
            _set_aside(project, epoch, due, error)
    return due is not None


def _take(edit: Edit, until: datetime) -> Due[Command] | None:
    """Take the first thing due off the agenda and go to its time; what no longer applies is dropped."""
    for due in edit.epoch.timeline.first():
        if due.at > until:
            return None
        edit.finished.append(due.sequence)
        if _applies(edit.epoch, due):
            edit.now = max(due.at, edit.epoch.timeline.now)
            if not isinstance(due.item, AttemptDelivery):  # an attempt logs itself, with its answer
                edit.log.append(event(due))
            return due
    return None


def _set_aside(project: Project, epoch: Epoch, due: Due[Command], error: Exception) -> None:
    """Take what cannot be done off the agenda, and say so once; it blocks nothing and is not tried again."""
    problem = f"{type(error).__name__}: {error}"
    log.error("%s could not be done and was set aside", due.item.label, exc_info=error)
    failure = Failure(
        due.item.order_id, due.item.kind, due.item.label, problem, due.at, project.services.real.wall_now()
    )
    with project.exclusively(epoch):
        epoch.timeline.move_to(due.at)
        epoch.timeline.remove([due.sequence])
        epoch.set_aside[due.sequence] = SetAside(due, problem)
        epoch.journal.failures.append(failure)
        if epoch.advance_log is not None:
            epoch.advance_log.append(event(due, problem))
    project.events.publish("failed", **event(due, problem))


def _tidy(project: Project, epoch: Epoch) -> None:
    """Forget what is over once it may be half of the agenda: orders end before all that they scheduled."""
    if len(epoch.timeline) < epoch.tidy_at:
        return
    with project.exclusively(epoch):
        over = [due.sequence for due in epoch.timeline if _is_over(epoch, due)]
        epoch.timeline.remove(over)
        if epoch.store.is_durable:
            epoch.finished += over
        epoch.tidy_at = max(TIDY_AT_LEAST, 2 * len(epoch.timeline))
