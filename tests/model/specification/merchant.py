"""The merchant's calls: creation, update, cancellation, captures, voids, refunds and QR codes."""

from dataclasses import replace
from datetime import timedelta
from typing import Final

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
    Method,
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
CAPTURE_RULES: Final = {"": "END-11", "lines": "END-13", "amount": "END-14"}
STORED_CARD_RULES: Final = ("TX-13", "CARD-21")


def is_offered(shop: Shop, order: Order | Create, method: str) -> bool:
    """Whether a method can be used for an order (GEN-04, SET-61, PLA-01, INV-01, INV-02, ORD-16)."""
    facts = METHODS[method]
    lacks_lines = "order_lines" in facts.needs and not order.lines
    lacks_customer = "customer" in facts.needs and not order.customer
    return (facts.is_testable or shop.mode == "live") and not lacks_lines and not lacks_customer


def order_refusals(shop: Shop, call: Create) -> list[Refusal]:
    """Refuse an order, whatever the method (ORD-02 to ORD-05, ORD-11, ORD-13, LIM-01, LIM-02, SET-21)."""
    refusals = refuse_if(not is_amount(call.amount), "ORD-04", "ORD-05", "LIM-02")
    refusals += refuse_if(call.currency != "EUR", "ORD-02", "ORD-03", "LIM-01")
    try:
        add_period(shop.now, call.period or HOSTED_PAGE_PERIOD)
    except ValueError:
        refusals += refuse_if(True, "ORD-11", "TRQ-03", "SET-21")
    usable = [method for method in call.offered if method in METHODS and is_offered(shop, call, method)]
    refusals += refuse_if(any(method not in METHODS for method in call.offered), "ORD-13")
    return refusals + refuse_if(bool(call.offered) and not usable and not call.method, "ORD-13")


def attempt_refusals(shop: Shop, call: Create) -> list[Refusal]:
    """Refuse a transaction (GEN-02, TRQ-01, TRQ-02, TRQ-06, IDR-01, IDR-06, SET-61)."""
    if call.method not in METHODS:
        return refuse_if(bool(call.method), "TRQ-02", "GEN-02")
    facts, modes = METHODS[call.method], {"", "manual", "delayed"}
    refusals = refuse_if(not facts.is_testable and shop.mode == "test", *facts.rules, "SET-61")
    refusals += refuse_if(call.capture_mode not in modes, "TRQ-06")
    refusals += refuse_if(bool(call.capture_mode) and not facts.authorizes, "CAP-01")
    refusals += missing_field_refusals(facts, call)
    return refusals + (card_refusals(shop, call) if facts.has_flows else [])


def missing_field_refusals(facts: Method, call: Create) -> list[Refusal]:
    """Refuse a transaction that lacks required fields (PLA-01, INV-01, INV-02, ORD-16, IDR-01, IDR-06)."""
    line_rules = ("INV-01" if facts.is_invoice else "PLA-01", "ORD-16")
    refusals = refuse_if("order_lines" in facts.needs and not call.lines, *line_rules)
    refusals += refuse_if("customer" in facts.needs and not call.customer, "INV-02")
    is_unknown = "issuer_id" in facts.needs and call.issuer != "known"
    return refusals + refuse_if(is_unknown, "IDR-06" if call.issuer else "IDR-01")


def card_refusals(shop: Shop, call: Create) -> list[Refusal]:
    """Refuse a token, CVC, amount or date of a stored card (CARD-10 to CARD-14, LIM-07 to LIM-11)."""
    refusals = refuse_if(call.flow not in FLOWS | {""}, "CARD-11")
    if call.flow not in {"one-click", "recurring"}:
        return refusals + refuse_if(call.card is not None, "CARD-12")  # A44
    cards = dict(enumerate(shop.cards))
    card = cards.get(len(cards) if call.card is None else call.card)
    refusals += refuse_if(call.flow == "one-click" and not call.cvc, "CARD-14", "LIM-11")
    if card is None or card.flow != call.flow:
        return refusals + refuse_if(True, "CARD-12" if call.flow == "one-click" else "CARD-13")
    if call.flow == "recurring":
        refusals += refuse_if(call.amount != card.amount, "LIM-07", "SET-64")
        if shop.now >= card.valid_until:
            refusals.append(Refusal(409, "RecurringSeriesExpired", ("LIM-08",)))
    return refusals


