"""The calls of the merchant: creation, update, cancellation, captures, voids, refunds and QR codes."""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from payment_sandbox_verify.model import changes, money
from payment_sandbox_verify.model.calls import (
    Cancel,
    Capture,
    Create,
    CreateCode,
    MakeRefund,
    Outcomes,
    Refusal,
    Update,
    Void,
    allow,
    invalid,
    refuse,
)
from payment_sandbox_verify.model.money import is_amount
from payment_sandbox_verify.model.records import (
    HOSTED_PAGE_LASTS,
    METHODS,
    QR_LASTS,
    RECURRING_SETTLES_AFTER,
    SCREENING_TAKES,
    Attempt,
    Code,
    Method,
    Order,
    Refund,
    Shop,
    Webhook,
    after,
)

ANSWERS_BY_AMOUNT: Final = {66601: "declined", 66602: "needs-time", 66603: "error"}  # test values
DECLINED_CHARGE: Final = 66604
FAILING_REFUND: Final = 66605
FAILS_AFTER: Final = timedelta(minutes=1)
FLOWS: Final = {"first one-click", "one-click", "first recurring", "recurring"}
OF_STORED_CARDS: Final = ("TX-13", "CARD-21")
CAPTURES: Final = {"": "END-11", "lines": "END-13", "amount": "END-14"}


def is_offered(shop: Shop, order: Order | Create, method: str) -> bool:
    """Whether a method can be used for an order (GEN-04, SET-61, PLA-01, INV-01, INV-02, ORD-16)."""
    facts = METHODS[method]
    lacks_lines = "order_lines" in facts.needs and not order.lines
    lacks_customer = "customer" in facts.needs and not order.customer
    return (facts.is_testable or shop.mode == "live") and not lacks_lines and not lacks_customer


def order_refusals(shop: Shop, call: Create) -> list[Refusal]:
    """Refuse an order, whatever the method (ORD-02 to ORD-05, ORD-11, ORD-13, LIM-01, LIM-02, SET-21)."""
    refusals = invalid(not is_amount(call.amount), "ORD-04", "ORD-05", "LIM-02")
    refusals += invalid(call.currency != "EUR", "ORD-02", "ORD-03", "LIM-01")
    try:
        after(shop.now, call.period or HOSTED_PAGE_LASTS)
    except ValueError:
        refusals += invalid(True, "ORD-11", "TRQ-03", "SET-21")
    usable = [method for method in call.offered if method in METHODS and is_offered(shop, call, method)]
    refusals += invalid(any(method not in METHODS for method in call.offered), "ORD-13")
    return refusals + invalid(bool(call.offered) and not usable and not call.method, "ORD-13")


def attempt_refusals(shop: Shop, call: Create) -> list[Refusal]:
    """Refuse a transaction (GEN-02, TRQ-01, TRQ-02, TRQ-06, IDR-01, IDR-06, SET-61)."""
    if call.method not in METHODS:
        return invalid(bool(call.method), "TRQ-02", "GEN-02")
    facts, modes = METHODS[call.method], {"", "manual", "delayed"}
    refusals = invalid(not facts.is_testable and shop.mode == "test", *facts.rules, "SET-61")
    refusals += invalid(call.capture_mode not in modes, "TRQ-06")
    refusals += invalid(bool(call.capture_mode) and not facts.authorizes, "CAP-01")
    refusals += missing_needs(facts, call)
    return refusals + (card_refusals(shop, call) if facts.has_flows else [])


def missing_needs(facts: Method, call: Create) -> list[Refusal]:
    """Refuse a transaction that lacks required fields (PLA-01, INV-01, INV-02, ORD-16, IDR-01, IDR-06)."""
    by_lines = ("INV-01" if facts.is_invoice else "PLA-01", "ORD-16")
    refusals = invalid("order_lines" in facts.needs and not call.lines, *by_lines)
    refusals += invalid("customer" in facts.needs and not call.customer, "INV-02")
    is_unknown = "issuer_id" in facts.needs and call.issuer != "known"
    return refusals + invalid(is_unknown, "IDR-06" if call.issuer else "IDR-01")


