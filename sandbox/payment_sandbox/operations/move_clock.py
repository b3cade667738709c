"""Control of a project's clock: freeze, run, set forward, or advance event by event."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from payment_sandbox.kernel.times import Period, timestamp
from payment_sandbox.operations.advance import (
    AdvanceLimits,
    AdvanceResult,
    TargetTime,
    advance,
    report_progress,
    run_due,
)
from payment_sandbox.operations.agenda import must_catch_up
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.projects.clock import FROZEN
from payment_sandbox.projects.project import Project

FORWARD_LIMITS: Final = AdvanceLimits(events_max=10_000_000)


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
        result = advance(project, aim, limits=FORWARD_LIMITS)
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
