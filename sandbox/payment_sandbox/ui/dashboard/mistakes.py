"""The mistakes of the shop."""

from flask import Response

from payment_sandbox.ui.dashboard.frame import (
    VIEW_FACTS,
    enter,
    show,
)
from payment_sandbox.ui.dashboard.reviewing import current_review
from payment_sandbox.web.call import Call
from payment_sandbox.web.routes import stated


@stated(**VIEW_FACTS)
def get_mistakes_view(call: Call, project_id: str) -> Response:
    """Show the mistakes of the integration."""
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
    )
