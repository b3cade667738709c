"""Changes to orders, their webhooks, and the events that become due."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial

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


def add_order(shop: Shop, order: Order) -> Shop:
    """Add an order; unless its status is ``new``, this sends a webhook (SET-55)."""
    webhooks = () if order.status == "new" else (Webhook(shop.now),)
    return replace(shop, orders=(*shop.orders, replace(order, webhooks=webhooks)))


def change(shop: Shop, number: int, order: Order) -> Shop:
    """Change an order; a webhook is sent whenever its status changes (HOOK-02, SEPA-02, HOOK-13)."""
    if order.status != shop.orders[number].status:
        order = replace(order, webhooks=(*order.webhooks, Webhook(shop.now)))
    return replace(shop, orders=(*shop.orders[:number], order, *shop.orders[number + 1 :]))


def with_attempt(order: Order, index: int, attempt: Attempt) -> Order:
    """Replace one attempt."""
    return replace(order, attempts=(*order.attempts[:index], attempt, *order.attempts[index + 1 :]))


def end_attempt(shop: Shop, number: int, index: int, status: str) -> Shop:
    """End an unpaid attempt.

    Server to server, the order has the status of its attempt (A11, A12). On the hosted page the customer
    can choose again, so the order stays ``processing`` until its page expires (A11, SET-18).
    """
    order = shop.orders[number]
    order = with_attempt(order, index, replace(order.attempts[index], status=status, due=None))
    return change(shop, number, order if order.is_hosted else replace(order, status=status))


def visit(shop: Shop, number: int) -> Shop:
    """Visit the page: order and attempt change from ``new`` to ``processing`` (STA-04 to STA-07, SET-36)."""
    order = replace(shop.orders[number], has_acted=True)
    if order.status == "new":
        attempts = tuple(
            replace(attempt, status="processing") if attempt.status == "new" else attempt
            for attempt in order.attempts
        )
        order = replace(order, status="processing", attempts=attempts)
    return change(shop, number, order)


def supersede(attempt: Attempt) -> Attempt:
    """Cancel an attempt and void its authorization, because another attempt pays for the order (A45)."""
    authorization = attempt.authorization
    if authorization is not None and authorization.remaining and not authorization.is_expired:
        authorization = replace(
            authorization,
            voided=authorization.voided + authorization.remaining,
            voided_by_amount=authorization.voided_by_amount + authorization.remaining,
        )
        return replace(
            attempt,
            authorization=authorization,
            status="completed" if authorization.captured else "cancelled",
        )
    return replace(attempt, status="cancelled", due=None) if attempt.is_open else attempt


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
    others = tuple(supersede(other) for other in order.attempts)
    order = with_attempt(replace(order, attempts=others), index, replace(attempt, status=status, due=None))
    if attempt.flow.startswith("first "):
        card = StoredCard(number, attempt.flow[6:], attempt.amount, add_period(shop.now, SERIES_PERIOD))
        shop = replace(shop, cards=(*shop.cards, card))
    if shop.orders[number].status == "cancelled":  # stays cancelled, unlike an expired order (A29)
        status = "cancelled"
    return change(shop, number, replace(order, status=status, has_acted=True))


def add_money(shop: Shop, number: int, index: int, cents: int) -> Shop:
    """Add received money to an attempt, which keeps it whatever happened to the order (A45)."""
    order, attempt = shop.orders[number], shop.orders[number].attempts[index]
    received = replace(attempt, received=attempt.received + cents)
    return change(shop, number, replace(with_attempt(order, index, received), has_acted=True))


def credit(shop: Shop, number: int, index: int, cents: int) -> Shop:
    """Credit a transfer, whatever its status; its whole amount completes it (A29, A45, SET-63).

    A credit that completes a transfer, or reaches a completed one, sends a webhook even if the order keeps its status
    (A79).
    """
    added = add_money(shop, number, index, cents)
    attempt = added.orders[number].attempts[index]
    if attempt.received < attempt.amount:
        return added
    paid = added if attempt.status == "completed" else pay(added, number, index)
    order = paid.orders[number]
    if len(order.webhooks) == len(shop.orders[number].webhooks):
        return change(paid, number, replace(order, webhooks=(*order.webhooks, Webhook(shop.now))))
    return paid


def receive_credit(shop: Shop, number: int, index: int) -> Shop:
    """Receive a planned credit, by default of the missing amount, if any (SET-63, A45)."""
    order, attempt = shop.orders[number], shop.orders[number].attempts[index]
    cents = max(attempt.amount - attempt.received, 0) if attempt.credit is None else attempt.credit
    shop = change(shop, number, with_attempt(order, index, replace(attempt, arrives=None, credit=None)))
    return credit(shop, number, index, cents) if cents else shop


def set_authorization(shop: Shop, number: int, index: int, authorization: Authorization) -> Shop:
    """Change an authorization, and end the order if nothing remains (SET-39, SET-40, SET-43)."""
    order = shop.orders[number]
    attempt = replace(order.attempts[index], authorization=authorization)
    status = order.status
    if authorization.remaining == 0 or authorization.is_expired:
        unused = "expired" if authorization.is_expired else "cancelled"
        status = "completed" if authorization.captured else unused  # SET-41 to SET-43, CAP-03
        attempt = replace(attempt, status=status)
    return change(shop, number, replace(with_attempt(order, index, attempt), status=status))


def end_authorization(shop: Shop, number: int, index: int) -> Shop:
    """Capture a delayed authorization, or expire any other kind (CAP-03, CAP-05, CAP-07, SET-44)."""
    authorization = shop.orders[number].attempts[index].authorization
    assert authorization is not None, "it is due"
    if authorization.is_delayed:
        captured = replace(authorization, captured=authorization.captured + authorization.remaining)
        return set_authorization(shop, number, index, captured)
    return set_authorization(shop, number, index, replace(authorization, is_expired=True))


def expire_page(shop: Shop, number: int) -> Shop:
    """Expire the hosted page, and its open attempt (ORD-12, A12)."""
    order = shop.orders[number]
    attempts = tuple(
        replace(attempt, status="expired", due=None) if attempt.is_open else attempt
        for attempt in order.attempts
    )
    return change(shop, number, replace(order, status="expired", attempts=attempts))


def answer_screening(shop: Shop, number: int, index: int, answer: str) -> Shop:
    """Apply the result of a slow screening: the attempt returns to ``new``, or ends (STA-14)."""
    if answer != "passed":
        return end_attempt(shop, number, index, "cancelled" if answer == "declined" else "error")
    order = shop.orders[number]
    order = with_attempt(order, index, replace(order.attempts[index], status="new", screening="", due=None))
    return change(shop, number, order if order.is_hosted else replace(order, status="new"))


def settle_recurring(shop: Shop, number: int, index: int, is_settled: bool) -> Shop:
    """Settle or fail a recurring payment (STA-12, SET-64)."""
    return pay(shop, number, index) if is_settled else end_attempt(shop, number, index, "error")


def end_refund(shop: Shop, number: int, index: int, status: str) -> Shop:
    """Settle or fail a refund, and send the refund's own webhook (A27, A28)."""
    order = shop.orders[number]
    refund = order.refunds[index]
    refund = replace(refund, status=status, fails_at=None, webhooks=(*refund.webhooks, Webhook(shop.now)))
    return change(shop, number, with_refund(order, index, refund))


