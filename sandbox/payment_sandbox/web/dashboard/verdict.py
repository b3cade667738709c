"""The verdict on an order: the mistakes of the shop, and the state of the money."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from payment_sandbox.operations.as_of import order_as_of
from payment_sandbox.operations.history import TimelineEntry
from payment_sandbox.operations.in_words import Belief, beliefs, convert_cents
from payment_sandbox.operations.review import Finding, review, review_order
from payment_sandbox.orders.amounts import euros
from payment_sandbox.orders.authorization import Authorization
from payment_sandbox.orders.ledger import ledger_of
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.orders.webhooks import Delivery, DeliveryState
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
PERIOD_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


class FindingGroup(NamedTuple):
    """Findings of a review with the same rule and advice, and their orders."""

    first: Finding
    findings: Sequence[Finding]

    @property
    def amount(self) -> int:
        """The cents at risk in all orders of the group; an order with several findings counts once."""
        amounts: dict[object, int] = {}
        for each in self.findings:
            order = each.order_id or id(each)
            amounts[order] = max(amounts.get(order, 0), each.amount)
        return sum(amounts.values())

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


class OrderMoment(NamedTuple):
    """An order now or at an earlier moment; ``number`` counts the timeline entries up to that moment."""

    number: int
    timeline_entry: TimelineEntry
    is_earlier: bool
    status: str
    second_status: str
    look: str
    money: Sequence[Amount]
    shop: str
    """The last status known to the shop; empty if none."""
    shop_since: datetime | None
    service_since: datetime | None
    was_reached: bool
    """Whether the shop has received a webhook or a response since it created the order."""

    @property
    def differs(self) -> bool:
        """Whether the shop assumed a status other than the order's."""
        return (self.shop or OrderStatus.NEW) != self.status


class NewestReview:
    """The newest review of an epoch, shared by all pages."""

    review: "ProjectReview | None" = None


NEWEST_REVIEW: Final = Slot(NewestReview)


class ProjectReview(NamedTuple):
    """The review of a project, the number of its undelivered webhooks, and the time of the review."""

    event: int
    at_seconds: float
    took_seconds: float
    findings: Sequence[Finding]
    undelivered: int


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


def order_moment(
    project: Project,
    order: Order,
    timeline_entries: Sequence[TimelineEntry],
    number: int | None,
    beliefs: Sequence[Belief],
) -> OrderMoment:
    """Return an order after its first ``number`` timeline entries; None means the current state."""
    if number is None:
        return _moment_of(timeline_entries, False, order, project.now(), beliefs)
    timeline_entry = timeline_entries[number - 1]
    then = order_as_of(project.epoch, order, timeline_entry)
    earlier = [belief for belief in beliefs if belief.real_at <= timeline_entry.real_at]
    return _moment_of(timeline_entries[:number], True, then, timeline_entry.at, earlier)


def _moment_of(
    past: Sequence[TimelineEntry], is_earlier: bool, order: Order, now: datetime, beliefs: Sequence[Belief]
) -> OrderMoment:
    return OrderMoment(
        len(past),
        past[-1],
        is_earlier,
        order.status,
        _second_status(order),
        look_of(order),
        list(_amounts(order, now)),
        beliefs[-1].shop if beliefs else "",
        _last_change([(belief.at, belief.shop) for belief in beliefs]),
        _last_capture(order) or _last_change([(belief.at, belief.service) for belief in beliefs]),
        any(_has_reached_shop(each) and each.cause != past[0].id for each in past),
    )


def _has_reached_shop(timeline_entry: TimelineEntry) -> bool:
    """Whether the shop has answered a webhook or received a response."""
    return timeline_entry.kind in ("response", "webhook-response") and not timeline_entry.lost


def _last_change(statuses: Sequence[tuple[datetime, str]]) -> datetime | None:
    """Return the time of the change to the last status."""
    since = None
    for at, status in reversed(statuses):
        if status != statuses[-1][1]:
            break
        since = at
    return since


def _last_capture(order: Order) -> datetime | None:
    """Return the time of the last capture or void, which the second status describes."""
    held = _authorization(order)
    return held.entries[-1].at if held is not None and held.entries else None


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


def format_moment_of_day(moment: datetime, now: datetime) -> str:
    """Format the time of day of an event, with the day unless it is today."""
    year = "" if moment.year == now.year else f" {moment.year}"
    day = "" if moment.date() == now.date() else f"{moment.day} {moment:%b}{year} "
    return f"{day}{moment:%H:%M}"


def describe_period(period: timedelta) -> str:
    """Format a period in its two largest units, such as 6 d 23 h."""
    seconds = max(0, int(period.total_seconds()))
    words: list[str] = []
    for size, unit in PERIOD_UNITS:
        if seconds >= size and len(words) < 2:
            words.append(f"{seconds // size} {unit}")
            seconds %= size
    return " ".join(words) or "0 s"


def group_findings(findings: Iterable[Finding]) -> list[FindingGroup]:
    """Group the findings of a review: open mistakes first, then by amount, largest first."""
    by_kind: dict[tuple[str, str, bool], list[Finding]] = defaultdict(list)
    for finding in findings:
        by_kind[finding.rule, finding.advice, finding.is_open].append(finding)
    groups = [FindingGroup(alike[0], alike) for alike in by_kind.values()]
    return sorted(groups, key=lambda group: (not group.first.is_open, -group.amount))


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
    findings, undelivered = review(epoch), sum(map(_has_failed, epoch.store.deliveries()))
    took_seconds = project.services.real.monotonic_seconds() - now
    newest.review = ProjectReview(event, now, took_seconds, findings, undelivered)
    return newest.review


def _has_failed(delivery: Delivery) -> bool:
    return delivery.outcome != DeliveryState.DELIVERED and bool(delivery.delivery_attempts)


def orders_with_mistakes(project_review: ProjectReview | None) -> set[str | None]:
    """Return the ids of the orders with a mistake."""
    findings = project_review.findings if project_review is not None else ()
    return {finding.order_id for finding in findings if finding.is_open}


def navigation_counts(project_review: ProjectReview | None) -> dict[str, int]:
    """Return the counts shown in the navigation: groups of mistakes, and undelivered webhooks."""
    if project_review is None:
        return {}
    mistakes = [group for group in group_findings(project_review.findings) if group.first.is_open]
    return {"review": len(mistakes), "webhooks": project_review.undelivered}
