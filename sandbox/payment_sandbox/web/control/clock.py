"""The calls on a project's clock."""

from flask import Response

from payment_sandbox.forms import read
from payment_sandbox.operations import clock as clocks
from payment_sandbox.operations.advance import Limits
from payment_sandbox.operations.agenda import agenda
from payment_sandbox.web.answers.control import (
    advance_record,
    clock_record,
    stopped_record,
)
from payment_sandbox.web.answers.later import Later
from payment_sandbox.web.answers.responses import json_answer, list_answer
from payment_sandbox.web.auth import project
from payment_sandbox.web.bodies import json_body
from payment_sandbox.web.control.blueprint import BODY_ERRORS, control
from payment_sandbox.web.control.forms import ClockForm
from payment_sandbox.web.routes import route
from payment_sandbox.web.shared_forms import AdvanceForm

CLOCK = ClockForm()
ADVANCE = AdvanceForm()


@route(control, "GET", "/clock/", answers=Later("ClockShape"))
def get_clock() -> Response:
    """Get the clock."""
    return json_answer(clock_record(project()))


@route(
    control,
    "PATCH",
    "/clock/",
    reads=ClockForm,
    answers=Later("MovedClockShape"),
    errors=(*BODY_ERRORS, 409),
    example={"mode": "running", "rate": 3600},
    waits=True,
)
def patch_clock() -> Response:
    """Freeze the clock, run it at a rate, or move it forward (CTL-12)."""
    done = clocks.change_clock(project(), **read(CLOCK, json_body()))
    return json_answer({**clock_record(project()), **stopped_record(done)})


@route(
    control,
    "POST",
    "/clock/advance/",
    reads=AdvanceForm,
    answers=Later("AdvanceShape"),
    errors=(*BODY_ERRORS, 409),
    example={"by": "PT30M"},
    waits=True,
)
def post_advance() -> Response:
    """Advance the clock, event by event (CTL-13)."""
    aim = read(ADVANCE, json_body())
    asked = {"events_max": aim.pop("max_events", None), "timeout_seconds": aim.pop("timeout", None)}
    limits = Limits(**{name: limit for name, limit in asked.items() if limit is not None})
    return json_answer(advance_record(clocks.advance_clock(project(), aim, limits)))


@route(control, "GET", "/agenda/", answers=Later("AgendaShape"), slow=True)
def get_agenda() -> Response:
    """List the scheduled events, and those that failed (CTL-17)."""
    return list_answer(agenda(project().epoch))