def card_refusals(shop: Shop, call: Create) -> list[Refusal]:
    """Refuse a token, CVC, amount or date of a stored card (CARD-10 to CARD-14, LIM-07 to LIM-11)."""
    refusals = invalid(call.flow not in FLOWS | {""}, "CARD-11")
    if call.flow not in {"one-click", "recurring"}:
        return refusals + invalid(call.card is not None, "CARD-12")  # A44
    cards = dict(enumerate(shop.cards))
    card = cards.get(len(cards) if call.card is None else call.card)
    refusals += invalid(call.flow == "one-click" and not call.cvc, "CARD-14", "LIM-11")
    if card is None or card.flow != call.flow:
        return refusals + invalid(True, "CARD-12" if call.flow == "one-click" else "CARD-13")
    if call.flow == "recurring":
        refusals += invalid(call.amount != card.amount, "LIM-07", "SET-64")
        if shop.now >= card.valid_until:
            refusals.append(Refusal(409, "RecurringSeriesExpired", ("LIM-08",)))
    return refusals


def create(shop: Shop, call: Create) -> Outcomes:
    """Create an order: hosted, or server to server (GEN-01, END-02, STA-02, STA-03, FLOW-01)."""
    refusals = order_refusals(shop, call) + attempt_refusals(shop, call)
    if refusals:
        return refuse(shop, *refusals)
    expires = None if call.method else after(shop.now, call.period or HOSTED_PAGE_LASTS)
    facts = {"lines": call.lines, "customer": call.customer, "offered": call.offered}
    facts["webhook_url"] = call.webhook_url
    order = Order(call.amount, "new", expires, description=call.description, **facts)  # type: ignore[arg-type]
    if not call.method:
        rule = "FLOW-01" if call.period else "ORD-13" if call.offered else "GEN-01"
        return (allow(201, changes.add_order(shop, order), "STA-03", accepted=(rule,)),)
    attempt, rules = begin_attempt(shop, order, new_attempt(shop, order, call))
    rules, accepted = rules + request_rules(call), creation_rules(call)
    if attempt.status == "paid":
        number, unpaid = len(shop.orders), replace(order, attempts=(attempt,))
        paid = changes.pay(replace(shop, orders=(*shop.orders, unpaid)), number, 0)
        unseen = replace(paid.orders[number], has_acted=False)
        return (allow(201, changes.change(paid, number, unseen), *rules, accepted=accepted),)
    status = "processing" if attempt.status == "pending" else attempt.status
    made = changes.add_order(shop, replace(order, status=status, attempts=(attempt,)))
    return (allow(201, made, *rules, accepted=accepted),)


def request_rules(call: Create) -> tuple[str, ...]:
    """Return the rules on the fields that a request contains or omits."""
    of_period = () if call.period else (*METHODS[call.method].by_default, "TRQ-04")
    return of_period + (("LINE-08",) if call.lines else ())


def creation_rules(call: Create) -> tuple[str, ...]:
    """Return the rules that a refusal of a creation would violate, the closest first."""
    later = {"one-click": ("FLOW-05", "LIM-10"), "recurring": ("FLOW-08",)}
    if call.flow:
        return later.get(call.flow, ("CARD-04",))
    if call.capture_mode and METHODS[call.method].has_flows:
        return ("CARD-03", "CAP-01")
    return METHODS[call.method].rules


def new_attempt(shop: Shop, order: Order, asked: Create) -> Attempt:
    """Return a new transaction with the default period and capture mode (TRQ-04, A13)."""
    facts = METHODS[asked.method]
    period = asked.period or facts.period
    mode = asked.capture_mode or ("manual" if facts.screenings else "")
    return Attempt(asked.method, order.amount, "new", period, after(shop.now, period), mode, asked.flow)


