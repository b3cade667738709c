"""Moving a project's clock: event by event, each at its own time, its webhooks delivered before the next."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol

from payment_sandbox.kernel.moments import timestamp
from payment_sandbox.kernel.timeline import Due, Timeline
from payment_sandbox.orders.commands import Command
from payment_sandbox.orders.refusals import ClockBusy
from payment_sandbox.projects.project import Project

EVENTS_MAX: Final = 10_000
TIDY_AT_LEAST: Final = 1000

Aim = Callable[[datetime], datetime]
"""Where an advance goes, from the time at which it begins."""


class Performer(Protocol):
    """Knows what a command means."""

    def applies(self, project: Project, command: Command, at: datetime) -> bool:
        """Whether it still has something to do."""
        ...

    def is_over(self, project: Project, command: Command, at: datetime) -> bool:
        """Whether it can never have anything to do again."""
        ...

    def perform(self, project: Project, command: Command, at: datetime) -> None:
        """Do it, at its own time."""
        ...


@dataclass(slots=True)
class Advance:
    """What an advance did."""

    begun: datetime
    ended: datetime
    events: list[dict[str, Any]] = field(default_factory=list)
    stopped: bool = False


def event(due: Due[Command]) -> dict[str, Any]:
    """An agenda entry as answers show it."""
    return {
        "at": timestamp(due.at),
        "kind": due.item.kind,
        "order_id": due.item.order_id,
        "label": due.item.label,
    }


def agenda(project: Project, performer: Performer) -> list[dict[str, Any]]:
    """What is due and when, as an advance would run it (CTL-17)."""
    with project.state_lock:
        return [event(due) for due in project.timeline if performer.applies(project, due.item, due.at)]


def advance(
    project: Project,
    performer: Performer,
    aim: Aim | None,
    *,
    next_only: bool = False,
    events_max: int = EVENTS_MAX,
) -> Advance:
    """Run everything due up to where ``aim`` leads from now, and end there; None: until nothing is due.

    With ``next_only`` it ends at the next due event's time instead.

    Raises:
        ClockBusy: another advance is under way.
    """
    with _advancing(project, performer) as timeline:
        log: list[dict[str, Any]] = []
        project.advance_log = log
        outbox = project.outbox
        result = Advance(timeline.now, timeline.now, log)
        until = aim(timeline.now) if aim is not None else None
        outbox.settle()
        if next_only:
            head = _live_head(project, performer)
            until = timeline.now if head is None else max(head.at, timeline.now)
        while True:
            if len(log) >= events_max and _is_due(project, performer, until):
                result.stopped = True
                break
            if not _step(project, performer, until, log, timeline) and not _flush(project, until, timeline):
                break
            outbox.settle()
        result.stopped = result.stopped or timeline is not project.timeline  # a reset ended it
        if until is not None and not result.stopped:
            timeline.move_to(until)
        result.ended = project.now()
        return result


def run_due(project: Project, performer: Performer) -> None:
    """Do what is due by now, without waiting for webhooks; nothing while an advance is under way.

    It takes the state lock only, event by event, so that it never makes an advance find the clock busy.
    """
    steps, more = 0, True
    with project.state_lock:
        _tidy(project, performer)
    while more:
        with project.state_lock:
            timeline, until = project.timeline, project.now()
            more = not project.advancing and _step(project, performer, until, None, timeline)
            steps += more
    if steps:
        project.feed.publish("due", steps=steps)


def is_something_due(project: Project, performer: Performer) -> bool:
    """Whether the agenda holds something for now or before, or an advance is under way."""
    with project.state_lock:
        if project.advancing:
            return True
        head = _live_head(project, performer)
        return head is not None and head.at <= project.now()


@contextmanager
def _advancing(project: Project, performer: Performer) -> Iterator[Timeline[Command]]:
    """Hold the clock; after a reset meanwhile, what is left of this advance touches nothing."""
    lock = project.advance_lock
    if not lock.acquire(blocking=False):
        raise ClockBusy("another advance of this project's clock is under way; wait for its answer")
    with project.state_lock:
        timeline, is_current = project.timeline, project.advance_lock is lock
        if is_current:
            _tidy(project, performer)
            timeline.move_to(project.now())
            project.advancing = True
    if not is_current:  # a reset came between
        lock.release()
        raise ClockBusy("the project was reset just now; try again")
    try:
        yield timeline
    finally:
        try:
            with project.state_lock:
                if project.timeline is timeline:
                    project.clock.set(timeline.now)
                    project.advancing = False
                    project.advance_log = None
                    project.keep()
        finally:
            lock.release()
        project.feed.publish("clock", now=timestamp(project.now()))
        project.wake(project)


def _is_due(project: Project, performer: Performer, until: datetime | None) -> bool:
    head = _live_head(project, performer)
    return head is not None and (until is None or head.at <= until)


def _flush(project: Project, until: datetime | None, timeline: Timeline[Command]) -> bool:
    """Until idle means that no webhook waits for another one any more, either."""
    return until is None and project.timeline is timeline and project.release_swapped()


def _live_head(project: Project, performer: Performer) -> Due[Command] | None:
    with project.state_lock:
        while (head := project.timeline.head()) is not None:
            if performer.applies(project, head.item, head.at):
                return head
            _over(project, project.timeline.drop_head())
        return None


def _tidy(project: Project, performer: Performer) -> None:
    """Forget what is over once it may be half of the agenda: orders end before all that they put down."""
    timeline = project.timeline
    if len(timeline) < project.tidy_at:
        return
    for due in timeline.keep_only(lambda due: not performer.is_over(project, due.item, due.at)):
        _over(project, due)
    project.tidy_at = max(TIDY_AT_LEAST, 2 * len(timeline))


def _over(project: Project, due: Due[Command]) -> None:
    """What is off the agenda leaves a durable store with the next change, which is what it leads to."""
    if project.store.is_durable:
        project.done.append(due.sequence)


def _step(
    project: Project,
    performer: Performer,
    until: datetime | None,
    log: list[dict[str, Any]] | None,
    timeline: Timeline[Command],
) -> bool:
    with project.state_lock:
        if project.timeline is not timeline:
            return False
        head = _live_head(project, performer)
        if head is None or (until is not None and head.at > until):
            return False
        due = timeline.step(head.at)
        assert due is not None, "the head was there a moment ago, and the lock is held"
        _over(project, due)
        if log is not None and due.item.kind != "webhook":  # attempts log themselves, with their answer
            log.append(event(due))
        try:
            performer.perform(project, due.item, due.at)
        except BaseException:
            timeline.put_back(due)  # it was not done, so it is due still
            project.done = [sequence for sequence in project.done if sequence != due.sequence]
            raise
        return True
