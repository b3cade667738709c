"""The calls and events to try in each state, with values on both sides of each limit."""

from collections.abc import Iterator
from typing import Final

from tests.model.answers import Json
from tests.model.specification.calls import (
    Act,
    Advance,
    Call,
    Cancel,
    Capture,
    Create,
    CreateCode,
    CreateRefund,
    Scan,
    SetReachability,
    Update,
    Void,
)
from tests.model.specification.changes import due_times
from tests.model.specification.records import METHODS, Attempt, LineItem, Order, Shop

LINES: Final = (LineItem("socks", 250, 3), LineItem("post", 250, 1))
AMOUNT: Final = 1000
CARD: Final = "credit-card"
LINES_AND_CUSTOMER: Final[Json] = {"lines": LINES, "customer": "test-order"}


def required_fields(method: str) -> Json:
    """Return the request fields that a method requires."""
    facts = METHODS[method].needs
    fields: Json = {"issuer": "known"} if "issuer_id" in facts else {}
    fields |= {"lines": LINES} if "order_lines" in facts else {}
    return fields | ({"customer": "test-order"} if "customer" in facts else {})


def choose_transfer(number: int, credit: int | None) -> Act:
    """Return the choice of a transfer on the hosted page, whose money arrives a day after the transfer expires."""
    return Act(number, "customer", "choose", method="bank-transfer", amount=credit, arrives="P31D")


def creations(method: str) -> list[Create]:
    """List all kinds of create calls with a method, including invalid calls; '' means the hosted page."""
    if not method:
        offers = ((CARD, "pay-later-a"), ("x",), ("pay-later-a",))
        hosted = [
            Create(AMOUNT),
            Create(AMOUNT, period="P2D", **LINES_AND_CUSTOMER),
            Create(0),
            Create(12.95),
        ]
        return hosted + [Create(AMOUNT, offered=offered) for offered in offers]
    facts, fields = METHODS[method], required_fields(method)
    orders = [Create(AMOUNT, method), Create(1, method, currency="USD", **fields)]
    orders += [Create(AMOUNT, method, period=period, **fields) for period in ("", "PT45M", "PT0S")]
    orders += [Create(AMOUNT, method, capture_mode=mode, **fields) for mode in ("manual", "delayed", "now")]
    orders += [Create(AMOUNT, method, **{**fields, name: type(fields[name])()}) for name in fields]
    if facts.authorizes:
        long = {"period": "PT3H", **LINES_AND_CUSTOMER}
        orders += [Create(AMOUNT, method, capture_mode=mode, **long) for mode in ("manual", "delayed")]
    if "order_lines" in facts.needs:
        names = ("declined", "needs-time", "error")
        orders += [Create(AMOUNT, method, lines=LINES, customer=name) for name in names]
        orders += [Create(amount, method, **LINES_AND_CUSTOMER) for amount in (66601, 66602, 66603)]
    if "issuer" in fields:
        orders += [Create(AMOUNT, method, issuer="unknown")]
    if method == CARD:
        flows = ("first one-click", "first recurring", "second")
        orders += [Create(70_000, CARD)]  # large enough for a refund that fails
        orders += [Create(AMOUNT, CARD, flow=flow) for flow in flows]
        orders += [Create(AMOUNT, CARD, flow="first one-click", capture_mode="manual", lines=LINES)]
    return orders


def stored_card_payments(shop: Shop) -> Iterator[Create]:
    """Yield later payments with every stored card, and with an unknown card."""
    for number in range(len(shop.cards) + 1):
        for amount in (AMOUNT, AMOUNT + 1, 66604):
            yield Create(amount, CARD, flow="one-click", card=number, cvc="123")
        for amount in (AMOUNT, AMOUNT + 1, AMOUNT - 1):
            yield Create(amount, CARD, flow="recurring", card=number)
        yield Create(AMOUNT, CARD, flow="one-click", card=number)
        yield Create(AMOUNT, CARD, card=number)


def code_creations() -> list[CreateCode]:
    """List QR requests at and beyond their bounds."""
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


