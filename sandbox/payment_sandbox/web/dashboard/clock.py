"""The clock bar: move the clock, freeze it, or let it run."""

from datetime import UTC, datetime
from typing import Any, Final

from flask import Response

from payment_sandbox.forms import read
from payment_sandbox.operations.advance import stop_advance
from payment_sandbox.operations.clock import advance_clock, change_clock
from payment_sandbox.orders.refusals import Invalid, Refusal, Violation
from payment_sandbox.projects.clock import FROZEN, RUNNING
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.slots import Slot
from payment_sandbox.storage.snapshot import Checkpoint, NotUndone, take_checkpoint, undo_move
from payment_sandbox.web.browsers import redirect
from payment_sandbox.web.call import Call
from payment_sandbox.web.dashboard.frame import POSTED, dashboard, enter, url, way_back
from payment_sandbox.web.dashboard.notices import Notice, moved, with_notice
from payment_sandbox.web.event_stream import ChangeStream, after_of
from payment_sandbox.web.routes import route
from payment_sandbox.web.shared_forms import AdvanceForm

ADVANCE: Final = AdvanceForm()
TARGETS: Final = ("by", "until", "to")
BATCH_SECONDS_PER_WATCHER: Final = 0.005
RATES: Final = {"1": 1.0, "60": 60.0, "3600": 3600.0}


@route(dashboard, "POST", "/dashboard/<project_id>/clock/", **POSTED)
def post_clock(call: Call, project_id: str) -> Response:
    """Advance the clock, freeze it, or let it run at some rate."""
    project = enter(call, project_id)
    aim = {
        name: call.request.form[name].strip() for name in TARGETS if call.request.form.get(name, "").strip()
    }
    back = way_back(call) or url(project, "orders/")
    if aim:
        epoch = project.epoch
        before = take_checkpoint(project, epoch)
        given = _with_zone(aim)
        _refuse_the_past(project, given.get("to"))
        done = advance_clock(project, read(ADVANCE, given))
        epoch.slots.of(LAST_MOVE).before = before
        back = with_notice(project, back, moved(project, done, aim))
    elif call.request.form.get("rate") in RATES:
        change_clock(project, RUNNING, RATES[call.request.form["rate"]])
    elif call.request.form.get("rate") == FROZEN:
        change_clock(project, FROZEN)
    else:
        raise Invalid([Violation("", "names no time; use by, until, to or rate")])
    return redirect(back)


@route(dashboard, "POST", "/dashboard/<project_id>/clock/stop/", **POSTED)
def post_clock_stop(call: Call, project_id: str) -> Response:
    """Stop the move of the clock that runs now; its own page tells what it did."""
    project = enter(call, project_id, catches_up=False)
    text = "The clock was stopped." if stop_advance(project) else "The clock had already stopped."
    return redirect(with_notice(project, way_back(call) or url(project, "orders/"), Notice(text)))


class NothingToUndo(Refusal):
    """No move can be taken back, because none was made here."""

    rule = "CTL-13"


class LastMove:
    """The last move of an epoch's clock, if it can be taken back."""

    before: Checkpoint | None = None


LAST_MOVE: Final = Slot(LastMove)


@route(dashboard, "POST", "/dashboard/<project_id>/clock/back/", **POSTED)
def post_clock_back(call: Call, project_id: str) -> Response:
    """Take the last move of the clock back."""
    project = enter(call, project_id)
    epoch = project.epoch
    before = epoch.slots.of(LAST_MOVE).before
    if before is None:
        raise NothingToUndo("there is no move to undo since the start or the last reset")
    undone = undo_move(project, epoch, before)
    text = f"Undone: it is {project.now():%H:%M:%S} again.{_not_undone(undone)}"
    return redirect(with_notice(project, way_back(call) or url(project, "orders/"), Notice(text)))


def _not_undone(undone: NotUndone) -> str:
    """What came meanwhile and cannot be undone, for people."""
    webhooks, requests = undone
    sent = {0: "", 1: " One webhook had been sent, which cannot be undone."}.get(
        webhooks, f" {webhooks} webhooks had been sent, which cannot be undone."
    )
    read = {0: "", 1: " One request since then was removed from the journal."}.get(
        requests, f" {requests} requests since then were removed from the journal."
    )
    return f"{sent}{read}"


@route(
    dashboard,
    "GET",
    "/dashboard/<project_id>/events/",
    media_type="text/event-stream",
    errors=(403, 404),
    streams=True,
)
def get_dashboard_events(call: Call, project_id: str) -> Response:
    """Tell an open page whenever something has changed."""
    project = enter(call, project_id, catches_up=False)
    project.storage.watch(project)
    stream = call.stream = ChangeStream(project.events, after_of(call.request), BATCH_SECONDS_PER_WATCHER)
    return Response(stream.pieces(), mimetype="text/event-stream", headers={"Cache-Control": "no-store"})


def _refuse_the_past(project: Project, to: str | None) -> None:
    """Say so in a person's words.

    Raises:
        Invalid: the time is before now.
    """
    now = project.now()
    try:
        is_past = to is not None and datetime.fromisoformat(to) < now
    except (TypeError, ValueError):
        return
    if is_past:
        raise Invalid([Violation("to", f"time only moves forward; it is {now.day} {now:%b %H:%M}.")])


def _with_zone(aim: dict[str, str]) -> dict[str, Any]:
    """A time from a date field has no time zone: it is sandbox time, which is UTC."""
    try:
        to = datetime.fromisoformat(aim["to"]) if "to" in aim else None
    except ValueError:
        return aim
    if to is None or to.tzinfo is not None:
        return aim
    return {**aim, "to": to.replace(tzinfo=UTC).isoformat()}
