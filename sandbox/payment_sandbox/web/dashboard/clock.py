"""The clock bar: move the clock, freeze it, or let it run."""

from collections import OrderedDict
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from flask import Response, request

from payment_sandbox.forms import read
from payment_sandbox.operations.advance import stop_advance
from payment_sandbox.operations.clock import advance_clock, change_clock
from payment_sandbox.orders.refusals import Invalid, Refusal, Violation
from payment_sandbox.projects.clock import FROZEN, RUNNING
from payment_sandbox.projects.project import Project
from payment_sandbox.storage.snapshot import Before, come_back, remember
from payment_sandbox.web.browsers import go
from payment_sandbox.web.carried import application
from payment_sandbox.web.dashboard.frame import POSTED, dashboard, enter, url, way_back
from payment_sandbox.web.dashboard.notices import Notice, moved, with_notice
from payment_sandbox.web.event_stream import STREAM, EventStream, after_of
from payment_sandbox.web.routes import route
from payment_sandbox.web.shared_forms import AdvanceForm

ADVANCE: Final = AdvanceForm()
AIMS: Final = ("by", "until", "to")
APART_SECONDS_PER_WATCHER: Final = 0.005
MOVES_KEPT_MAX: Final = 100
RATES: Final = {"1": 1.0, "60": 60.0, "3600": 3600.0}


@route(dashboard, "POST", "/dashboard/<project_id>/clock/", **POSTED)
def post_clock(project_id: str) -> Response:
    """Advance the clock, freeze it, or let it run at some rate."""
    project = enter(project_id)
    aim = {name: request.form[name].strip() for name in AIMS if request.form.get(name, "").strip()}
    back = way_back() or url(project, "orders/")
    if aim:
        before = remember(project)
        done = advance_clock(project, read(ADVANCE, _with_zone(aim)))
        webhooks = sum(event["kind"] == "webhook" for event in done.events)
        _keep(project, Moved(before, project.epoch.orders_created, webhooks))
        back = with_notice(back, moved(project, done))
    elif request.form.get("rate") in RATES:
        change_clock(project, RUNNING, RATES[request.form["rate"]])
    elif request.form.get("rate") == FROZEN:
        change_clock(project, FROZEN)
    else:
        raise Invalid([Violation("", "names no time; use by, until, to or rate")])
    return go(back)


@route(dashboard, "POST", "/dashboard/<project_id>/clock/stop/", **POSTED)
def post_clock_stop(project_id: str) -> Response:
    """Stop the move of the clock that runs now; its own page tells what it did."""
    project = enter(project_id, catches_up=False)
    text = "The clock stops where it is." if stop_advance(project) else "The clock did not move any more."
    return go(with_notice(way_back() or url(project, "orders/"), Notice(project.project_id, text)))


class Moved(NamedTuple):
    """A move of the clock: the state before it, how many orders there were after it, and webhooks."""

    before: Before
    orders: int
    webhooks: int


class NothingToTakeBack(Refusal):
    """No move can be taken back, because none was made here, or because orders came after it."""

    rule = "CTL-13"


def _keep(project: Project, move: Moved) -> None:
    befores: OrderedDict[str, Moved] = application().befores
    befores.pop(project.project_id, None)
    befores[project.project_id] = move
    while len(befores) > MOVES_KEPT_MAX:
        befores.popitem(last=False)


@route(dashboard, "POST", "/dashboard/<project_id>/clock/back/", **POSTED)
def post_clock_back(project_id: str) -> Response:
    """Take the last move of the clock back."""
    project = enter(project_id)
    move: Moved | None = application().befores.pop(project.project_id, None)
    if move is None:
        raise NothingToTakeBack("no move was made here that can be taken back")
    if project.epoch.orders_created != move.orders:
        raise NothingToTakeBack("orders were made since, and would be lost: the move stays")
    come_back(project, move.before)
    told = {0: "", 1: " One webhook was sent meanwhile, and stays sent."}.get(
        move.webhooks, f" {move.webhooks} webhooks were sent meanwhile, and stay sent."
    )
    text = f"Back at {project.now():%H:%M:%S}.{told}"
    return go(with_notice(way_back() or url(project, "orders/"), Notice(project.project_id, text)))


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
    project = enter(project_id, catches_up=False)
    project.storage.watch(project)
    stream = request.environ[STREAM] = EventStream(
        project.events, after_of(request), APART_SECONDS_PER_WATCHER
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
