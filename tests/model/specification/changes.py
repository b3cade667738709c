"""Changes to orders, their webhooks, and the events that become due."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from tests.model.specification.money import authorize
from tests.model.specification.records import (
    DELIVERY_ATTEMPTS_MAX,
    SERIES_PERIOD,
    Attempt,
    Authorization,
    Order,
    Refund,
    Shop,
    StoredCard,
    Webhook,
    add_period,
)

Item = TypeVar("Item")
DueEvent = tuple[datetime, Callable[[Shop], Shop]]


def put(items: tuple[Item, ...], index: int, item: Item) -> tuple[Item, ...]:
    """Replace one item."""
    return (*items[:index], item, *items[index + 1 :])


def add_order(shop: Shop, order: Order) -> Shop:
    """Add an order; unless its status is ``new``, this sends a webhook (SET-55)."""
    webhooks = () if order.status == "new" else (Webhook(shop.now),)
    return replace(shop, orders=(*shop.orders, replace(order, webhooks=webhooks)))


def change(shop: Shop, number: int, order: Order | None = None, **fields: Any) -> Shop:
    """Change fields of an order; a webhook is sent whenever its status changes (HOOK-02, SEPA-02, HOOK-13)."""
    before = shop.orders[number]
    order = replace(order or before, **fields)
    if order.status != before.status:
        order = replace(order, webhooks=(*order.webhooks, Webhook(shop.now)))
    return replace(shop, orders=put(shop.orders, number, order))


def with_attempt(order: Order, index: int, **fields: Any) -> Order:
    """Change fields of one attempt."""
    return replace(order, attempts=put(order.attempts, index, replace(order.attempts[index], **fields)))


def end_attempt(shop: Shop, number: int, index: int, status: str) -> Shop:
    """End an unpaid attempt.

    Server to server, the order has the status of its attempt (A11, A12). On the hosted page the customer
    can choose again, so the order stays ``processing`` until its page expires (A11, SET-18).
    """
    order = with_attempt(shop.orders[number], index, status=status, due=None)
    return change(shop, number, order, status=order.status if order.is_hosted else status)


def visit(shop: Shop, number: int) -> Shop:
    """Visit the page: order and attempt change from ``new`` to ``processing`` (STA-04 to STA-07, SET-36)."""
    order = replace(shop.orders[number], has_acted=True)
    if order.status == "new":
        order = replace(order, status="processing")
        for index, attempt in enumerate(order.attempts):
            if attempt.status == "new":
                order = with_attempt(order, index, status="processing")
    return change(shop, number, order)


def supersede(attempt: Attempt) -> Attempt:
    """Cancel an attempt and void its authorization, because another attempt pays for the order (A45)."""
    held = attempt.authorization
    if held is None or not held.remaining or held.is_expired:
        return replace(attempt, status="cancelled", due=None) if attempt.is_open else attempt
    voided, by_amount = held.voided + held.remaining, held.voided_by_amount + held.remaining
    status = "completed" if held.captured else "cancelled"
    held = replace(held, voided=voided, voided_by_amount=by_amount)
    return replace(attempt, authorization=held, status=status)


def pay(shop: Shop, number: int, index: int) -> Shop:
    """Complete an attempt's payment, as a sale or an authorization (SET-38, SET-39, A13, A45).

    A first payment stores the card (STA-08, STA-09, LIM-08).
    """
    order, attempt = shop.orders[number], shop.orders[number].attempts[index]
    status = "completed"
    if attempt.capture_mode:
        attempt = authorize(attempt, order, shop.now)
        status = "accepted" if attempt.facts.is_invoice else shop.authorized_status
    else:
        attempt = replace(attempt, received=attempt.received or attempt.amount)
    attempts = put(tuple(map(supersede, order.attempts)), index, replace(attempt, status=status, due=None))
    if attempt.flow.startswith("first "):
        card = StoredCard(number, attempt.flow[6:], attempt.amount, add_period(shop.now, SERIES_PERIOD))
        shop = replace(shop, cards=(*shop.cards, card))
    if order.status == "cancelled":  # stays cancelled, unlike an expired order (A29)
        status = "cancelled"
    return change(shop, number, attempts=attempts, status=status, has_acted=True)


def credit(shop: Shop, number: int, index: int, cents: int) -> Shop:
    """Credit a transfer, whatever its status and that of its order; its whole amount completes it (A29, A45, SET-63).

    A credit that completes a transfer, or reaches a completed one, sends a webhook even if the order keeps its status
    (A79).
    """
    before = shop.orders[number]
    order = with_attempt(before, index, received=before.attempts[index].received + cents)
    shop = change(shop, number, order, has_acted=True)
    attempt = order.attempts[index]
    if attempt.received < attempt.amount:
        return shop
    shop = shop if attempt.status == "completed" else pay(shop, number, index)
    webhooks = shop.orders[number].webhooks
    if len(webhooks) == len(before.webhooks):
        return change(shop, number, webhooks=(*webhooks, Webhook(shop.now)))
    return shop


def receive_credit(shop: Shop, number: int, index: int) -> Shop:
    """Receive a planned credit, by default of the missing amount, if any (SET-63, A45)."""
    order, attempt = shop.orders[number], shop.orders[number].attempts[index]
    cents = max(attempt.amount - attempt.received, 0) if attempt.credit is None else attempt.credit
    shop = change(shop, number, with_attempt(order, index, arrives=None, credit=None))
    return credit(shop, number, index, cents) if cents else shop


def set_authorization(shop: Shop, number: int, index: int, authorization: Authorization) -> Shop:
    """Change an authorization, and end the order if nothing remains (SET-39, SET-40, SET-43)."""
    order = with_attempt(shop.orders[number], index, authorization=authorization)
    if authorization.remaining == 0 or authorization.is_expired:
        unused = "expired" if authorization.is_expired else "cancelled"
        status = "completed" if authorization.captured else unused  # SET-41 to SET-43, CAP-03
        order = replace(with_attempt(order, index, status=status), status=status)
    return change(shop, number, order)


def end_authorization(shop: Shop, number: int, index: int) -> Shop:
    """Capture a delayed authorization, or expire any other kind (CAP-03, CAP-05, CAP-07, SET-44)."""
    held = shop.orders[number].attempts[index].authorization
    assert held is not None, "it is due"
    fields: dict[str, Any] = {"captured": held.captured + held.remaining} if held.is_delayed else {}
    return set_authorization(shop, number, index, replace(held, **fields or {"is_expired": True}))


def expire_page(shop: Shop, number: int) -> Shop:
    """Expire the hosted page, and its open attempt (ORD-12, A12)."""
    order = shop.orders[number]
    for index, attempt in enumerate(order.attempts):
        if attempt.is_open:
            order = with_attempt(order, index, status="expired", due=None)
    return change(shop, number, order, status="expired")


def answer_screening(shop: Shop, number: int, index: int, answer: str) -> Shop:
    """Apply the result of a slow screening: the attempt returns to ``new``, or ends (STA-14)."""
    if answer != "passed":
        return end_attempt(shop, number, index, "cancelled" if answer == "declined" else "error")
    order = with_attempt(shop.orders[number], index, status="new", screening="", due=None)
    return change(shop, number, order, status=order.status if order.is_hosted else "new")


def settle_recurring(shop: Shop, number: int, index: int, is_settled: bool) -> Shop:
    """Settle or fail a recurring payment (STA-12, SET-64)."""
    return pay(shop, number, index) if is_settled else end_attempt(shop, number, index, "error")


def with_refund(shop: Shop, number: int, index: int, refund: Refund) -> Shop:
    """Replace one refund."""
    return change(shop, number, refunds=put(shop.orders[number].refunds, index, refund))


def end_refund(shop: Shop, number: int, index: int, status: str) -> Shop:
    """Settle or fail a refund, and send the refund's own webhook (A27, A28)."""
    refund = shop.orders[number].refunds[index]
    webhooks = (*refund.webhooks, Webhook(shop.now))
    return with_refund(shop, number, index, replace(refund, status=status, fails_at=None, webhooks=webhooks))