def begin_attempt(shop: Shop, order: Order, attempt: Attempt) -> tuple[Attempt, tuple[str, ...]]:
    """Set an attempt's initial status, and return its rules; ``paid`` means at once (states, creation)."""
    facts = attempt.facts
    answer = order.customer if order.customer in facts.screenings else ANSWERS_BY_AMOUNT.get(order.amount, "")
    if answer in facts.screenings:
        return apply_screening(shop, attempt, answer)
    if facts.is_transfer:
        return replace(attempt, status="pending"), ("STA-10", "SEPA-01", "SET-55")
    if attempt.flow == "recurring":
        due = shop.now + RECURRING_SETTLES_AFTER
        return replace(attempt, status="processing", due=due), ("STA-12", "FLOW-09", *OF_STORED_CARDS)
    if attempt.flow == "one-click":
        is_declined = order.amount == DECLINED_CHARGE
        status = "error" if is_declined else "paid"
        return replace(attempt, status=status), ("STA-11", "FLOW-06", *OF_STORED_CARDS)
    if facts.is_invoice:
        return replace(attempt, status="paid"), ("STA-17",)
    return attempt, ("SET-37", "PLA-02") if facts.screenings else ("STA-02",)


def apply_screening(shop: Shop, attempt: Attempt, answer: str) -> tuple[Attempt, tuple[str, ...]]:
    """Apply the answer of a screening: declined, slow or an error (STA-13 to STA-16, ERR-01, ERR-02)."""
    if answer == "needs-time":
        due = shop.now + SCREENING_TAKES
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
    done = allow(200, changes.change(shop, call.order, changed), update_rule(call), by="A35")
    refusals = invalid(not is_amount(amount), "SET-11")
    too_late = [Refusal(409, "OrderNotUpdatable", ("SET-52",))] * (amount != order.amount)
    if refusals or order.has_acted:
        return refuse(shop, *refusals, *too_late) or (done,)
    is_waiting = order.status == "new" or {attempt.status for attempt in attempts} == {"pending"}
    return (done,) if is_waiting else (done, *refuse(shop, *too_late))


def update_rule(call: Update) -> str:
    """Return the rule of an update."""
    return "SET-51" if call.amount is None else "SET-52"


def cancel(shop: Shop, call: Cancel) -> Outcomes:
    """Cancel an order and void its authorization unless money has moved (END-07, INV-05, REF-02, SET-50)."""
    order = shop.orders[call.order]
    has_rest = any(attempt.authorization and attempt.authorization.rest for attempt in order.attempts)
    is_authorized = order.status == "accepted" or (order.status == "completed" and has_rest)
    if order.captured or not (order.is_active or is_authorized):
        return refuse(shop, Refusal(409, "OrderNotCancellable", ("SET-50",)))
    attempts = tuple(changes.supersede(attempt) for attempt in order.attempts)
    ended = replace(order, status="cancelled", attempts=attempts)
    of_invoices = ("INV-05", "REF-02") if order.is_invoice else ()
    return (allow(200, changes.change(shop, call.order, ended), "SET-50", "END-07", *of_invoices, by="A34"),)


def capture(shop: Shop, call: Capture) -> Outcomes:
    """Capture an authorization (END-11 to END-14, SET-46)."""
    order = shop.orders[call.order]
    attempt = order.attempts[call.attempt]
    refusals = money.capture_refusals(order, attempt, call, shop.now)
    if refusals or attempt.authorization is None:
        return refuse(shop, *refusals)
    taken = money.captured(order, attempt.authorization, call)
    done = changes.set_authorization(shop, call.order, call.attempt, taken)
    facts = attempt.facts
    by_lines = ("STA-19", "LDET-03") if call.lines else ()
    rules = ("SET-40" if facts.is_invoice and not taken.rest else "SET-47", *by_lines)
    more = ("INV-03",) if facts.is_invoice else ("PLA-03",) if facts.screenings else ("CAP-02",)
    return (allow(200, done, *rules, accepted=(CAPTURES[call.style], *more, "END-12")),)


