"""What an order's money and status are, in words, and what the shop knows of them."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import chain
from typing import Final

from payment_sandbox.judge.evidence import end_of, status_read
from payment_sandbox.kernel.times import describe_period
from payment_sandbox.orders.amounts import Cents, euros
from payment_sandbox.orders.authorization import Authorization
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.order_ledger import ledger_of
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.orders.webhooks import RETRY_AFTER, DeliveryState, Reply
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.order_logs import OrderLog, order_logs

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


def statuses_read(log: OrderLog) -> Mapping[str, str]:
    """Return the last status that the shop has read, by order."""
    entries = sorted((entry for entry in log.requests if entry.order_id), key=end_of)
    read = ((entry.order_id or "", status_read(entry)) for entry in entries)
    return {order_id: status for order_id, status in read if status is not None}


def shop_statuses(epoch: Epoch) -> Mapping[str, str]:
    """Return the last status that the shop has read, by order."""
    read = [log.derive(statuses_read) for log in order_logs(epoch).values()]
    return dict(chain.from_iterable(each.items() for each in read))


def is_behind(order: Order, shop_status: str | None) -> bool:
    """Whether the shop assumes a status other than the order's; it assumes a new order at first."""
    return (shop_status or OrderStatus.NEW) != order.status


def describe_shop(epoch: Epoch, order: Order, shop_status: str | None) -> str:
    """Describe the last status that the shop has read, with the reason for a difference."""
    if is_behind(order, shop_status):
        return f"{shop_status or 'nothing'} · {_reason(epoch, order)}"
    if shop_status is None and not epoch.store.deliveries_of(order.id):
        return "no webhook due"
    return shop_status or "nothing"


def _reason(epoch: Epoch, order: Order) -> str:
    """Explain by the newest webhook why the shop does not know the status of an order."""
    delivery = next(reversed(epoch.store.deliveries_of(order.id)), None)
    if delivery is None:
        has_url = epoch.state.settings.webhook_url_of(order.webhook_url) is not None
        return "never read the order" if has_url else "no webhook address"
    if delivery.is_lost:
        return "webhook lost (fault)"
    tries = delivery.delivery_attempts
    reply = tries[-1].reply if tries else Reply(0.0)
    outcome = reply.fault or (f"answered {reply.status}" if reply.status is not None else "no answer")
    if delivery.state is DeliveryState.DELIVERED:
        return f"{outcome}, did not read the order"
    if delivery.state is DeliveryState.FAILED:
        return f"{outcome}, failed after {len(tries)} attempts"
    if not tries:
        return "a webhook is on its way"
    next_at = format_moment_of_day(RETRY_AFTER.after(tries[-1].at), epoch.now())
    return f"{outcome}, retry {delivery.next_number} at {next_at}"


def format_moment_of_day(moment: datetime, now: datetime) -> str:
    """Format the time of day of an event, with the day unless it is today."""
    year = "" if moment.year == now.year else f" {moment.year}"
    day = "" if moment.date() == now.date() else f"{moment.day} {moment:%b}{year} "
    return f"{day}{moment:%H:%M}"


def praise(epoch: Epoch, order: Order, shop_status: str | None) -> str:
    """Confirm that the shop knows the order's status; empty if the shop had nothing to do yet."""
    outcomes = {delivery.outcome for delivery in epoch.store.deliveries_of(order.id)}
    if outcomes != {DeliveryState.DELIVERED} or shop_status != order.status:
        return ""
    phrase = STATUS_PHRASES.get(order.status, f"the order is {order.status}")
    return f"Your shop knows that {AUTHORIZED_PHRASE if look_of(order) == AUTHORIZED else phrase}."


def _authorization(order: Order) -> Authorization | None:
    attempt = order.last_transaction
    return attempt.authorization if attempt is not None else None


def look_of(order: Order) -> str:
    """Return the style of an order's status, which distinguishes reserved from received money."""
    return AUTHORIZED if second_status(order) == NOT_CAPTURED else str(order.status)


def second_status(order: Order) -> str:
    """Return the state of the authorization or capture, in addition to the status; often empty."""
    held, reserved = _authorization(order), ledger_of(order).reserved
    if held is None:
        return ""
    if held.captured_cents:
        return "captured in part" if reserved else "captured"
    return NOT_CAPTURED if reserved else "authorization ended"


def describe_service(order: Order, now: datetime) -> str:
    """Describe the money of an order if it says more than its status."""
    held, ledger = _authorization(order), ledger_of(order)
    if ledger.refunded:
        return f"{euros(ledger.refunded)} refunded"
    if held is None or not ledger.reserved:
        return str(order.status)
    if held.captured_cents:
        return f"{euros(held.captured_cents)} captured"
    return f"authorized, {describe_period(held.expires_at - now)} left"


def amounts(order: Order, now: datetime) -> Iterator[tuple[str, Cents, str]]:
    """Yield the amounts of an order, each with its state and a remark."""
    held, ledger = _authorization(order), ledger_of(order)
    rows = [("received", ledger.received, "")]
    if held is not None:
        expiry_time = format_moment_of_day(held.expires_at, now)
        rows = [
            (AUTHORIZED, ledger.authorized, ""),
            ("captured", ledger.received, ""),
            ("voided", ledger.voided, ""),
            (
                "still reserved",
                ledger.reserved,
                f"expires in {describe_period(held.expires_at - now)}, {expiry_time}",
            ),
        ]
    rows.append(("refunded", ledger.refunded, ""))
    if ledger.refunded:
        rows.append(("left", ledger.received - ledger.refunded, ""))
    return (row for row in rows if row[1] or row[0] in ("captured", "left"))


def bar_segments(order: Order) -> Iterator[tuple[str, float, float]]:
    """Yield the segments of the money bar, which is 100 wide: state, begin and width."""
    ledger = ledger_of(order)
    parts = {
        "received": ledger.received - ledger.refunded,
        "refunded": ledger.refunded,
        "reserved": ledger.reserved,
    }
    total, begin = max(sum(parts.values()), ledger.authorized), 0.0
    for state, cents in parts.items():
        width = round(100 * cents / total, 2) if total else 0.0
        if width:
            yield state, round(begin, 2), width
        begin += width
