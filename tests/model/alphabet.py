"""The calls and events that are worth trying in a state: small amounts, both sides of every deadline."""

from collections.abc import Iterator
from typing import Any

from payment_sandbox_verify.model.calls import (
    Act,
    Advance,
    Answer,
    Call,
    Cancel,
    Capture,
    Create,
    CreateCode,
    MakeRefund,
    Scan,
    Update,
    Void,
)
from payment_sandbox_verify.model.changes import due_times
from payment_sandbox_verify.model.records import METHODS, Attempt, Line, Order, Shop

LINES = (Line("a", 300, 2), Line("b", 400, 1))
AMOUNT = 1000
CARD = "credit-card"
OWN_URL = "http://127.0.0.1:9/own"
FULL: dict[str, Any] = {"lines": LINES, "customer": "jan"}


def needs(method: str) -> dict[str, Any]:
    """What a method needs in a request, and nothing else."""
    facts = METHODS[method].needs
    given: dict[str, Any] = {"issuer": "known"} if "issuer_id" in facts else {}
    given |= {"lines": LINES} if "order_lines" in facts else {}
    return given | ({"customer": "jan"} if "customer" in facts else {})


def creations(method: str) -> list[Create]:
    """Every kind of order of a method, also refused ones; the hosted page is the method ''."""
    if not method:
        pages = [
            Create(AMOUNT),
            Create(AMOUNT, period="P2D", **FULL),
            Create(AMOUNT, offered=(CARD, "pay-later-a")),
            Create(AMOUNT, webhook_url=OWN_URL, **FULL),
        ]
        return [
            *pages,
            Create(AMOUNT, offered=("pay-later-a",)),
            Create(0),
            Create(12.95),
            Create(AMOUNT, offered=("x",)),
        ]
    facts, given = METHODS[method], needs(method)
    made = [Create(AMOUNT, method, **given), Create(AMOUNT, method, period="PT45M", **given)]
    made += [
        Create(AMOUNT, method, webhook_url=OWN_URL, **given),
        Create(AMOUNT, method),
        Create(1, method, currency="USD", **given),
        Create(AMOUNT, method, period="PT0S", **given),
    ]
    made += [Create(AMOUNT, method, capture_mode=mode, **given) for mode in ("manual", "delayed", "now")]
    if facts.authorizes:
        made += [
            Create(AMOUNT, method, capture_mode=mode, period="PT3H", **FULL) for mode in ("manual", "delayed")
        ]
    if "order_lines" in facts.needs:
        names = ("declined", "needs-time", "error")
        made += [Create(AMOUNT, method, lines=LINES, customer=name) for name in names]
        made += [Create(amount, method, **FULL) for amount in (66601, 66602, 66603)]
    if method == CARD:
        made += [Create(70_000, CARD)]  # enough for a refund that fails
        made += [Create(AMOUNT, CARD, flow=flow) for flow in ("first one-click", "first recurring", "second")]
        made += [Create(AMOUNT, CARD, flow="first one-click", capture_mode="manual", lines=LINES)]
    if "issuer_id" in facts.needs:
        made += [Create(AMOUNT, method, issuer="unknown")]
    return made


def stored_cards(shop: Shop) -> Iterator[Create]:
    """Later payments with every stored card, and with one that is not there."""
    for number in range(len(shop.cards) + 1):
        amounts = (AMOUNT, AMOUNT + 1, 66604)
        yield from (Create(amount, CARD, flow="one-click", card=number, cvc="123") for amount in amounts)
        yield from (Create(amount, CARD, flow="recurring", card=number) for amount in (AMOUNT, AMOUNT + 1))
        yield Create(AMOUNT, CARD, flow="one-click", card=number)
        yield Create(AMOUNT, CARD, card=number)


def codes() -> list[CreateCode]:
    """QR codes at and beyond their bounds."""
    return [
        CreateCode(AMOUNT),
        CreateCode(AMOUNT, is_one_off=False, size=100),
        CreateCode(AMOUNT, is_changeable=True, smallest=500, largest=1500, is_one_off=False, size=2000),
        CreateCode(0, is_changeable=True),
        CreateCode(0),
        CreateCode(AMOUNT, size=99),
        CreateCode(AMOUNT, size=2001),
        CreateCode(AMOUNT, smallest=500),
        CreateCode(AMOUNT, largest=1500),
        CreateCode(AMOUNT, is_changeable=True, smallest=AMOUNT),
        CreateCode(AMOUNT, is_changeable=True, largest=AMOUNT),
        CreateCode(AMOUNT, is_changeable=True, smallest=AMOUNT - 1, largest=AMOUNT + 1),
    ]


