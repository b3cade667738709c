"""The calls of merchants and actions of customers to attempt in a state: both sides of every bound."""

from collections.abc import Iterator
from typing import Final

from payment_sandbox_verify.answer import Json
from payment_sandbox_verify.model.calls import (
    Act,
    Call,
    Cancel,
    Capture,
    Create,
    CreateCode,
    MakeRefund,
    Update,
    Void,
)
from payment_sandbox_verify.model.records import METHODS, Attempt, Line, Order, Shop

LINES: Final = (Line("socks", 250, 3), Line("post", 250, 1))
AMOUNT: Final = 1000
CARD: Final = "credit-card"
FULL: Final[Json] = {"lines": LINES, "customer": "test-order"}


def needs(method: str) -> Json:
    """Return the fields of a request that a method requires."""
    facts = METHODS[method].needs
    given: Json = {"issuer": "known"} if "issuer_id" in facts else {}
    given |= {"lines": LINES} if "order_lines" in facts else {}
    return given | ({"customer": "test-order"} if "customer" in facts else {})


def creations(method: str) -> list[Create]:
    """List all kinds of orders of a method, including refused ones; the method '' is the hosted page."""
    if not method:
        pages = [
            Create(AMOUNT),
            Create(AMOUNT, period="P2D", **FULL),
            Create(AMOUNT, offered=(CARD, "pay-later-a")),
        ]
        refused = [Create(0), Create(12.95), Create(AMOUNT, offered=("x",))]
        return [*pages, Create(AMOUNT, offered=("pay-later-a",)), *refused]
    facts, given = METHODS[method], needs(method)
    made = [Create(AMOUNT, method, **given), Create(AMOUNT, method, period="PT45M", **given)]
    made += [
        Create(AMOUNT, method),
        Create(1, method, currency="USD", **given),
        Create(AMOUNT, method, period="PT0S", **given),
    ]
    made += [Create(AMOUNT, method, capture_mode=mode, **given) for mode in ("manual", "delayed", "now")]
    if facts.authorizes:
        made += [
            Create(AMOUNT, method, capture_mode=mode, period="PT3H", **FULL) for mode in ("manual", "delayed")
        ]
    made += [Create(AMOUNT, method, **{**given, name: type(given[name])()}) for name in given]
    if "order_lines" in facts.needs:
        names = ("declined", "needs-time", "error")
        made += [Create(AMOUNT, method, lines=LINES, customer=name) for name in names]
        made += [Create(amount, method, **FULL) for amount in (66601, 66602, 66603)]
    made += [Create(AMOUNT, method, issuer="unknown")] if "issuer" in given else []
    return [*made, *_of_flows(method)]


def _of_flows(method: str) -> list[Create]:
    made: list[Create] = []
    if method == CARD:
        made += [Create(70_000, CARD)]  # enough for a refund that fails
        made += [Create(AMOUNT, CARD, flow=flow) for flow in ("first one-click", "first recurring", "second")]
        made += [Create(AMOUNT, CARD, flow="first one-click", capture_mode="manual", lines=LINES)]
    return made


def stored_cards(shop: Shop) -> Iterator[Create]:
    """Yield later payments with every stored card, and with an unknown one."""
    for number in range(len(shop.cards) + 1):
        amounts = (AMOUNT, AMOUNT + 1, 66604)
        yield from (Create(amount, CARD, flow="one-click", card=number, cvc="123") for amount in amounts)
        yield from (
            Create(amount, CARD, flow="recurring", card=number) for amount in (AMOUNT, AMOUNT + 1, AMOUNT - 1)
        )
        yield Create(AMOUNT, CARD, flow="one-click", card=number)
        yield Create(AMOUNT, CARD, card=number)


def codes() -> list[CreateCode]:
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


def sizes(whole: int) -> list[int]:
    """List the amounts to attempt: 1, half, all, and one too many."""
    return sorted({1, max(whole // 2, 1), max(whole, 1), whole + 1})


def about_money(order: Order, number: int, index: int, attempt: Attempt) -> Iterator[Call]:
    """Yield captures and voids of an attempt, by amount, by lines and in full."""
    if not METHODS[attempt.method].authorizes:
        yield Capture(number, index, amount=1)
        return
    rest = attempt.authorization.rest if attempt.authorization else attempt.amount
    yield Capture(number, index)
    yield Capture(number, index, amount=1, if_match="stale")
    yield Capture(number, index, amount=max(rest // 2, 1), if_match="current")
    yield from (Capture(number, index, amount=amount) for amount in sizes(rest))
    yield from (Void(number, index, amount=amount) for amount in sizes(rest))
    yield Void(number, index, amount=1, if_match="stale")
    if order.lines:
        yield Capture(number, index, lines=(("socks", 1),), if_match="stale")
        all_lines = tuple((line.id, line.quantity) for line in order.lines)
        one, other = (("socks", 1),), (("post", 1),)
        for wanted in (one, other, (("socks", 2),), all_lines, (("socks", 4),), (("hats", 1),)):
            yield Capture(number, index, lines=wanted)
            yield Void(number, index, lines=wanted)


def about_refunds(order: Order, number: int) -> Iterator[Call]:
    """Yield refunds by amount, by lines and in full."""
    if len(order.refunds) < 3:
        yield MakeRefund(number)
        yield MakeRefund(number, amount=1, if_match="stale")
        yield from (MakeRefund(number, amount=amount) for amount in sizes(order.refundable))
        if order.lines:
            yield from (MakeRefund(number, lines=((line.id, 1),)) for line in order.lines)
            yield MakeRefund(number, lines=(("socks", 4),))
        if order.refundable >= 66605:
            yield MakeRefund(number, amount=66605)


def about_order(shop: Shop, number: int) -> list[Call]:
    """List the calls of a merchant about an order, and the actions of its customer."""
    order = shop.orders[number]
    tried: list[Call] = [Act(number, "customer", action) for action in ("visit", "pay", "cancel")]
    tried += [Cancel(number), Cancel(number, if_match="stale"), Update(number, description="changed")]
    tried += [Update(number, amount=order.amount + 1), Update(number, description="x", if_match="current")]
    tried += [Update(number, description="x", if_match="stale"), Update(number, amount=order.amount)]
    for index, attempt in enumerate(order.attempts):
        tried += about_money(order, number, index, attempt)
    return [*tried, *about_refunds(order, number)]
