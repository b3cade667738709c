"""The merchant's calls: creation, update, cancellation, captures, voids, refunds and QR codes."""

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from tests.model.specification import changes, money
from tests.model.specification.calls import (
    Cancel,
    Capture,
    Create,
    CreateCode,
    CreateRefund,
    Outcomes,
    Refusal,
    Update,
    Void,
    allow,
    refuse,
    refuse_if,
)
from tests.model.specification.money import is_amount
from tests.model.specification.records import (
    HOSTED_PAGE_PERIOD,
    METHODS,
    QR_PERIOD,
    RECURRING_SETTLEMENT_DELAY,
    SCREENING_DURATION,
    Attempt,
    Order,
    QrRequest,
    Refund,
    Shop,
    Webhook,
    add_period,
)

ANSWERS_BY_AMOUNT: Final = {66601: "declined", 66602: "needs-time", 66603: "error"}  # the trigger values
DECLINED_CHARGE: Final = 66604
FAILING_REFUND: Final = 66605
REFUND_FAILURE_DELAY: Final = timedelta(minutes=1)
FLOWS: Final = {"first one-click", "one-click", "first recurring", "recurring"}


def is_offered(shop: Shop, order: Order | Create, method: str) -> bool:
    """Whether a method can be used for an order (GEN-04, SET-61, PLA-01, INV-01, INV-02, ORD-16)."""
    facts = METHODS[method]
    lacks_lines = "order_lines" in facts.needs and not order.lines
    lacks_customer = "customer" in facts.needs and not order.customer
    return (facts.is_testable or shop.mode == "live") and not lacks_lines and not lacks_customer


def order_refusals(shop: Shop, call: Create) -> list[Refusal]:
    """Refuse an order, whatever the method (ORD-02 to ORD-05, ORD-11, ORD-13, LIM-01, LIM-02, SET-21, TRQ-03)."""
    try:
        add_period(shop.now, call.period or HOSTED_PAGE_PERIOD)
    except ValueError:
        return refuse_if(True)
    usable = [method for method in call.offered if method in METHODS and is_offered(shop, call, method)]
    is_unknown = any(method not in METHODS for method in call.offered)
    is_useless = bool(call.offered) and not usable and not call.method
    return refuse_if(not is_amount(call.amount) or call.currency != "EUR" or is_unknown or is_useless)


def attempt_refusals(shop: Shop, call: Create) -> list[Refusal]:
    """Refuse a transaction (GEN-02, TRQ-01, TRQ-02, TRQ-06, CAP-01, IDR-01, IDR-06, PLA-01, INV-01, INV-02, SET-61)."""
    if call.method not in METHODS:
        return refuse_if(bool(call.method))
    facts = METHODS[call.method]
    modes = {"", "manual", "delayed"} if facts.authorizes else {""}
    lacks_issuer = "issuer_id" in facts.needs and call.issuer != "known"
    is_wrong = not is_offered(shop, call, call.method) or call.capture_mode not in modes or lacks_issuer
    return refuse_if(is_wrong) + (card_refusals(shop, call) if facts.has_flows else [])


def card_refusals(shop: Shop, call: Create) -> list[Refusal]:
    """Refuse a token, CVC, amount or date of a stored card (CARD-10 to CARD-14, LIM-07 to LIM-11, SET-64)."""
    if call.flow not in {"one-click", "recurring"}:
        return refuse_if(call.flow not in FLOWS | {""} or call.card is not None)  # A44
    cards = dict(enumerate(shop.cards))
    card = cards.get(len(cards) if call.card is None else call.card)
    if card is None or card.flow != call.flow:
        return refuse_if(True)
    if call.flow == "one-click":
        return refuse_if(not call.cvc)
    expired = [Refusal(409, "RecurringSeriesExpired")] if shop.now >= card.valid_until else []
    return refuse_if(call.amount != card.amount) + expired


