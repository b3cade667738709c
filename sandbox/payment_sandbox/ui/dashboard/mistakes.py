"""The mistakes of the shop, and the cases that it has not met yet."""

from werkzeug.wrappers import Response

from payment_sandbox.fidelity.ledger import rule_texts
from payment_sandbox.judge.beliefs import format_moment_of_day
from payment_sandbox.judge.coverage import coverage, how_to_meet
from payment_sandbox.ui.dashboard.frame import (
    PROJECT_PATH,
    VIEW_FACTS,
    dashboard,
    enter,
    show,
)
from payment_sandbox.ui.dashboard.reviewing import current_review
from payment_sandbox.web.call import Call
from payment_sandbox.web.routes import route


@route(dashboard, "GET", f"{PROJECT_PATH}/mistakes/", **VIEW_FACTS)
def get_mistakes_view(call: Call, project_id: str) -> Response:
    """Show the mistakes of the integration, and the cases that have not occurred."""
    project = enter(call, project_id)
    known = current_review(project)
    return show(
        call,
        "mistakes",
        project,
        "mistakes",
        groups=known.groups,
        evidence_of=lambda finding: list(
            zip(finding.requests, finding.preceded_by + finding.shown_by, strict=False)
        ),
        covered=coverage(project, known.findings),
        how_to_meet=how_to_meet,
        rule_texts=rule_texts(),
        played_at=lambda order_id: format_moment_of_day(project.find_order(order_id).created, project.now()),
    )
