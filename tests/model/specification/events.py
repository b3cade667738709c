"""The events of orders: actions by customers, banks, screenings and processors, and expiries."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from tests.model.specification import changes
from tests.model.specification.calls import (
    ACTION_IMPOSSIBLE,
    Act,
    Advance,
    Create,
    Outcomes,
    Refusal,
    Scan,
    SetReachability,
    allow,
    refuse,
    refuse_if,
)
from tests.model.specification.merchant import begin_attempt, is_offered, new_attempt
from tests.model.specification.money import is_amount
from tests.model.specification.records import METHODS, Attempt, Order, QrRequest, Shop, add_period

SCREENING_ANSWERS: Final = {"approve": "passed", "decline": "declined", "error": "error"}


def act(shop: Shop, call: Act) -> Outcomes:
    """Perform an action, or refuse it with 409 if the state does not allow it (CTL-20)."""
    return ACTIONS[(call.actor, call.action)](shop, call)


def payable_attempt(order: Order) -> int | None:
    """Return the number of the attempt that the customer can pay, if any."""
    for index, attempt in enumerate(order.attempts):
        is_waiting = attempt.status in {"new", "processing"} and attempt.due is None
        if order.is_active and is_waiting and attempt.facts.has_page:
            return index
    return None


def visit_page(shop: Shop, call: Act) -> Outcomes:
    """Open the payment page as the customer (STA-04 to STA-07, SET-36, GEN-06).

    Unspecified: whether a visit to the hosted page changes the status, and whether an unnecessary visit
    is refused.
    """
    order = shop.orders[call.order]
    visited = changes.visit(shop, call.order)
    if order.is_hosted and order.is_active and not order.attempts:
        return allow(200, visited, changes.change(shop, call.order, has_acted=True))
    if payable_attempt(order) is None:
        return allow(200, shop) + refuse(shop, ACTION_IMPOSSIBLE)
    return allow(200, visited)


def pay_as_customer(shop: Shop, call: Act) -> Outcomes:
    """Pay as the customer, which implies a visit; both send a webhook (A32, STA-08, STA-09, SET-38, GEN-05).

    Test cards only affect card payments: a declined one fails (SET-28, A11).
    """
    index = payable_attempt(shop.orders[call.order])
    if index is None:
        return refuse(shop, ACTION_IMPOSSIBLE)
    visited = changes.visit(shop, call.order)
    is_card = visited.orders[call.order].attempts[index].facts.has_flows  # only cards have flows
    if call.card == "declined" and is_card:
        return allow(200, changes.end_attempt(visited, call.order, index, "error"))
    return allow(200, changes.pay(visited, call.order, index))


def fail_as_customer(shop: Shop, call: Act) -> Outcomes:
    """Cancel as the customer, or let the payment fail (A11, SET-28, SET-35).

    Unspecified: whether a visit is implied, and what the action does to transfers or before a payment.
    """
    order = shop.orders[call.order]
    index = payable_attempt(order)
    if index is None:
        return () if order.is_active else refuse(shop, ACTION_IMPOSSIBLE)
    status = "cancelled" if call.action == "cancel" else "error"
    before = (changes.visit(shop, call.order), changes.change(shop, call.order, has_acted=True))
    return allow(200, *(changes.end_attempt(each, call.order, index, status) for each in before))


def choose_method(shop: Shop, call: Act) -> Outcomes:
    """Choose a method on the hosted page as the customer (GEN-03, GEN-04, ORD-14, SET-18, FLOW-12, FLOW-13, A22).

    A choice is only possible until the page expires, even if a transfer keeps the order open (ORD-12, A21), and not
    while the newest attempt is a transfer that has received part of its amount (A22). A transfer that was chosen
    before, and whose period is not over, is continued with the same reference, as the newest attempt (A22).
    """
    order = shop.orders[call.order]
    is_listed = call.method in (order.offered or METHODS)
    if not order.is_page_open(shop.now) or any(attempt.received for attempt in order.attempts[-1:]):
        return refuse(shop, ACTION_IMPOSSIBLE)
    if not is_listed or not is_offered(shop, order, call.method):
        return refuse(shop, ACTION_IMPOSSIBLE, Refusal(400, ""))
    visited = changes.visit(shop, call.order)
    known = [
        attempt
        for attempt in order.attempts
        if attempt.method == call.method and attempt.facts.is_transfer and shop.now < attempt.expires
    ]
    others = tuple(changes.supersede(attempt) for attempt in order.attempts if attempt not in known[-1:])

    def add(attempt: Attempt, **fields: Any) -> Shop:
        return changes.change(visited, call.order, attempts=(*others, replace(attempt, **fields)))

    if known:
        return allow(200, add(known[-1], status="pending"))
    attempt = begin_attempt(shop, order, new_attempt(shop, order, Create(order.amount, call.method)))
    if call.arrives and shop.mode == "live":
        attempt = replace(attempt, arrives=add_period(shop.now, call.arrives), credit=call.amount)
    if attempt.status == "paid":
        return allow(200, changes.pay(add(attempt), call.order, len(others)))
    if attempt.status == "new":  # unspecified: whether choosing counts as a visit
        return allow(200, add(attempt), add(attempt, status="processing"))
    return allow(200, add(attempt))


def credit_transfer(shop: Shop, call: Act) -> Outcomes:
    """Credit a transfer, by default the newest one with the missing or the whole amount.

    In test mode, no transfer is completable (SEPA-02, SEPA-04, SET-62, SET-63, HOOK-13, A29, A45).
    """
    order = shop.orders[call.order]
    indexes = [index for index, attempt in enumerate(order.attempts) if attempt.facts.is_transfer]
    if not indexes or call.attempt not in (-1, *indexes):
        return refuse(shop, ACTION_IMPOSSIBLE)
    if shop.mode == "test":
        return refuse(shop, Refusal(409, "NotCompletableInTestMode"))
    index = indexes[-1] if call.attempt < 0 else call.attempt
    attempt = order.attempts[index]
    missing = attempt.amount - attempt.received
    cents = call.amount if call.amount is not None else missing if missing > 0 else attempt.amount
    return allow(200, changes.credit(shop, call.order, index, cents))


def end_screening(shop: Shop, call: Act) -> Outcomes:
    """End a slow screening through a control call (STA-14, ERR-01, ERR-02)."""
    for index, attempt in enumerate(shop.orders[call.order].attempts):
        if attempt.screening and attempt.is_open:
            answer = SCREENING_ANSWERS[call.action]
            return allow(200, changes.answer_screening(shop, call.order, index, answer))
    return refuse(shop, ACTION_IMPOSSIBLE)


def end_processing(shop: Shop, call: Act) -> Outcomes:
    """Settle or fail a refund or a recurring payment, as the processor (STA-12, SET-64, SCN-09, A27)."""
    order, is_settled = shop.orders[call.order], call.action == "settle"
    if call.refund is not None:
        if order.refunds[call.refund].status != "processing":
            return refuse(shop, ACTION_IMPOSSIBLE)
        status = "completed" if is_settled else "error"
        return allow(200, changes.end_refund(shop, call.order, call.refund, status))
    for index, attempt in enumerate(order.attempts):
        if attempt.flow == "recurring" and attempt.is_open:
            return allow(200, changes.settle_recurring(shop, call.order, index, is_settled))
    return refuse(shop, ACTION_IMPOSSIBLE)


ACTIONS: Final[dict[tuple[str, str], Callable[[Shop, Act], Outcomes]]] = {
    ("customer", "visit"): visit_page,
    ("customer", "pay"): pay_as_customer,
    ("customer", "cancel"): fail_as_customer,
    ("customer", "fail"): fail_as_customer,
    ("customer", "choose"): choose_method,
    ("bank", "credit"): credit_transfer,
    ("screening", "approve"): end_screening,
    ("screening", "decline"): end_screening,
    ("screening", "error"): end_screening,
    ("processor", "settle"): end_processing,
    ("processor", "fail"): end_processing,
}


def is_amount_allowed(code: QrRequest, amount: int) -> bool:
    """Whether a QR code allows an amount (QR-04 to QR-09, LIM-05)."""
    if not code.is_changeable:
        return amount == code.amount
    return max(code.smallest or 1, 1) <= amount <= (code.largest or amount)


def scan(shop: Shop, call: Scan) -> Outcomes:
    """Scan a QR code, which creates an order (QR-04, QR-05, QR-13, QR-14, QR-17, ORD-26, ORD-27, A52, A53)."""
    code = shop.codes[call.code]
    amount = code.amount if call.amount is None else call.amount
    refusals = refuse_if(call.amount is not None and not is_amount(amount))  # SET-11
    refusals += [Refusal(409, "QrUsed")] if code.is_one_off and code.scans else []
    refusals += [Refusal(409, "QrExpired")] if shop.now >= code.expires else []
    refusals += [Refusal(409, "QrAmountRefused")] if not is_amount_allowed(code, amount) else []
    if refusals:
        return refuse(shop, *refusals)
    period = METHODS["bank-redirect-nl"].period
    attempt = Attempt("bank-redirect-nl", amount, "processing", period, add_period(shop.now, period))
    order = Order(amount, "processing", None, attempts=(attempt,), has_acted=True, from_code=True)
    codes = changes.put(shop.codes, call.code, code._replace(scans=code.scans + 1))
    return allow(201, changes.add_order(replace(shop, codes=codes), order))


def advance(shop: Shop, call: Advance) -> Outcomes:
    """Advance the clock; every due event happens at its own time (CTL-13)."""
    return allow(200, changes.run_until(shop, add_period(shop.now, call.by)))


def set_reachability(shop: Shop, call: SetReachability) -> Outcomes:
    """Set the status with which the shop answers webhooks, 200 or 503 (HOOK-09 to HOOK-12)."""
    return allow(200, replace(shop, is_reachable=call.is_reachable))
