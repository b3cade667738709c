"""The mistakes of the shop, and the cases that it has not met yet."""

from typing import Final

from flask import Response

from payment_sandbox.fidelity.ledger import rule_texts
from payment_sandbox.operations.beliefs import format_moment_of_day
from payment_sandbox.operations.coverage import coverage, how_to_meet
from payment_sandbox.operations.outcomes import play_outcome, playable_outcomes
from payment_sandbox.web.browsers import redirect
from payment_sandbox.web.call import Call
from payment_sandbox.web.dashboard.comparison import create_manual_order
from payment_sandbox.web.dashboard.frame import (
    FORM_FACTS,
    LIVE_HEADER,
    PROJECT_PATH,
    VIEW_FACTS,
    dashboard,
    enter,
    show,
    url,
)
from payment_sandbox.web.dashboard.notices import Notice, with_notice
from payment_sandbox.web.dashboard.verdict import available_review
from payment_sandbox.web.routes import route

MISTAKES_PATH: Final = f"{PROJECT_PATH}/mistakes/"


@route(dashboard, "GET", MISTAKES_PATH, **VIEW_FACTS)
def get_mistakes_view(call: Call, project_id: str) -> Response:
    """Show the mistakes of the integration, and the cases that have not occurred."""
    project = enter(call, project_id)
    may_wait = LIVE_HEADER in call.request.headers or "now" in call.request.args
    known = available_review(project, may_wait=may_wait)
    covered = known.covered if known is not None else coverage(project, ())
    return show(
        call,
        "mistakes",
        project,
        "mistakes",
        groups=known.groups if known is not None else None,
        covered=covered,
        playable={row.title: playable_outcomes(project, row.title) for row in covered.methods},
        how_to_meet=how_to_meet,
        rule_texts=rule_texts(),
        played_at=lambda order_id: format_moment_of_day(project.find_order(order_id).created, project.now()),
    )


@route(dashboard, "POST", MISTAKES_PATH, **FORM_FACTS)
def post_case(call: Call, project_id: str) -> Response:
    """Play a case that has not occurred."""
    project = enter(call, project_id)
    method, _, end = call.request.form.get("case", "").partition(" ")
    order = play_outcome(project, method, end, lambda body: create_manual_order(project, body, {}))
    notice = Notice(f"Played: {method}, {end}.")
    return redirect(with_notice(project, url(project, f"orders/{order.id}/"), notice))
