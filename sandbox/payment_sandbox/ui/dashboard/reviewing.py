"""The review of a project for its pages."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

from payment_sandbox.judge import HINT, Finding, FindingGroup, group_findings, listed_id, review
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.order_logs import order_logs
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.slots import Slot

NO_ADDRESS: Final = "HOOK-03"


class CurrentReview(NamedTuple):
    """The findings of a project in groups."""

    groups: Sequence[FindingGroup]
    problems: Mapping[str, str]
    """The first mistake in each order with one, in a sentence."""

    @property
    def mistakes(self) -> list[FindingGroup]:
        """The groups of mistakes that were not corrected."""
        return [group for group in self.groups if group.first.is_open]


def _shown_finding(epoch: Epoch, finding: Finding) -> Finding:
    """Drop an order that no longer exists; an address that is missing at the first payment is a hint."""
    if finding.rule == NO_ADDRESS and _has_one_payment(epoch):
        finding = finding._replace(kind=HINT, risk="")
    return finding if epoch.store.order(finding.order_id or "") else finding._replace(order_id=None)


class NewestReview:
    """The newest review of an epoch, and what it depends on besides the time."""

    value: tuple[object, object, datetime, CurrentReview] | None = None


NEWEST_REVIEW: Final = Slot(NewestReview)


def _has_one_payment(epoch: Epoch) -> bool:
    paid = (each for each in epoch.store.orders_newest_first() if each.status == OrderStatus.COMPLETED)
    return len(list(islice(paid, 2))) <= 1


def current_review(project: Project) -> CurrentReview:
    """Return the review of the project, which one page may ask for several times."""
    epoch = project.epoch
    newest, logs, state, now = epoch.slots.of(NEWEST_REVIEW), order_logs(epoch), epoch.state, epoch.now()
    known = newest.value
    if known is None or known[0] is not logs or known[1] is not state or known[2] != now:
        findings = [_shown_finding(epoch, finding) for finding in review(epoch)]
        problems = {
            listed_id(epoch, each.order_id): each.problem
            for each in reversed(findings)
            if each.is_open and each.order_id is not None
        }
        groups = group_findings(findings, partial(listed_id, epoch))
        newest.value = known = logs, state, now, CurrentReview(groups, problems)
    return known[3]