def amounts_around(whole: int) -> list[int]:
    """List the amounts to try: one cent, half, all, and one cent too many."""
    return sorted({1, max(whole // 2, 1), max(whole, 1), whole + 1})


def authorization_calls(order: Order, number: int, index: int, attempt: Attempt) -> Iterator[Call]:
    """Yield captures and voids of an attempt, by amount, by lines and in full."""
    if not METHODS[attempt.method].authorizes:
        yield Capture(number, index, amount=1)
        return
    remaining = attempt.authorization.remaining if attempt.authorization else attempt.amount
    yield Capture(number, index)
    yield Capture(number, index, amount=1, if_match="stale")
    yield Capture(number, index, amount=max(remaining // 2, 1), if_match="current")
    yield from (Capture(number, index, amount=amount) for amount in amounts_around(remaining))
    yield from (Void(number, index, amount=amount) for amount in amounts_around(remaining))
    yield Void(number, index, amount=1, if_match="stale")
    if order.lines:
        yield Capture(number, index, lines=(("socks", 1),), if_match="stale")
        all_lines = tuple((line.id, line.quantity) for line in order.lines)
        one, other = (("socks", 1),), (("post", 1),)
        for lines in (one, other, (("socks", 2),), all_lines, (("socks", 4),), (("hats", 1),)):
            yield Capture(number, index, lines=lines)
            yield Void(number, index, lines=lines)


def refund_calls(order: Order, number: int) -> Iterator[Call]:
    """Yield refunds by amount, by lines and in full."""
    if len(order.refunds) < 3:
        yield CreateRefund(number)
        yield CreateRefund(number, amount=1, if_match="stale")
        yield from (CreateRefund(number, amount=amount) for amount in amounts_around(order.refundable))
        if order.lines:
            yield from (CreateRefund(number, lines=((line.id, 1),)) for line in order.lines)
            yield from (CreateRefund(number, lines=(("socks", quantity),)) for quantity in (2, 4))
            yield from (CreateRefund(number, amount=cents, lines=(("socks", 1),)) for cents in (249, 300))
        if order.refundable >= 66605:
            yield CreateRefund(number, amount=66605)


def order_calls(shop: Shop, number: int) -> list[Call]:
    """List the merchant's calls on an order and the customer's actions."""
    order = shop.orders[number]
    calls: list[Call] = [Act(number, "customer", action) for action in ("visit", "pay", "cancel")]
    calls += [Cancel(number), Cancel(number, if_match="stale"), Update(number, description="changed")]
    calls += [Update(number, amount=order.amount + 1), Update(number, description="x", if_match="current")]
    calls += [Update(number, description="x", if_match="stale"), Update(number, amount=order.amount)]
    for index, attempt in enumerate(order.attempts):
        calls += authorization_calls(order, number, index, attempt)
    return [*calls, *refund_calls(order, number)]


def acts_on_order(order: Order, number: int) -> Iterator[Call]:
    """Yield the acts of customers, banks, screenings and processors on an order."""
    yield Act(number, "customer", "fail")
    if order.is_hosted and len(order.attempts) < 4:
        yield from (Act(number, "customer", "choose", method=method) for method in METHODS)
    methods = {attempt.method for attempt in order.attempts}
    if CARD in methods:
        yield Act(number, "customer", "pay", card="declined")
    if "bank-transfer" in methods:
        yield from (Act(number, "bank", "credit", amount=amount) for amount in (1, AMOUNT // 2, AMOUNT + 500))
        yield Act(number, "bank", "credit")
        if len(order.attempts) > 1:
            yield Act(number, "bank", "credit", attempt=0)
            yield Act(number, "bank", "credit", amount=AMOUNT // 2, attempt=len(order.attempts) - 2)
    if "pay-later-a" in methods:
        yield from (Act(number, "screening", action) for action in ("approve", "decline", "error"))
    if any(attempt.flow == "recurring" for attempt in order.attempts):
        yield from (Act(number, "processor", action) for action in ("settle", "fail"))
    for index, refund in enumerate(order.refunds):
        if refund.fails_at:
            yield Act(number, "processor", "settle", refund=index)
            yield Act(number, "processor", "fail", refund=index)


def calls_on_order(shop: Shop, number: int) -> list[Call]:
    """Return all calls and acts on an order."""
    return [*acts_on_order(shop.orders[number], number), *order_calls(shop, number)]


def advances_to_deadlines(shop: Shop) -> list[Call]:
    """Return advances to just before and at the next deadlines, and a change of the shop's reachability."""
    due = due_times(shop)
    expiries = [code.expires for code in shop.codes if code.expires > shop.now]
    seconds = {int((moment - shop.now).total_seconds()) for moment in (due[:1] + due[-1:] + expiries[:1])}
    advances: list[Call] = [SetReachability(not shop.is_reachable)]
    for second in sorted(seconds):
        advances += [Advance(f"PT{value}S") for value in (second, second - 1) if value > 0]
    if shop.cards and not due:
        advances.append(Advance("P1Y"))
    return advances


def scans(shop: Shop) -> Iterator[Scan]:
    """Yield scans of every code, at and beyond the bounds of its amount."""
    for number, code in enumerate(shop.codes):
        yield Scan(number)
        bounds = {code.smallest or code.amount, code.largest or code.amount}
        for amount in sorted(bounds):
            yield from (Scan(number, amount + difference) for difference in (-1, 0, 1))
