"""Moving a project's clock: frozen, running, put forward, or advanced event by event."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sandbox.kernel.periods import Period
from sandbox.operations.perform import PERFORMER
from sandbox.orders.refusals import Invalid, Violation
from sandbox.projects.advance import EVENTS_MAX, Advance, advance
from sandbox.projects.clock import FROZEN
from sandbox.projects.project import Project


def advance_clock(project: Project, aim: Mapping[str, Any], events_max: int = EVENTS_MAX) -> Advance:
    """Advance ``by`` a period, ``to`` a time, or ``until`` the next event or until idle (CTL-13).

    Raises:
        Invalid: a time before now.
        ClockBusy: another advance is under way.
    """
    if aim.get("until") == "next":
        return advance(project, PERFORMER, until=None, next_only=True, events_max=events_max)
    if aim.get("until") == "idle":
        return advance(project, PERFORMER, until=None, events_max=events_max)
    until = (
        Period.parse(aim["by"]).after(project.now()) if "by" in aim else _forward(project, aim["to"], "to")
    )
    return advance(project, PERFORMER, until=until, events_max=events_max)


def change_clock(
    project: Project, mode: str | None = None, rate: float | None = None, now: datetime | None = None
) -> None:
    """Put the clock forward, then freeze it or let it run (CTL-12).

    Raises:
        Invalid: a time before now; nothing changes.
        ClockBusy: an advance is under way.
    """
    # The advance also does what is due by now, so that a change of mode skips nothing.
    until = project.now() if now is None else _forward(project, now, "now")
    advance(project, PERFORMER, until=until)
    with project.state_lock:
        running = project.clock.running if mode is None else mode != FROZEN
        at = project.now()
        project.timeline.move_to(at)
        project.clock.set(at, running=running, rate=rate)
    project.wake(project)


def _forward(project: Project, moment: datetime, path: str) -> datetime:
    now = project.now()
    if moment < now:
        raise Invalid([Violation(path, f"is before now, {now.isoformat()}: time only goes forward")])
    return moment