def with_refund(order: Order, index: int, refund: Refund) -> Order:
    """Replace one refund."""
    return replace(order, refunds=(*order.refunds[:index], refund, *order.refunds[index + 1 :]))


def deliver(webhook: Webhook, is_reachable: bool) -> Webhook:
    """Attempt a delivery; failures are retried, up to ten attempts in total (HOOK-09, HOOK-10, HOOK-12)."""
    attempts = webhook.attempts + 1
    failed = "failed" if attempts == DELIVERY_ATTEMPTS_MAX else "pending"
    return replace(webhook, attempts=attempts, state="delivered" if is_reachable else failed)


def _deliver_webhook(shop: Shop, number: int, index: int, refund: int | None) -> Shop:
    order = shop.orders[number]
    webhooks = order.webhooks if refund is None else order.refunds[refund].webhooks
    attempted = deliver(webhooks[index], shop.is_reachable)
    webhooks = (*webhooks[:index], attempted, *webhooks[index + 1 :])
    if refund is None:
        return change(shop, number, replace(order, webhooks=webhooks))
    return change(shop, number, with_refund(order, refund, replace(order.refunds[refund], webhooks=webhooks)))


DueEvent = tuple[datetime, Callable[[Shop], Shop]]


def _due_webhooks(number: int, webhooks: tuple[Webhook, ...], refund: int | None) -> list[DueEvent]:
    return [
        (webhook.due, partial(_deliver_webhook, number=number, index=index, refund=refund))
        for index, webhook in enumerate(webhooks)
        if webhook.due is not None
    ]


def _due_attempt(order: Order, number: int, index: int, attempt: Attempt) -> DueEvent | None:
    authorization = attempt.authorization
    if authorization is not None:
        if authorization.remaining and not authorization.is_expired:
            return authorization.expires, lambda shop: end_authorization(shop, number, index)
        return None
    if not attempt.is_open:
        return None
    if attempt.due is not None and attempt.due <= attempt.expires:
        if attempt.screening:
            answer = attempt.screening
            return attempt.due, lambda shop: answer_screening(shop, number, index, answer)
        is_settled = attempt.amount != 66604
        return attempt.due, lambda shop: settle_recurring(shop, number, index, is_settled)
    return attempt.expires, lambda shop: end_attempt(shop, number, index, "expired")


def _due_order_events(order: Order, number: int) -> list[DueEvent]:
    due = _due_webhooks(number, order.webhooks, None)
    for index, attempt in enumerate(order.attempts):
        if attempt.arrives is not None:
            due.append((attempt.arrives, partial(receive_credit, number=number, index=index)))
        end = _due_attempt(order, number, index, attempt)
        due += [end] if end is not None else []
    for index, refund in enumerate(order.refunds):
        due += _due_webhooks(number, refund.webhooks, index)
        if refund.fails_at is not None:
            due.append((refund.fails_at, partial(end_refund, number=number, index=index, status="error")))
    is_transfer = any(a.facts.is_transfer and a.is_open for a in order.attempts[-1:])  # A21
    if order.expires is not None and order.is_active and not is_transfer:
        due.append((order.expires, lambda shop: expire_page(shop, number)))
    return due


def due_times(shop: Shop) -> list[datetime]:
    """Return the due times of all pending events, earliest first (CTL-17)."""
    return sorted(
        {due for number, order in enumerate(shop.orders) for due, _ in _due_order_events(order, number)}
    )


def run_until(shop: Shop, until: datetime) -> Shop:
    """Run all due events up to a time, each at its own time (CTL-13)."""
    while True:
        due = [item for number, order in enumerate(shop.orders) for item in _due_order_events(order, number)]
        first = min(due, key=lambda item: item[0], default=None)
        if first is None or first[0] > until:
            return replace(shop, now=until)
        shop = first[1](replace(shop, now=max(shop.now, first[0])))