def create(shop: Shop, call: Create) -> Outcomes:
    """Create an order: hosted, or server to server (GEN-01, END-02, STA-02, STA-03, FLOW-01)."""
    refusals = order_refusals(shop, call) + attempt_refusals(shop, call)
    if refusals:
        return refuse(shop, *refusals)
    expires = None if call.method else add_period(shop.now, call.period or HOSTED_PAGE_PERIOD)
    fields: dict[str, Any] = {"lines": call.lines, "customer": call.customer, "offered": call.offered}
    fields |= {"webhook_url": call.webhook_url, "description": call.description}
    order = Order(call.amount, "new", expires, **fields)
    if not call.method:
        return allow(201, changes.add_order(shop, order))
    attempt = begin_attempt(shop, order, new_attempt(shop, order, call))
    if attempt.status == "paid":
        number, unpaid = len(shop.orders), replace(order, attempts=(attempt,))
        paid = changes.pay(replace(shop, orders=(*shop.orders, unpaid)), number, 0)
        return allow(201, changes.change(paid, number, has_acted=False))
    status = "processing" if attempt.status == "pending" else attempt.status
    return allow(201, changes.add_order(shop, replace(order, status=status, attempts=(attempt,))))


def new_attempt(shop: Shop, order: Order, call: Create) -> Attempt:
    """Return a new transaction with the default period and capture mode (TRQ-04, A13)."""
    facts = METHODS[call.method]
    period = call.period or facts.period
    mode = call.capture_mode or ("manual" if facts.screenings else "")
    return Attempt(call.method, order.amount, "new", period, add_period(shop.now, period), mode, call.flow)


def begin_attempt(shop: Shop, order: Order, attempt: Attempt) -> Attempt:
    """Set an attempt's initial status; ``paid`` is immediate (states, creation; STA-02, SET-37, PLA-02)."""
    facts = attempt.facts
    answer = order.customer if order.customer in facts.screenings else ANSWERS_BY_AMOUNT.get(order.amount, "")
    if answer in facts.screenings:
        return apply_screening(shop, attempt, answer)
    if facts.is_transfer:  # STA-10, SEPA-01, SET-55
        return replace(attempt, status="pending")
    if attempt.flow == "recurring":  # STA-12, FLOW-09, TX-13, CARD-21
        return replace(attempt, status="processing", due=shop.now + RECURRING_SETTLEMENT_DELAY)
    if attempt.flow == "one-click":  # STA-11, FLOW-06, TX-13, CARD-21
        return replace(attempt, status="error" if order.amount == DECLINED_CHARGE else "paid")
    return replace(attempt, status="paid") if facts.is_invoice else attempt  # STA-17


def apply_screening(shop: Shop, attempt: Attempt, answer: str) -> Attempt:
    """Apply the result of a screening: declined, slow or an error (STA-13 to STA-16, SET-55, ERR-01, ERR-02)."""
    if answer == "needs-time":
        due = shop.now + SCREENING_DURATION
        return replace(attempt, status="processing", screening="passed", due=due)
    return replace(attempt, status="error" if answer == "error" else "cancelled")


def update(shop: Shop, call: Update) -> Outcomes:
    """Update an order; its amount can only change before the customer acts (SET-11, SET-51, SET-52, A35).

    Unspecified: whether the amount can change after a screening or a processor has acted.
    """
    order = shop.orders[call.order]
    amount = order.amount if call.amount is None else call.amount
    description = order.description if call.description is None else call.description
    attempts = tuple(replace(attempt, amount=amount) for attempt in order.attempts)
    changed = replace(order, amount=amount, description=description, attempts=attempts)
    done = allow(200, changes.change(shop, call.order, changed))
    too_late = [Refusal(409, "OrderNotUpdatable")] * (amount != order.amount)
    if not is_amount(amount) or order.has_acted:
        return refuse(shop, *refuse_if(not is_amount(amount)), *too_late) or done
    is_waiting = order.status == "new" or {attempt.status for attempt in attempts} == {"pending"}
    return done if is_waiting else (*done, *refuse(shop, *too_late))