def void(shop: Shop, call: Void) -> Outcomes:
    """Void an authorization (END-15, END-16, VOID-01, VOID-02)."""
    order = shop.orders[call.order]
    attempt = order.attempts[call.attempt]
    refusals = money.void_refusals(order, attempt, call, shop.now)
    if refusals or attempt.authorization is None:
        return refuse(shop, *refusals)
    less = money.voided(order, attempt.authorization, call)
    done = changes.set_authorization(shop, call.order, call.attempt, less)
    rules = ("VOID-01",) if less.rest else ("SET-43", "VOID-02") if not less.captured else ("VOID-02",)
    rules = (*rules, *(("STA-20",) if call.lines else ()))
    more = ("PLA-04",) if attempt.facts.screenings and attempt.facts.has_page else ()
    accepted = ("END-15" if call.style == "lines" else "END-16", *more)
    return (allow(200, done, *rules, by="A15", accepted=accepted),)


def make_refund(shop: Shop, call: MakeRefund) -> Outcomes:
    """Refund an order: at once, or with a failure a minute later (END-08, END-10, SET-48, A27, A28).

    Unspecified: whether captures by amount can pay for a refund of a line that was voided by lines.
    """
    order = shop.orders[call.order]
    refusals = money.refund_refusals(order, call)
    if refusals:
        return refuse(shop, *refusals)
    cents, quantities = money.requested_refund(order, call)
    assert cents is not None, "refused before"
    fails = shop.now + FAILS_AFTER if cents == FAILING_REFUND else None
    refund = Refund(cents, "processing" if fails else "completed", quantities, fails, (Webhook(shop.now),))
    done = changes.change(shop, call.order, replace(order, refunds=(*order.refunds, refund)))
    by_invoice = ("INV-04",) if order.is_invoice else ()
    accepted = ("END-08" if call.lines else "END-10", *by_invoice)
    made = allow(201, done, "SET-48", "SET-49", by="A27", accepted=accepted)
    if call.lines is not None and money.has_voided(order, call.lines):
        return made, *refuse(shop, Refusal(409, "RefundExceedsCaptured", ("SET-49",)))
    return (made,)


def code_refusals(call: CreateCode) -> list[Refusal]:
    """Refuse a QR request (QR-02, QR-06 to QR-09, QR-20, LIM-03, LIM-05, A23)."""
    is_free = call.is_changeable and not call.amount
    refusals = invalid(not is_free and not is_amount(call.amount), "QR-02", "LIM-05")
    refusals += invalid(type(call.size) is not int or not 100 <= call.size <= 2000, "QR-20", "LIM-03")
    return refusals or bound_refusals(call)


def bound_refusals(call: CreateCode) -> list[Refusal]:
    """Refuse bounds of a fixed amount, and bounds that exclude the amount (QR-06 to QR-09)."""
    amount, smallest, largest = call.amount or 0, call.smallest, call.largest
    bounds = [bound for bound in (smallest, largest) if bound is not None]
    if not call.is_changeable or not all(is_amount(bound) for bound in bounds):
        return invalid(bool(bounds), "QR-06" if smallest is None else "QR-08")
    refusals = invalid(bool(largest) and largest <= amount, "QR-07", "LIM-05")
    return refusals + invalid(0 < amount <= (smallest or 0), "QR-09", "LIM-05")


def create_code(shop: Shop, call: CreateCode) -> Outcomes:
    """Create a QR request (END-18, QR-03, QR-12, QR-15)."""
    refusals = code_refusals(call)
    if refusals:
        return refuse(shop, *refusals)
    expires, bounds = after(shop.now, call.expires_after or QR_LASTS), (call.smallest, call.largest)
    code = Code(call.amount or 0, call.is_changeable, *bounds, call.is_one_off, expires)
    made = replace(shop, codes=(*shop.codes, code))
    return (allow(201, made, accepted=code_rules(call)),)


def code_rules(call: CreateCode) -> tuple[str, ...]:
    """Return the rules that a refusal of a QR request would violate, the closest first."""
    given = {
        ("QR-09", "LIM-05"): call.smallest is not None,
        ("QR-07", "LIM-05"): call.largest is not None,
        ("QR-20", "LIM-03"): call.size != CreateCode.size,
        ("QR-04",): call.is_changeable,
    }
    return next((rules for rules, is_given in given.items() if is_given), ("END-18",))
