"""The review of a project for its pages, which is renewed less often if it is slow."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from payment_sandbox.operations.coverage import Matrix, coverage
from payment_sandbox.operations.review import Finding, FindingGroup, group_findings, listed_id, review
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.slots import Slot

REFRESH_PER_TIME_TAKEN: Final = 10
SLOW_SECONDS: Final = 0.2


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


def _with_existing_order(epoch: Epoch, finding: Finding) -> Finding:
    return finding if epoch.store.order(finding.order_id or "") else finding._replace(order_id=None)


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
    findings = [_with_existing_order(epoch, finding) for finding in review(epoch)]
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
