"""The review of a project for its pages, which is renewed less often if it is slow."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

from payment_sandbox.operations.coverage import Matrix, coverage
from payment_sandbox.operations.review import HINT, Finding, FindingGroup, group_findings, listed_id, review
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.slots import Slot

REFRESH_PER_TIME_TAKEN: Final = 10
SLOW_SECONDS: Final = 0.2
NO_ADDRESS: Final = "HOOK-03"


class NewestReview:
    """The newest review of an epoch, shared by all pages."""

    review: "CurrentReview | None" = None


NEWEST_REVIEW: Final = Slot(NewestReview)


class CurrentReview(NamedTuple):
    """The review of a project, and the time of the review."""

    revision: int
    at_seconds: float
    took_seconds: float
    findings: Sequence[Finding]
    groups: Sequence[FindingGroup]
    problems: Mapping[str, str]
    """The first mistake in each order with one, in a sentence."""
    covered: Matrix

    @property
    def mistakes(self) -> list[FindingGroup]:
        """The groups of mistakes that were not corrected."""
        return [group for group in self.groups if group.first.is_open]


def _shown_finding(epoch: Epoch, finding: Finding) -> Finding:
    """Drop an order that no longer exists; an address that is missing at the first payment is a hint."""
    if finding.rule == NO_ADDRESS and _has_one_payment(epoch):
        finding = finding._replace(kind=HINT, risk="")
    return finding if epoch.store.order(finding.order_id or "") else finding._replace(order_id=None)


def _has_one_payment(epoch: Epoch) -> bool:
    paid = (each for each in epoch.store.orders_newest_first() if each.status == OrderStatus.COMPLETED)
    return len(list(islice(paid, 2))) <= 1


def current_review(project: Project) -> CurrentReview:
    """Return the review of the project; a slow review is renewed less often."""
    epoch = project.epoch
    newest = epoch.slots.of(NEWEST_REVIEW)
    known, now = newest.review, project.services.real.monotonic_seconds()
    revision = project.events.revision
    if known is not None:
        seconds = REFRESH_PER_TIME_TAKEN * known.took_seconds if known.took_seconds > SLOW_SECONDS else 0.0
        is_recent = now - known.at_seconds < seconds
        if known.revision == revision or is_recent:
            return known
    findings = [_shown_finding(epoch, finding) for finding in review(epoch)]
    problems = {
        listed_id(epoch, each.order_id): each.problem
        for each in reversed(findings)
        if each.is_open and each.order_id is not None
    }
    groups = group_findings(findings, partial(listed_id, epoch))
    covered = coverage(project, findings)
    took_seconds = project.services.real.monotonic_seconds() - now
    newest.review = CurrentReview(revision, now, took_seconds, findings, groups, problems, covered)
    return newest.review