def cancel(shop: Shop, call: Cancel) -> Outcomes:
    """Cancel an order and void its authorization unless money has moved (END-07, INV-05, REF-02, SET-50, A34)."""
    order = shop.orders[call.order]
    has_remainder = any(each.authorization and each.authorization.remaining for each in order.attempts)
    is_authorized = order.status == "accepted" or (order.status == "completed" and has_remainder)
    if order.is_paid or not (order.is_active or is_authorized):
        return refuse(shop, Refusal(409, "OrderNotCancellable"))
    attempts = tuple(map(changes.supersede, order.attempts))
    return allow(200, changes.change(shop, call.order, status="cancelled", attempts=attempts))


def capture(shop: Shop, call: Capture) -> Outcomes:
    """Capture an authorization (END-11 to END-14, SET-40, SET-46, SET-47)."""
    order = shop.orders[call.order]
    attempt = order.attempts[call.attempt]
    refusals = money.capture_refusals(order, attempt, call, shop.now)
    if refusals or attempt.authorization is None:
        return refuse(shop, *refusals)
    captured = money.apply_capture(order, attempt.authorization, call)
    return allow(200, changes.set_authorization(shop, call.order, call.attempt, captured))


def void(shop: Shop, call: Void) -> Outcomes:
    """Void an authorization (END-15, END-16, VOID-01, VOID-02, A15)."""
    order = shop.orders[call.order]
    attempt = order.attempts[call.attempt]
    refusals = money.void_refusals(order, attempt, call, shop.now)
    if refusals or attempt.authorization is None:
        return refuse(shop, *refusals)
    voided = money.apply_void(order, attempt.authorization, call)
    return allow(200, changes.set_authorization(shop, call.order, call.attempt, voided))


def create_refund(shop: Shop, call: CreateRefund) -> Outcomes:
    """Refund an order: immediately, or with a failure a minute later (END-08, END-10, SET-48, A27, A28)."""
    order = shop.orders[call.order]
    refusals = money.refund_refusals(order, call)
    if refusals:
        return refuse(shop, *refusals)
    cents, quantities = money.requested_refund(order, call)
    assert cents is not None, "refused before"
    fails_at = shop.now + REFUND_FAILURE_DELAY if cents == FAILING_REFUND else None
    status = "processing" if fails_at else "completed"
    refund = Refund(cents, status, quantities, fails_at, (Webhook(shop.now),))
    return allow(201, changes.change(shop, call.order, refunds=(*order.refunds, refund)))


def code_refusals(call: CreateCode) -> list[Refusal]:
    """Refuse a QR request, and bounds that exclude its amount (QR-02, QR-06 to QR-09, QR-20, LIM-03, LIM-05, A23)."""
    amount, smallest, largest = call.amount or 0, call.smallest, call.largest
    is_open = call.is_changeable and not call.amount
    is_wrong_size = type(call.size) is not int or not 100 <= call.size <= 2000
    if is_wrong_size or (not is_open and not is_amount(call.amount)):
        return refuse_if(True)
    bounds = [bound for bound in (smallest, largest) if bound is not None]
    if not call.is_changeable or not all(is_amount(bound) for bound in bounds):
        return refuse_if(bool(bounds))
    return refuse_if((bool(largest) and largest <= amount) or 0 < amount <= (smallest or 0))


def create_code(shop: Shop, call: CreateCode) -> Outcomes:
    """Create a QR request (END-18, QR-03, QR-12, QR-15)."""
    refusals = code_refusals(call)
    if refusals:
        return refuse(shop, *refusals)
    expires, bounds = add_period(shop.now, QR_PERIOD), (call.smallest, call.largest)
    code = QrRequest(call.amount or 0, call.is_changeable, *bounds, call.is_one_off, expires)
    return allow(201, replace(shop, codes=(*shop.codes, code)))