def deliver(shop: Shop, number: int, index: int, refund: int | None) -> Shop:
    """Attempt a delivery; failures are retried, up to ten attempts in total (HOOK-09, HOOK-10, HOOK-12)."""
    order = shop.orders[number]
    owner = order if refund is None else order.refunds[refund]
    attempts = owner.webhooks[index].attempts + 1
    failed = "failed" if attempts == DELIVERY_ATTEMPTS_MAX else "pending"
    state = "delivered" if shop.is_reachable else failed
    attempted = replace(owner.webhooks[index], attempts=attempts, state=state)
    webhooks = put(owner.webhooks, index, attempted)
    if refund is None:
        return change(shop, number, webhooks=webhooks)
    return with_refund(shop, number, refund, replace(order.refunds[refund], webhooks=webhooks))


def _due_of_attempt(number: int, index: int, attempt: Attempt) -> Iterator[DueEvent]:
    authorization = attempt.authorization
    if attempt.arrives is not None:
        yield attempt.arrives, partial(receive_credit, number=number, index=index)
    if authorization is not None:
        if authorization.remaining and not authorization.is_expired:
            yield authorization.expires, partial(end_authorization, number=number, index=index)
    elif attempt.is_open and (attempt.due is None or attempt.due > attempt.expires):
        yield attempt.expires, partial(end_attempt, number=number, index=index, status="expired")
    elif attempt.is_open and attempt.due is not None and attempt.screening:
        answer = attempt.screening
        yield attempt.due, partial(answer_screening, number=number, index=index, answer=answer)
    elif attempt.is_open and attempt.due is not None:
        is_settled = attempt.amount != 66604
        yield attempt.due, partial(settle_recurring, number=number, index=index, is_settled=is_settled)


def _due_events(shop: Shop) -> Iterator[DueEvent]:
    for number, order in enumerate(shop.orders):
        owners: list[tuple[int | None, Order | Refund]] = [(None, order), *enumerate(order.refunds)]
        for refund, owner in owners:
            for index, webhook in enumerate(owner.webhooks):
                if webhook.due is not None:
                    yield webhook.due, partial(deliver, number=number, index=index, refund=refund)
        for index, attempt in enumerate(order.attempts):
            yield from _due_of_attempt(number, index, attempt)
        for index, each in enumerate(order.refunds):
            if each.fails_at is not None:
                yield each.fails_at, partial(end_refund, number=number, index=index, status="error")
        is_transfer = any(a.facts.is_transfer and a.is_open for a in order.attempts[-1:])  # A21
        if order.expires is not None and order.is_active and not is_transfer:
            yield order.expires, partial(expire_page, number=number)


def due_times(shop: Shop) -> list[datetime]:
    """Return the due times of all pending events, earliest first (CTL-17)."""
    return sorted({due for due, _ in _due_events(shop)})


def run_until(shop: Shop, until: datetime) -> Shop:
    """Run all due events up to a time, each at its own time (CTL-13)."""
    while True:
        first = min(_due_events(shop), key=lambda item: item[0], default=None)
        if first is None or first[0] > until:
            return replace(shop, now=until)
        shop = first[1](replace(shop, now=max(shop.now, first[0])))
