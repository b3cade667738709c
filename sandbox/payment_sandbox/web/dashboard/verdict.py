"""The verdict on an order: the mistakes of the shop, and the state of the money."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from payment_sandbox.operations.beliefs import Belief, beliefs, describe_period, format_moment_of_day
from payment_sandbox.operations.coverage import Matrix, coverage
from payment_sandbox.operations.in_words import convert_cents
from payment_sandbox.operations.review import Finding, review, review_order
from payment_sandbox.orders.amounts import euros
from payment_sandbox.orders.authorization import Authorization
from payment_sandbox.orders.ledger import ledger_of
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.webhooks import DeliveryState
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.slots import Slot

STATUS_PHRASES: Final = {
    "new": "the order is not paid yet",
    "processing": "the payment is in progress",
    "completed": "the order is paid",
    "error": "the payment failed",
    "cancelled": "the order was cancelled",
    "expired": "the order has expired",
}
AUTHORIZED: Final = "authorized"
AUTHORIZED_PHRASE: Final = "the payment is authorized; nothing is captured yet"
NOT_CAPTURED: Final = "authorized, not captured"
REFRESH_PER_TIME_TAKEN: Final = 10
IMMEDIATE_REVIEW_MAX: Final = 1000
"""The longest journal to review before rendering a page; the review of a longer one appears on refresh."""


class FindingGroup(NamedTuple):
    """Findings of a review with the same rule and advice, and their orders."""

    name: str  # the rule, with a number if it has several groups
    first: Finding
    findings: Sequence[Finding]

    @property
    def amount(self) -> int:
        """The cents at risk in all orders of the group."""
        return cents_at_risk(self.findings)

    @property
    def last_seen(self) -> datetime | None:
        """The sandbox time of the newest request or webhook with the mistake; None if no time is known."""
        times = [line.partition("  ")[0] for each in self.findings for line in each.requests]
        return datetime.fromisoformat(max(times)) if times else None

    @property
    def risk(self) -> str:
        """The cost of the mistake, with the amount of all orders; empty for hints."""
        sentence = self.first.risk.removeprefix(f"{euros(self.first.amount)}: ")
        return f"{euros(self.amount)}: {sentence}" if sentence and self.amount else sentence

    @property
    def others(self) -> list[str]:
        """The problems of the group, except the first one."""
        return list(dict.fromkeys(each.problem for each in self.findings))[1:]

    @property
    def orders(self) -> list[str]:
        """The distinct ids of the orders."""
        return list(dict.fromkeys(each.order_id for each in self.findings if each.order_id is not None))


class OrderVerdict(NamedTuple):
    """The review of one order; if it finds no mistake, ``praise`` confirms that the shop knows its status."""

    mistakes: Sequence[FindingGroup]
    hints: Sequence[FindingGroup]
    findings: Sequence[Finding]
    praise: str
    beliefs: Sequence[Belief]
    money: "Sequence[Amount]"
    bar: "Sequence[BarSegment]"
    second_status: str
    """The state of the authorization or capture, in addition to the status; often empty."""


class Amount(NamedTuple):
    """An amount of an order: its state, and a remark."""

    state: str
    cents: int
    remark: str = ""


class BarSegment(NamedTuple):
    """A segment of the money bar, which is 100 wide."""

    state: str
    begin: float
    width: float


class NewestReview:
    """The newest review of an epoch, shared by all pages."""

    review: "ProjectReview | None" = None


NEWEST_REVIEW: Final = Slot(NewestReview)


class ProjectReview(NamedTuple):
    """The review of a project, and the time of the review."""

    event: int
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


def verdict(project: Project, order: Order) -> OrderVerdict:
    """Return the verdict on an order."""
    findings = [
        each._replace(problem=convert_cents(each.problem)) for each in review_order(project.epoch, order)
    ]
    groups = group_findings(findings)
    mistakes = [group for group in groups if group.first.is_open]
    known = beliefs(project.epoch, order.id)
    return OrderVerdict(
        mistakes,
        [group for group in groups if not group.first.is_open],
        findings,
        "" if mistakes else _praise(project, order, known),
        known,
        list(_amounts(order, project.now())),
        _bar_segments(order),
        _second_status(order),
    )


def look_of(order: Order) -> str:
    """Return the style of an order's status, which distinguishes reserved from received money."""
    return AUTHORIZED if _second_status(order) == NOT_CAPTURED else str(order.status)


def _praise(project: Project, order: Order, beliefs: Sequence[Belief]) -> str:
    """Confirm that the shop knows the order's status; empty if the shop had nothing to do yet."""
    deliveries = project.epoch.store.deliveries_of(order.id)
    delivered = sum(delivery.outcome == DeliveryState.DELIVERED for delivery in deliveries)
    if not deliveries or delivered < len(deliveries) or not beliefs or not beliefs[-1].is_true:
        return ""
    status = beliefs[-1].service
    known = (
        AUTHORIZED_PHRASE
        if look_of(order) == AUTHORIZED
        else STATUS_PHRASES.get(status, f"the order is {status}")
    )
    return f"Your shop knows that {known}."


