"""Verdicts: the mistakes of the shop and the state of the money of an order."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple

from payment_sandbox.judge import (
    Finding,
    FindingGroup,
    group_findings,
    listed_id,
    review_order,
)
from payment_sandbox.judge.beliefs import Belief, beliefs, format_moment_of_day
from payment_sandbox.kernel.times import describe_period
from payment_sandbox.orders.authorization import Authorization
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.order_ledger import ledger_of
from payment_sandbox.orders.webhooks import DeliveryState
from payment_sandbox.projects.project import Project

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


def verdict(project: Project, order: Order) -> OrderVerdict:
    """Return the verdict on an order."""
    findings = review_order(project.epoch, order)
    groups = group_findings(findings, partial(listed_id, project.epoch))
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