def create(shop: Shop, call: Create) -> Outcomes:
    """Create an order: hosted, or server to server (GEN-01, END-02, STA-02, STA-03, FLOW-01)."""
    refusals = order_refusals(shop, call) + attempt_refusals(shop, call)
    if refusals:
        return refuse(shop, *refusals)
    expires = None if call.method else add_period(shop.now, call.period or HOSTED_PAGE_PERIOD)
    facts = {"lines": call.lines, "customer": call.customer, "offered": call.offered}
    facts["webhook_url"] = call.webhook_url
    order = Order(call.amount, "new", expires, description=call.description, **facts)  # type: ignore[arg-type]
    if not call.method:
        return (allow(201, changes.add_order(shop, order), "STA-03", "GEN-01"),)
    attempt, rules = begin_attempt(shop, order, new_attempt(shop, order, call))
    rules += METHODS[call.method].rules
    if attempt.status == "paid":
        number, unpaid = len(shop.orders), replace(order, attempts=(attempt,))
        paid = changes.pay(replace(shop, orders=(*shop.orders, unpaid)), number, 0)
        not_acted = replace(paid.orders[number], has_acted=False)
        return (allow(201, changes.change(paid, number, not_acted), *rules),)
    status = "processing" if attempt.status == "pending" else attempt.status
    shop_after = changes.add_order(shop, replace(order, status=status, attempts=(attempt,)))
    return (allow(201, shop_after, *rules),)


def new_attempt(shop: Shop, order: Order, call: Create) -> Attempt:
    """Return a new transaction with the default period and capture mode (TRQ-04, A13)."""
    facts = METHODS[call.method]
    period = call.period or facts.period
    mode = call.capture_mode or ("manual" if facts.screenings else "")
    return Attempt(call.method, order.amount, "new", period, add_period(shop.now, period), mode, call.flow)


def begin_attempt(shop: Shop, order: Order, attempt: Attempt) -> tuple[Attempt, tuple[str, ...]]:
    """Set an attempt's initial status, and return its rules; ``paid`` is immediate (states, creation)."""
    facts = attempt.facts
    answer = order.customer if order.customer in facts.screenings else ANSWERS_BY_AMOUNT.get(order.amount, "")
    if answer in facts.screenings:
        return apply_screening(shop, attempt, answer)
    if facts.is_transfer:
        return replace(attempt, status="pending"), ("STA-10", "SEPA-01", "SET-55")
    if attempt.flow == "recurring":
        due = shop.now + RECURRING_SETTLEMENT_DELAY
        return replace(attempt, status="processing", due=due), ("STA-12", "FLOW-09", *STORED_CARD_RULES)
    if attempt.flow == "one-click":
        is_declined = order.amount == DECLINED_CHARGE
        status = "error" if is_declined else "paid"
        return replace(attempt, status=status), ("STA-11", "FLOW-06", *STORED_CARD_RULES)
    if facts.is_invoice:
        return replace(attempt, status="paid"), ("STA-17",)
    return attempt, ("SET-37", "PLA-02") if facts.screenings else ("STA-02",)


def apply_screening(shop: Shop, attempt: Attempt, answer: str) -> tuple[Attempt, tuple[str, ...]]:
    """Apply the result of a screening: declined, slow or an error (STA-13 to STA-16, ERR-01, ERR-02)."""
    if answer == "needs-time":
        due = shop.now + SCREENING_DURATION
        return replace(attempt, status="processing", screening="passed", due=due), ("STA-14", "SET-55")
    if answer == "error":
        return replace(attempt, status="error"), ("STA-15", "ERR-01")
    return replace(attempt, status="cancelled"), ("STA-13", "STA-16", "ERR-02")


def update(shop: Shop, call: Update) -> Outcomes:
    """Update an order; its amount can only change before the customer acts (SET-51, SET-52, A35).

    Unspecified: whether the amount can change after a screening or a processor has acted.
    """
    order = shop.orders[call.order]
    given = {"amount": call.amount, "description": call.description}
    changed = replace(order, **{name: value for name, value in given.items() if value is not None})
    amount = changed.amount
    attempts = tuple(replace(attempt, amount=amount) for attempt in order.attempts)
    changed = replace(changed, attempts=attempts)
    done = allow(
        200,
        changes.change(shop, call.order, changed),
        "SET-51" if call.amount is None else "SET-52",
        assumption="A35",
    )
    refusals = refuse_if(not is_amount(amount), "SET-11")
    too_late = [Refusal(409, "OrderNotUpdatable", ("SET-52",))] * (amount != order.amount)
    if refusals or order.has_acted:
        return refuse(shop, *refusals, *too_late) or (done,)
    is_waiting = order.status == "new" or {attempt.status for attempt in attempts} == {"pending"}
    return (done,) if is_waiting else (done, *refuse(shop, *too_late))


