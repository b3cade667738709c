"""What the dashboard says of an order first: whether the shop did right by it, and where its money is."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from payment_sandbox.operations.as_of import order_as_of
from payment_sandbox.operations.history import Happening
from payment_sandbox.operations.in_words import Belief, beliefs, in_euros
from payment_sandbox.operations.review import Finding, review, review_order
from payment_sandbox.orders.authorization import Authorization
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refunds import refundable_cents
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.orders.webhooks import Delivery, DeliveryState
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.slots import Slot

KNOWN: Final = {
    "new": "nobody has paid yet",
    "processing": "the payment is under way",
    "completed": "the order is paid",
    "error": "the payment failed",
    "cancelled": "the order was cancelled",
    "expired": "the order has expired",
}
AUTHORIZED: Final = "authorized"
KNOWN_OF_AUTHORIZED: Final = "the payment is authorized; nothing is captured yet"
NOT_CAPTURED: Final = "authorized, not captured"
REFRESH_PER_TIME_TAKEN: Final = 10
AT_ONCE_MAX: Final = 1000
"""The longest journal that is reviewed before a page is shown; with a longer one, the page is renewed."""
LEFT: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


class FindingGroup(NamedTuple):
    """All findings of a review that say the same, with the orders that they are about."""

    first: Finding
    findings: Sequence[Finding]

    @property
    def others(self) -> list[str]:
        """What else was found of this kind, in other words than the first."""
        return list(dict.fromkeys(each.problem for each in self.findings))[1:]

    @property
    def orders(self) -> list[str]:
        """The ids of the orders, each once."""
        return list(dict.fromkeys(each.order_id for each in self.findings if each.order_id is not None))


class OrderVerdict(NamedTuple):
    """What the review says of one order; ``good`` is what went well, if nothing went wrong."""

    mistakes: Sequence[FindingGroup]
    hints: Sequence[FindingGroup]
    findings: Sequence[Finding]
    good: str
    beliefs: Sequence[Belief]
    money: "Sequence[Amount]"
    bar: "Sequence[BarPiece]"
    second_status: str
    """What the status does not say of the money; often empty."""


class Amount(NamedTuple):
    """Money of an order: what became of it, and a remark."""

    what: str
    cents: int
    remark: str = ""


class BarPiece(NamedTuple):
    """A part of the bar that shows where the money is; the whole bar is 100 wide."""

    what: str
    begin: float
    width: float


class OrderMoment(NamedTuple):
    """An order as it is, or as it was earlier; ``number`` counts what had happened until then."""

    number: int
    happening: Happening
    is_earlier: bool
    status: str
    second_status: str
    look: str
    money: Sequence[Amount]
    shop: str
    """The status that the shop had been told last; empty if none yet."""
    shop_since: datetime | None
    service_since: datetime | None
    has_heard: bool
    """Whether anything has reached the shop since it created the order."""

    @property
    def is_apart(self) -> bool:
        """Whether the shop believed another status than the order had."""
        return (self.shop or OrderStatus.NEW) != self.status


class NewestReview:
    """The newest review of an epoch, for its dashboards."""

    counted: "Counted | None" = None


REVIEWED: Final = Slot(NewestReview)


class Counted(NamedTuple):
    """A review of a whole project with its failed webhooks, when it was made, and how long that took."""

    event: int
    at_seconds: float
    took_seconds: float
    findings: Sequence[Finding]
    undelivered: int


def verdict(project: Project, order: Order) -> OrderVerdict:
    """What there is to say of an order."""
    findings = [each._replace(problem=in_euros(each.problem)) for each in review_order(project.epoch, order)]
    found = kinds(findings)
    mistakes = [kind for kind in found if kind.first.is_open]
    told = beliefs(project.epoch, order.id)
    return OrderVerdict(
        mistakes,
        [kind for kind in found if not kind.first.is_open],
        findings,
        "" if mistakes else _good(project, order, told),
        told,
        list(_money(order, project.now())),
        _bar(order),
        _second_status(order),
    )


def moment(
    project: Project,
    order: Order,
    happenings: Sequence[Happening],
    number: int | None,
    told: Sequence[Belief],
) -> OrderMoment:
    """An order after so many of its happenings; None is now."""
    if number is None:
        return _at(happenings, False, order, project.now(), told)
    happening = happenings[number - 1]
    then = order_as_of(project.epoch, order, happening)
    known = [belief for belief in told if belief.real_at <= happening.real_at]
    return _at(happenings[:number], True, then, happening.at, known)


def _at(
    past: Sequence[Happening], is_earlier: bool, order: Order, now: datetime, known: Sequence[Belief]
) -> OrderMoment:
    return OrderMoment(
        len(past),
        past[-1],
        is_earlier,
        order.status,
        _second_status(order),
        look_of(order),
        list(_money(order, now)),
        known[-1].shop if known else "",
        _since([(belief.at, belief.shop) for belief in known]),
        _since([(belief.at, belief.service) for belief in known]),
        any(_has_reached_shop(each) and each.cause != past[0].id for each in past),
    )


def _has_reached_shop(happening: Happening) -> bool:
    """Whether the shop has answered a webhook, or got a response."""
    return happening.kind in ("response", "webhook-response") and not happening.lost


def _since(statuses: Sequence[tuple[datetime, str]]) -> datetime | None:
    """Since when the last status has been what it is."""
    since = None
    for at, status in reversed(statuses):
        if status != statuses[-1][1]:
            break
        since = at
    return since


def look_of(order: Order) -> str:
    """How the status of an order looks: money that is only reserved does not look like money received."""
    return AUTHORIZED if _second_status(order) == NOT_CAPTURED else str(order.status)


def _good(project: Project, order: Order, told: Sequence[Belief]) -> str:
    """What the shop did right; empty if it has not had to do anything yet."""
    deliveries = project.epoch.store.deliveries_of(order.id)
    delivered = sum(delivery.outcome == DeliveryState.DELIVERED for delivery in deliveries)
    if not deliveries or delivered < len(deliveries) or not told or not told[-1].is_true:
        return ""
    status = told[-1].service
    known = (
        KNOWN_OF_AUTHORIZED if look_of(order) == AUTHORIZED else KNOWN.get(status, f"the order is {status}")
    )
    return f"Your shop knows that {known}."


def _authorization(order: Order) -> Authorization | None:
    attempt = order.last_transaction
    return attempt.authorization if attempt is not None else None


def _money(order: Order, now: datetime) -> Iterable[Amount]:
    held, received = _authorization(order), order.received_cents
    refunded = received - refundable_cents(order)
    if held is None:
        amounts = [Amount("received", received)]
    else:
        remaining = 0 if held.is_over else held.remaining_cents
        runs_out = f"runs out in {left(held.expires_at - now)}, {moment_of_day(held.expires_at, now)}"
        amounts = [
            Amount("authorized", held.original_cents),
            Amount("captured", received),
            Amount("voided", held.voided_cents),
            Amount("still reserved", remaining, runs_out),
        ]
    amounts.append(Amount("refunded", refunded))
    if refunded:
        amounts.append(Amount("left", received - refunded))
    return [amount for amount in amounts if amount.cents or amount.what in ("captured", "left")]


def _bar(order: Order) -> list[BarPiece]:
    """Where the money is, as parts of a bar: received and kept, refunded, and still reserved."""
    held, received = _authorization(order), order.received_cents
    reserved = 0 if held is None or held.is_over else held.remaining_cents
    refunded = received - refundable_cents(order)
    parts = {"received": received - refunded, "refunded": refunded, "reserved": reserved}
    total = max(sum(parts.values()), held.original_cents if held is not None else 0)
    pieces, begin = [], 0.0
    for what, cents in parts.items():
        width = round(100 * cents / total, 2) if total else 0.0
        pieces.append(BarPiece(what, round(begin, 2), width))
        begin += width
    return [piece for piece in pieces if piece.width]


def _second_status(order: Order) -> str:
    held = _authorization(order)
    if held is None:
        return ""
    if not held.captured_cents:
        return "authorization over" if held.is_over or not held.remaining_cents else NOT_CAPTURED
    return "captured in part" if held.remaining_cents and not held.is_over else "captured"


def moment_of_day(moment: datetime, now: datetime) -> str:
    """The time of day of something that comes or has been; with its day if that is not today."""
    year = "" if moment.year == now.year else f" {moment.year}"
    day = "" if moment.date() == now.date() else f"{moment.day} {moment:%b}{year} "
    return f"{day}{moment:%H:%M}"


def left(period: timedelta) -> str:
    """A period in its two largest units, such as 6 d 23 h."""
    seconds = max(0, int(period.total_seconds()))
    words: list[str] = []
    for size, unit in LEFT:
        if seconds >= size and len(words) < 2:
            words.append(f"{seconds // size} {unit}")
            seconds %= size
    return " ".join(words) or "0 s"


def kinds(findings: Iterable[Finding]) -> list[FindingGroup]:
    """The findings of a review, each kind once: open mistakes first, the most expensive first."""
    by_kind: dict[tuple[str, str, bool], list[Finding]] = defaultdict(list)
    for finding in findings:
        by_kind[finding.rule, finding.advice, finding.is_open].append(finding)
    grouped = [FindingGroup(found[0], found) for found in by_kind.values()]
    return sorted(
        grouped, key=lambda kind: (not kind.first.is_open, -sum(each.amount for each in kind.findings))
    )


def known_review(project: Project, *, may_wait: bool) -> Counted | None:
    """The review of the whole project; None if it takes long, was not made yet, and nobody may wait."""
    is_long = len(project.epoch.journal.unmasked()) > AT_ONCE_MAX
    if is_long and not may_wait and project.epoch.slots.of(REVIEWED).counted is None:
        return None
    return reviewed(project)


def reviewed(project: Project) -> Counted:
    """The review of the whole project, as it was a moment ago if looking took long."""
    epoch = project.epoch
    newest = epoch.slots.of(REVIEWED)
    known, now = newest.counted, project.services.real.monotonic_seconds()
    event = project.events.number
    if known is not None:
        is_recent = now - known.at_seconds < REFRESH_PER_TIME_TAKEN * known.took_seconds
        if known.event == event or is_recent:
            return known
    findings, undelivered = review(epoch), sum(map(_has_failed, epoch.store.deliveries()))
    took_seconds = project.services.real.monotonic_seconds() - now
    newest.counted = counted = Counted(event, now, took_seconds, findings, undelivered)
    return counted


def _has_failed(delivery: Delivery) -> bool:
    """Whether a webhook was tried, and has not arrived."""
    return delivery.outcome != DeliveryState.DELIVERED and bool(delivery.tries)


def with_mistakes(known: Counted | None) -> set[str | None]:
    """The ids of the orders that a mistake was found with."""
    findings = known.findings if known is not None else ()
    return {finding.order_id for finding in findings if finding.is_open}


def counts(known: Counted | None) -> dict[str, int]:
    """What the navigation counts: kinds of mistakes, and webhooks that did not arrive."""
    if known is None:
        return {}
    mistakes = [kind for kind in kinds(known.findings) if kind.first.is_open]
    return {"review": len(mistakes), "webhooks": known.undelivered}
