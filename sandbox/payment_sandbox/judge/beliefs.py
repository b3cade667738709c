"""What the service knows about each order, beside what the shop believes."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import chain
from typing import Final, NamedTuple

from payment_sandbox.judge.evidence import end_of, parse_object
from payment_sandbox.kernel.times import describe_period
from payment_sandbox.orders.amounts import euros
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.order_ledger import ledger_of
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.orders.webhooks import RETRY_AFTER, Delivery, DeliveryState, Reply
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.journal import LoggedRequest, ReachedStatus, number_of
from payment_sandbox.projects.order_logs import OrderLog, order_logs

NOT_CHANGED: Final = 304


class Belief(NamedTuple):
    """The last status of an order that the shop has read, and the actual status.

    The first belief comes from the response to the create call.
    """

    at: datetime
    real_at: datetime
    shop: str
    service: str

    @property
    def is_true(self) -> bool:
        """Whether the shop knows the actual status."""
        return self.shop == self.service


class Standing(NamedTuple):
    """The state of an order in the service, and the last one that the shop has read."""

    service: str  # in words
    shop_status: str | None
    shop: str  # in words, with the reason for a difference
    is_behind: bool


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


def standing(epoch: Epoch, order: Order, read: Mapping[str, str] | None = None) -> Standing:
    """Compare the state of an order in the service with what the shop has read, by order."""
    shop_status = (shop_statuses(epoch) if read is None else read).get(order.id)
    behind = is_behind(order, shop_status)
    shop = shop_status or "nothing"
    if behind:
        shop = f"{shop} · {_reason(epoch, order)}"
    elif shop_status is None and not epoch.store.deliveries_of(order.id):
        shop = "no webhook due"
    return Standing(_describe_service(order, epoch.now()), shop_status, shop, behind)


def _describe_service(order: Order, now: datetime) -> str:
    """Describe the money of an order if it says more than its status."""
    attempt, ledger = order.last_transaction, ledger_of(order)
    held = attempt.authorization if attempt is not None else None
    if ledger.refunded:
        return f"{euros(ledger.refunded)} refunded"
    if held is None or held.is_over or not held.remaining_cents:
        return str(order.status)
    if held.captured_cents:
        return f"{euros(held.captured_cents)} captured"
    return f"authorized, {describe_period(held.expires_at - now)} left"


def _reason(epoch: Epoch, order: Order) -> str:
    """Explain by the newest webhook why the shop does not know the status of an order."""
    delivery = next(reversed(epoch.store.deliveries_of(order.id)), None)
    if delivery is None:
        has_url = epoch.state.settings.webhook_url_of(order.webhook_url) is not None
        return "never read the order" if has_url else "no webhook address"
    if delivery.is_lost:
        return "webhook lost (fault)"
    outcome = _last_outcome(delivery)
    if delivery.state is DeliveryState.DELIVERED:
        return f"{outcome}, did not read the order"
    if delivery.state is DeliveryState.FAILED:
        return f"{outcome}, failed after {len(delivery.delivery_attempts)} attempts"
    if not delivery.delivery_attempts:
        return "a webhook is on its way"
    next_at = RETRY_AFTER.after(delivery.delivery_attempts[-1].at)
    return f"{outcome}, retry {delivery.next_number} at {format_moment_of_day(next_at, epoch.now())}"


def _last_outcome(delivery: Delivery) -> str:
    reply = delivery.delivery_attempts[-1].reply if delivery.delivery_attempts else Reply(0.0)
    return reply.fault or (f"answered {reply.status}" if reply.status is not None else "no answer")


def status_in(entry: LoggedRequest) -> str | None:
    """Return the status of an order, or of its newest attempt, in a response."""
    status = parse_object(entry.response).get("status")
    return status if isinstance(status, str) else None


class _Change(NamedTuple):
    """A status read by the shop or reached by the order."""

    real_at: datetime
    number: int  # the number of the record; records of one edit have the same time
    at: datetime
    is_read: bool
    status: str


def beliefs(epoch: Epoch, order_id: str) -> list[Belief]:
    """Return the changes to an order's status and to the shop's belief, oldest first."""
    rows: list[Belief] = []
    reached, order = list(_status_changes(epoch, order_id)), epoch.store.order(order_id)
    shop: str | None = None
    service = (
        str(order.status) if order is not None and not reached else None
    )  # the journal has dropped all statuses
    for change in sorted([*_changes_read_by_shop(epoch, order_id), *reached]):
        shop, service = (change.status, service) if change.is_read else (shop, change.status)
        if shop is not None and service is not None and (not rows or rows[-1][2:] != (shop, service)):
            rows.append(Belief(change.at, change.real_at, shop, service))
    return rows


def _status_changes(epoch: Epoch, order_id: str) -> Iterator[_Change]:
    for reached in epoch.journal.of(ReachedStatus, (order_id,)):
        if reached.payment_method is None:
            yield _Change(reached.real_at, number_of(reached), reached.at, False, reached.status)


def _changes_read_by_shop(epoch: Epoch, order_id: str) -> Iterator[_Change]:
    for entry in _calls(epoch, order_id):
        status = status_read(entry)
        if status is not None:
            yield _Change(end_of(entry), number_of(entry), entry.at, True, status)


def status_read(entry: LoggedRequest) -> str | None:
    """Return the order's status in the response to a call on the order itself, if the shop received it."""
    if entry.fault is not None and entry.fault.changes_response:
        return None
    is_order = entry.path.rstrip("/").endswith(("/orders", entry.order_id or "/"))
    is_answered = entry.status is not None and entry.status < NOT_CHANGED
    return status_in(entry) if is_order and is_answered else None


def _calls(epoch: Epoch, order_id: str) -> list[LoggedRequest]:
    return [entry for entry in epoch.journal.of(LoggedRequest, (order_id,)) if entry.is_evidence]


def format_moment_of_day(moment: datetime, now: datetime) -> str:
    """Format the time of day of an event, with the day unless it is today."""
    year = "" if moment.year == now.year else f" {moment.year}"
    day = "" if moment.date() == now.date() else f"{moment.day} {moment:%b}{year} "
    return f"{day}{moment:%H:%M}"
