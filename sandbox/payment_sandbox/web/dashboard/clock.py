"""The clock bar: move the clock, freeze it, or let it run."""

from datetime import UTC, datetime
from typing import Any, Final

from flask import Response, request

from payment_sandbox.forms import read
from payment_sandbox.operations.clock import advance_clock, change_clock
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.projects.clock import FROZEN, RUNNING
from payment_sandbox.web.browsers import go
from payment_sandbox.web.dashboard.frame import POSTED, dashboard, enter, url, way_back
from payment_sandbox.web.dashboard.notices import moved, with_notice
from payment_sandbox.web.event_stream import STREAM, EventStream, after_of
from payment_sandbox.web.routes import route
from payment_sandbox.web.shared_forms import AdvanceForm

ADVANCE: Final = AdvanceForm()
AIMS: Final = ("by", "until", "to")
APART_SECONDS_PER_WATCHER: Final = 0.005
RATES: Final = {"1": 1.0, "60": 60.0, "3600": 3600.0}


@route(dashboard, "POST", "/dashboard/<project_id>/clock/", **POSTED)
def post_clock(project_id: str) -> Response:
    """Advance the clock, freeze it, or let it run at some rate."""
    project = enter(project_id)
    aim = {name: request.form[name].strip() for name in AIMS if request.form.get(name, "").strip()}
    back = way_back() or url(project, "orders/")
    if aim:
        done = advance_clock(project, read(ADVANCE, _with_zone(aim)))
        back = with_notice(back, moved(project, done))
    elif request.form.get("rate") in RATES:
        change_clock(project, RUNNING, RATES[request.form["rate"]])
    elif request.form.get("rate") == FROZEN:
        change_clock(project, FROZEN)
    else:
        raise Invalid([Violation("", "names no time; use by, until, to or rate")])
    return go(back)


@route(
    dashboard,
    "GET",
    "/dashboard/<project_id>/events/",
    media_type="text/event-stream",
    errors=(403, 404),
    streams=True,
)
def get_dashboard_events(project_id: str) -> Response:
    """Stream the project's events to an open page."""
    stream = request.environ[STREAM] = EventStream(
        enter(project_id, catches_up=False).events, after_of(request), APART_SECONDS_PER_WATCHER
    )
    return Response(stream.pieces(), mimetype="text/event-stream", headers={"Cache-Control": "no-store"})


def _with_zone(aim: dict[str, str]) -> dict[str, Any]:
    """A time from a date field has no time zone: it is sandbox time, which is UTC."""
    try:
        to = datetime.fromisoformat(aim["to"]) if "to" in aim else None
    except ValueError:
        return aim
    if to is None or to.tzinfo is not None:
        return aim
    return {**aim, "to": to.replace(tzinfo=UTC).isoformat()}