def _authorization(order: Order) -> Authorization | None:
    attempt = order.last_transaction
    return attempt.authorization if attempt is not None else None


def _amounts(order: Order, now: datetime) -> Iterable[Amount]:
    held, ledger = _authorization(order), ledger_of(order)
    received, refunded = ledger.received, ledger.refunded
    if held is None:
        amounts = [Amount("received", received)]
    else:
        expiry_time = format_moment_of_day(held.expires_at, now)
        expiry = f"expires in {describe_period(held.expires_at - now)}, {expiry_time}"
        amounts = [
            Amount("authorized", ledger.authorized),
            Amount("captured", received),
            Amount("voided", ledger.voided),
            Amount("still reserved", ledger.reserved, expiry),
        ]
    amounts.append(Amount("refunded", refunded))
    if refunded:
        amounts.append(Amount("left", received - refunded))
    return [amount for amount in amounts if amount.cents or amount.state in ("captured", "left")]


def _bar_segments(order: Order) -> list[BarSegment]:
    """Return the segments of the money bar: received and not refunded, refunded, and still reserved."""
    ledger = ledger_of(order)
    parts = {
        "received": ledger.received - ledger.refunded,
        "refunded": ledger.refunded,
        "reserved": ledger.reserved,
    }
    total = max(sum(parts.values()), ledger.authorized)
    segments, begin = [], 0.0
    for state, cents in parts.items():
        width = round(100 * cents / total, 2) if total else 0.0
        segments.append(BarSegment(state, round(begin, 2), width))
        begin += width
    return [piece for piece in segments if piece.width]


def _second_status(order: Order) -> str:
    held = _authorization(order)
    if held is None:
        return ""
    if not held.captured_cents:
        return "authorization ended" if held.is_over or not held.remaining_cents else NOT_CAPTURED
    return "captured in part" if held.remaining_cents and not held.is_over else "captured"


def cents_at_risk(findings: Iterable[Finding]) -> int:
    """Sum the cents at risk; an order with several findings counts once."""
    amounts: dict[object, int] = {}
    for each in findings:
        order = each.order_id or id(each)
        amounts[order] = max(amounts.get(order, 0), each.amount)
    return sum(amounts.values())


def group_findings(findings: Iterable[Finding]) -> list[FindingGroup]:
    """Group the findings of a review: open mistakes first, then by amount, largest first."""
    by_kind: dict[tuple[str, str, bool], list[Finding]] = defaultdict(list)
    for finding in findings:
        by_kind[finding.rule, finding.advice, finding.is_open].append(finding)
    numbers = Counter[str]()
    groups = []
    for (rule, *_), alike in sorted(by_kind.items()):
        numbers[rule] += 1
        name = rule if numbers[rule] == 1 else f"{rule}.{numbers[rule]}"
        groups.append(FindingGroup(name, alike[0], alike))
    return sorted(groups, key=lambda group: (not group.first.is_open, -group.amount))


def _with_existing_order(epoch: Epoch, finding: Finding) -> Finding:
    return finding if epoch.store.order(finding.order_id or "") else finding._replace(order_id=None)


def listed_id(order: Order) -> str:
    """Return the id under which a list shows an order; a refund belongs to its order."""
    return order.refund_of_order_id or order.id


def available_review(project: Project, *, may_wait: bool) -> ProjectReview | None:
    """Return the review of the project; None if the first review is slow and the caller cannot wait."""
    is_long = len(project.epoch.journal.unmasked_entries()) > IMMEDIATE_REVIEW_MAX
    if is_long and not may_wait and project.epoch.slots.of(NEWEST_REVIEW).review is None:
        return None
    return current_review(project)


def current_review(project: Project) -> ProjectReview:
    """Return the review of the project; a slow review is renewed less often."""
    epoch = project.epoch
    newest = epoch.slots.of(NEWEST_REVIEW)
    known, now = newest.review, project.services.real.monotonic_seconds()
    event = project.events.number
    if known is not None:
        is_recent = now - known.at_seconds < REFRESH_PER_TIME_TAKEN * known.took_seconds
        if known.event == event or is_recent:
            return known
    findings = [_with_existing_order(epoch, finding) for finding in review(epoch)]
    problems = {
        listed_id(epoch.find_order(each.order_id)): each.problem
        for each in reversed(findings)
        if each.is_open and each.order_id is not None
    }
    groups = group_findings(findings)
    covered = coverage(project, findings)
    took_seconds = project.services.real.monotonic_seconds() - now
    newest.review = ProjectReview(event, now, took_seconds, findings, groups, problems, covered)
    return newest.review
