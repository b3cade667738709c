"""Control of a project's clock."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal

from marshmallow import ValidationError, validate

from payment_sandbox.forms import Form, PeriodText, Problem, Whole, checks
from payment_sandbox.forms.fields import Number
from payment_sandbox.kernel.descriptions import Key
from payment_sandbox.kernel.times import timestamp
from payment_sandbox.operations import advance as advances
from payment_sandbox.operations import agenda as agendas
from payment_sandbox.operations.advance import EVENTS_MAX, TIMEOUT_SECONDS, AdvanceLimits, AdvanceResult
from payment_sandbox.projects.clock import FROZEN, RATE_MAX
from payment_sandbox.projects.project import Project
from payment_sandbox.web.answers import records
from payment_sandbox.web.answers.control import clock_record
from payment_sandbox.web.control.declaring import Listed, command

Rate = partial(
    Number,
    validate=validate.Range(0, RATE_MAX, min_inclusive=False, error="must be above 0 and at most 1000000"),
)
AdvanceSeconds = partial(
    Number,
    validate=validate.Range(0, 600, min_inclusive=False, error="must be above 0 and at most 600 seconds"),
)


@command("control", "GET", "/clock/")
def read_clock(project: Project) -> records.Clock:
    """Get the clock."""
    return clock_record(project.epoch)


def stop_details(result: AdvanceResult) -> records.StopDetails:
    """Serialize the early stop of an advance, and the webhooks in flight; usually empty."""
    if result.stopped:
        return {"stopped": True, "under_way": result.under_way}
    return {"under_way": result.under_way} if result.under_way else {}


@checks(although_invalid=False)
def require_change(form: Form, data: Mapping[str, Any], sent: Any, **options: Any) -> None:
    """Refuse an empty change, and a rate for a frozen clock."""
    if not data:
        known = list(form.load_fields)
        raise ValidationError(Problem(f"must contain one of: {', '.join(known)}", known))
    if "rate" in data and data.get("mode") == FROZEN:
        raise ValidationError("requires mode running", "rate")


@command(
    "control",
    "PATCH",
    "/clock/",
    check=require_change,
    errors=(409,),
    example={"mode": "running", "rate": 3600},
)
def change_clock(
    project: Project,
    *,
    mode: Annotated[Literal["running", "frozen"], "Whether the clock runs by itself or is frozen."]
    | None = None,
    rate: Annotated[float, Rate, "Sandbox seconds per real second, for a running clock."] | None = None,
    now: Annotated[datetime, "The new time; it can only move forward."] | None = None,
) -> records.MovedClock:
    """Freeze the clock, run it at a rate, or move it forward (CTL-12)."""
    result = advances.change_clock(project, mode, rate, now)
    return {**clock_record(project.epoch), **stop_details(result)}


@checks(although_invalid=False)
def require_one_target(form: Form, data: Mapping[str, Any], sent: Any, **options: Any) -> None:
    """Require exactly one target."""
    targets = ("by", "to", "until")
    if sum(target in data for target in targets) != 1:
        raise ValidationError(Problem(f"must contain exactly one of: {', '.join(targets)}", targets))


@command(
    "control",
    "POST",
    "/clock/advance/",
    check=require_one_target,
    errors=(409,),
    example={"by": "PT30M"},
)
def advance(
    project: Project,
    *,
    by: Annotated[str, partial(PeriodText, zero=True), "Advance by this duration."] | None = None,
    to: Annotated[datetime, "Advance to this time."] | None = None,
    until: Annotated[Literal["next", "idle"], "Advance to the next event, or until the agenda is empty."]
    | None = None,
    max_events: Annotated[
        int, partial(Whole, low=1, high=10_000_000), f"Stop after this many events; {EVENTS_MAX} by default."
    ] = EVENTS_MAX,
    timeout_seconds: Annotated[
        float, AdvanceSeconds, Key("timeout"), "Stop after this many real seconds; 60 by default."
    ] = TIMEOUT_SECONDS,
) -> records.Advance:
    """Advance the clock, event by event (CTL-13)."""
    target = {"by": by, "to": to, "until": until}
    aim = {name: value for name, value in target.items() if value is not None}
    limits = AdvanceLimits(max_events, timeout_seconds)
    result = advances.advance_clock(project, aim, limits)
    begun, ended = timestamp(result.begun), timestamp(result.ended)
    return {"from": begun, "to": ended, "events": result.events, **stop_details(result)}


@command("control", "GET", "/agenda/")
def agenda(project: Project) -> Listed[records.AgendaItem]:
    """List the scheduled events, including failed ones (CTL-17)."""
    return Listed(agendas.agenda(project.epoch))