def sizes(whole: int) -> list[int]:
    """The amounts 1, half, all, and one more."""
    return sorted({1, max(whole // 2, 1), max(whole, 1), whole + 1})


def about_money(order: Order, number: int, index: int, attempt: Attempt) -> Iterator[Call]:
    """Captures and voids of an attempt that authorizes, or could."""
    if not METHODS[attempt.method].authorizes:
        yield Capture(number, index, amount=1)
        return
    rest = attempt.authorization.rest if attempt.authorization else attempt.amount
    yield Capture(number, index)
    yield Capture(number, index, amount=1, if_match="stale")
    yield Capture(number, index, amount=max(rest // 2, 1), if_match="current")
    yield from (Capture(number, index, amount=amount) for amount in sizes(rest))
    yield from (Void(number, index, amount=amount) for amount in sizes(rest))
    if order.lines:
        all_lines = tuple((line.id, line.quantity) for line in order.lines)
        for wanted in ((("a", 1),), (("b", 1),), (("a", 2),), all_lines, (("a", 3),), (("x", 1),)):
            yield Capture(number, index, lines=wanted)
            yield Void(number, index, lines=wanted)


def about_refunds(order: Order, number: int) -> Iterator[Call]:
    """Refunds by amount, by lines, of all, and what the processor does with them."""
    if len(order.refunds) < 3:
        yield MakeRefund(number)
        yield MakeRefund(number, amount=1, if_match="stale")
        yield from (MakeRefund(number, amount=amount) for amount in sizes(order.refundable))
        if order.lines:
            yield from (MakeRefund(number, lines=((line.id, 1),)) for line in order.lines)
            yield MakeRefund(number, lines=(("a", 3),))
        if order.refundable >= 66605:
            yield MakeRefund(number, amount=66605)
    for index, refund in enumerate(order.refunds):
        if refund.fails:
            yield Act(number, "processor", "settle", refund=index)
            yield Act(number, "processor", "fail", refund=index)


def about_people(order: Order, number: int) -> Iterator[Call]:
    """What customers, banks, screenings and processors do."""
    for action in ("visit", "pay", "cancel", "fail"):
        yield Act(number, "customer", action)
    if order.is_hosted and len(order.attempts) < 4:
        yield from (Act(number, "customer", "choose", method=method) for method in METHODS)
    methods = {attempt.method for attempt in order.attempts}
    if CARD in methods:
        yield Act(number, "customer", "pay", card="declined")
    if "bank-transfer" in methods:
        yield from (Act(number, "bank", "credit", amount=amount) for amount in (1, AMOUNT // 2, AMOUNT + 500))
        yield Act(number, "bank", "credit")
    if "pay-later-a" in methods:
        yield from (Act(number, "screening", action) for action in ("approve", "decline", "error"))
    if any(attempt.flow == "recurring" for attempt in order.attempts):
        yield from (Act(number, "processor", action) for action in ("settle", "fail"))


def about_order(shop: Shop, number: int) -> list[Call]:
    """Everything that can be tried with an order."""
    order = shop.orders[number]
    tried: list[Call] = [*about_people(order, number)]
    tried += [Cancel(number), Cancel(number, if_match="stale"), Update(number, description="changed")]
    tried += [Update(number, amount=order.amount + 1), Update(number, description="x", if_match="current")]
    tried += [Update(number, description="x", if_match="stale"), Update(number, amount=order.amount)]
    for index, attempt in enumerate(order.attempts):
        tried += about_money(order, number, index, attempt)
    return [*tried, *about_refunds(order, number)]


def deadlines(shop: Shop) -> list[Call]:
    """Both sides of the next deadline, of the last one and of a code's; whether the shop answers webhooks."""
    due = due_times(shop)
    ends = [code.expires for code in shop.codes if code.expires > shop.now]
    seconds = {int((moment - shop.now).total_seconds()) for moment in (due[:1] + due[-1:] + ends[:1])}
    tried: list[Call] = [Answer(not shop.is_reachable)]
    for second in sorted(seconds):
        tried += [Advance(f"PT{value}S") for value in (second, second - 1) if value > 0]
    if shop.cards and not due:
        tried.append(Advance("P1Y"))
    return tried


def scans(shop: Shop) -> Iterator[Scan]:
    """Scans of every code at and beyond its bounds."""
    for number, code in enumerate(shop.codes):
        yield Scan(number)
        bounds = {code.smallest or code.amount, code.largest or code.amount}
        yield from (Scan(number, amount + more) for amount in sorted(bounds) for more in (-1, 0, 1))
