"""The clock bar: moving, freezing and running the clock."""

from typing import Final

from flask import Response

from payment_sandbox.operations.advance import advance_clock, change_clock, stop_advance
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.projects.clock import FROZEN, RUNNING
from payment_sandbox.ui.dashboard.frame import FORM_FACTS, enter, form_page, url
from payment_sandbox.ui.dashboard.notices import Notice, move_notice, with_notice
from payment_sandbox.web.answers.responses import stream_answer
from payment_sandbox.web.browsers import redirect
from payment_sandbox.web.call import Call
from payment_sandbox.web.control import COMMANDS
from payment_sandbox.web.event_stream import ChangeStream, last_event_number
from payment_sandbox.web.routes import stated

TARGETS: Final = ("by", "until", "to")
BATCH_SECONDS_PER_WATCHER: Final = 0.005
RATES: Final = {"1": 1.0, "60": 60.0, "3600": 3600.0}


@stated(**FORM_FACTS)
def post_clock(call: Call, project_id: str) -> Response:
    """Advance the clock, freeze it, or run it at a rate."""
    project = enter(call, project_id)
    target = {
        name: call.request.form[name].strip() for name in TARGETS if call.request.form.get(name, "").strip()
    }
    back = form_page(call) or url(project, "orders/")
    if target:
        aim, now = COMMANDS["advance"].read(target), project.now()
        if "to" in aim and aim["to"] < now:
            raise Invalid(
                [Violation("to", f"choose a time in the future; it is now {now.day} {now:%b %H:%M}.")]
            )
        back = with_notice(project, back, move_notice(project, advance_clock(project, aim)))
    elif call.request.form.get("rate") in RATES:
        change_clock(project, RUNNING, RATES[call.request.form["rate"]])
    elif call.request.form.get("rate") == FROZEN:
        change_clock(project, FROZEN)
    else:
        raise Invalid([Violation("", "must contain one of: by, until, to, rate")])
    return redirect(back)


@stated(**FORM_FACTS)
def post_clock_stop(call: Call, project_id: str) -> Response:
    """Stop the current clock move; the page that started the move reports its events."""
    project = enter(call, project_id, catches_up=False)
    text = "The clock was stopped." if stop_advance(project) else "The clock had already stopped."
    return redirect(with_notice(project, form_page(call) or url(project, "orders/"), Notice(text)))


@stated(
    group="dashboard",
    media_type="text/event-stream",
    errors=(403, 404),
    streams=True,
)
def get_dashboard_events(call: Call, project_id: str) -> Response:
    """Stream a signal to an open page after each change."""
    project = enter(call, project_id, catches_up=False)
    after = last_event_number(call.request)
    return stream_answer(call, ChangeStream(project.events, after, BATCH_SECONDS_PER_WATCHER))
