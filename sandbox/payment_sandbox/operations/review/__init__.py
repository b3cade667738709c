"""Finds mistakes of an integration in its requests and webhooks."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from payment_sandbox.kernel.patterns import printable
from payment_sandbox.operations.review.creations import (
    captured_late,
    created_twice,
    ignored,
    retried_blindly,
    warned,
)
from payment_sandbox.operations.review.evidence import HINT, KINDS, Finding, Reviewed
from payment_sandbox.operations.review.lessons import lesson_of
from payment_sandbox.operations.review.payments import (
    charged_after_decline,
    lapsed,
    lapsed_authorizations,
    refused,
)
from payment_sandbox.operations.review.setup import (
    mixed_schemes,
    unmatched,
    unmatched_rules,
    untold,
    untold_changes,
)
from payment_sandbox.operations.review.webhooks import polled, trusted_return, unanswered, unread
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.journal import RETURN

__all__ = ["HINT", "KINDS", "Finding", "review"]


def review(epoch: Epoch) -> list[Finding]:
    """Review a project's history; a correct integration gets no findings."""
    requests = list(epoch.journal.entries())
    orders = {entry.order_id for entry in requests if entry.order_id}
    known = {order_id: epoch.store.order(order_id) for order_id in orders}
    statuses: dict[str, str] = {
        order_id: order.status for order_id, order in known.items() if order is not None
    }
    reviewed = Reviewed(
        requests,
        [taken for taken in epoch.journal.actions() if taken.action == RETURN],
        epoch.store.deliveries(),
        statuses,
        untold_changes(epoch),
        unmatched_rules(epoch),
        epoch.state.scenario.name,
        lapsed_authorizations(epoch, statuses),
    )
    return [_taught(finding) for check in CHECKS for finding in check(reviewed)]


def _taught(finding: Finding) -> Finding:
    """A finding with what it costs, and where to read about it; what the shop has sent ends no line."""
    requests = tuple(map(printable, finding.requests))
    finding = finding._replace(problem=printable(finding.problem), requests=requests)
    lesson = lesson_of(finding.rule) if finding.kind != HINT else None
    return finding if lesson is None else finding._replace(risk=lesson.risk, page=lesson.page)


CHECKS: Final[Sequence[Callable[[Reviewed], Iterable[Finding]]]] = (
    unread,
    trusted_return,
    unanswered,
    created_twice,
    captured_late,
    retried_blindly,
    polled,
    ignored,
    warned,
    untold,
    mixed_schemes,
    unmatched,
    lapsed,
    charged_after_decline,
    refused,
)