def cancel(shop: Shop, call: Cancel) -> Outcomes:
    """Cancel an order and void its authorization unless money has moved (END-07, INV-05, REF-02, SET-50)."""
    order = shop.orders[call.order]
    has_remainder = any(
        attempt.authorization and attempt.authorization.remaining for attempt in order.attempts
    )
    is_authorized = order.status == "accepted" or (order.status == "completed" and has_remainder)
    if order.is_paid or not (order.is_active or is_authorized):
        return refuse(shop, Refusal(409, "OrderNotCancellable", ("SET-50",)))
    attempts = tuple(changes.supersede(attempt) for attempt in order.attempts)
    cancelled = replace(order, status="cancelled", attempts=attempts)
    done = changes.change(shop, call.order, cancelled)
    return (allow(200, done, "SET-50", "END-07", assumption="A34"),)


def capture(shop: Shop, call: Capture) -> Outcomes:
    """Capture an authorization (END-11 to END-14, SET-46)."""
    order = shop.orders[call.order]
    attempt = order.attempts[call.attempt]
    refusals = money.capture_refusals(order, attempt, call, shop.now)
    if refusals or attempt.authorization is None:
        return refuse(shop, *refusals)
    captured = money.apply_capture(order, attempt.authorization, call)
    done = changes.set_authorization(shop, call.order, call.attempt, captured)
    rule = "SET-40" if attempt.facts.is_invoice and not captured.remaining else "SET-47"
    return (allow(200, done, rule, CAPTURE_RULES[call.style], "END-12"),)


def void(shop: Shop, call: Void) -> Outcomes:
    """Void an authorization (END-15, END-16, VOID-01, VOID-02)."""
    order = shop.orders[call.order]
    attempt = order.attempts[call.attempt]
    refusals = money.void_refusals(order, attempt, call, shop.now)
    if refusals or attempt.authorization is None:
        return refuse(shop, *refusals)
    voided = money.apply_void(order, attempt.authorization, call)
    done = changes.set_authorization(shop, call.order, call.attempt, voided)
    rule, endpoint = "VOID-01" if voided.remaining else "VOID-02", "END-15" if call.lines else "END-16"
    return (allow(200, done, rule, endpoint, assumption="A15"),)


def create_refund(shop: Shop, call: CreateRefund) -> Outcomes:
    """Refund an order: immediately, or with a failure a minute later (END-08, END-10, SET-48, A27, A28)."""
    order = shop.orders[call.order]
    refusals = money.refund_refusals(order, call)
    if refusals:
        return refuse(shop, *refusals)
    cents, quantities = money.requested_refund(order, call)
    assert cents is not None, "refused before"
    fails_at = shop.now + REFUND_FAILURE_DELAY if cents == FAILING_REFUND else None
    refund = Refund(
        cents, "processing" if fails_at else "completed", quantities, fails_at, (Webhook(shop.now),)
    )
    done = changes.change(shop, call.order, replace(order, refunds=(*order.refunds, refund)))
    return (allow(201, done, "SET-48", "END-08" if call.lines else "END-10", assumption="A27"),)


def code_refusals(call: CreateCode) -> list[Refusal]:
    """Refuse a QR request (QR-02, QR-06 to QR-09, QR-20, LIM-03, LIM-05, A23)."""
    is_open = call.is_changeable and not call.amount
    refusals = refuse_if(not is_open and not is_amount(call.amount), "QR-02", "LIM-05")
    refusals += refuse_if(type(call.size) is not int or not 100 <= call.size <= 2000, "QR-20", "LIM-03")
    return refusals or bound_refusals(call)


def bound_refusals(call: CreateCode) -> list[Refusal]:
    """Refuse bounds on a fixed amount, and bounds that exclude the amount (QR-06 to QR-09)."""
    amount, smallest, largest = call.amount or 0, call.smallest, call.largest
    bounds = [bound for bound in (smallest, largest) if bound is not None]
    if not call.is_changeable or not all(is_amount(bound) for bound in bounds):
        return refuse_if(bool(bounds), "QR-06" if smallest is None else "QR-08")
    refusals = refuse_if(bool(largest) and largest <= amount, "QR-07", "LIM-05")
    return refusals + refuse_if(0 < amount <= (smallest or 0), "QR-09", "LIM-05")


def create_code(shop: Shop, call: CreateCode) -> Outcomes:
    """Create a QR request (END-18, QR-03, QR-12, QR-15)."""
    refusals = code_refusals(call)
    if refusals:
        return refuse(shop, *refusals)
    expires, bounds = add_period(shop.now, call.expires_after or QR_PERIOD), (call.smallest, call.largest)
    code = QrRequest(call.amount or 0, call.is_changeable, *bounds, call.is_one_off, expires)
    shop_after = replace(shop, codes=(*shop.codes, code))
    return (allow(201, shop_after, "END-18"),)
