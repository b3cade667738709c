"""Moving a project's clock: frozen, running, put forward, or advanced event by event."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from payment_sandbox.kernel.periods import Period
from payment_sandbox.operations.advance import EVENTS_MAX, Advance, Aim, advance, run_due
from payment_sandbox.operations.perform import PERFORMER
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.projects.clock import FROZEN
from payment_sandbox.projects.project import Project

PUT_FORWARD_EVENTS_MAX: Final = 10_000_000  # it has no answer that could say where it stopped


def advance_clock(project: Project, aim: Mapping[str, Any], events_max: int = EVENTS_MAX) -> Advance:
    """Advance ``by`` a period, ``to`` a time, or ``until`` the next event or until idle (CTL-13).

    Raises:
        Invalid: a time before now.
        ClockBusy: another advance is under way.
    """
    if "until" in aim:
        return advance(project, PERFORMER, None, next_only=aim["until"] == "next", events_max=events_max)
    if "by" in aim:
        return advance(project, PERFORMER, Period.parse(aim["by"]).after, events_max=events_max)
    return advance(project, PERFORMER, _to(aim["to"], "to"), events_max=events_max)


def catch_up(project: Project) -> None:
    """Do what a running clock has made due before the next request looks, however fast it runs."""
    if project.clock.running and not project.advancing:
        run_due(project, PERFORMER)


def change_clock(
    project: Project, mode: str | None = None, rate: float | None = None, now: datetime | None = None
) -> None:
    """Put the clock forward, then freeze it or let it run (CTL-12).

    Raises:
        Invalid: a time before now; nothing changes.
        ClockBusy: an advance is under way.
    """
    # The advance also does what is due by now, so that a change of mode skips nothing.
    aim = _to(now, "now") if now is not None else _stay
    advance(project, PERFORMER, aim, events_max=PUT_FORWARD_EVENTS_MAX)
    with project.state_lock:
        running = project.clock.running if mode is None else mode != FROZEN
        at = project.now()
        project.timeline.move_to(at)
        project.clock.set(at, running=running, rate=rate)
        project.keep()
    project.wake(project)


def _stay(now: datetime) -> datetime:
    return now


def _to(moment: datetime, path: str) -> Aim:
    def forward(now: datetime) -> datetime:
        if moment < now:
            raise Invalid([Violation(path, f"is before now, {now.isoformat()}: time only goes forward")])
        return moment

    return forward
