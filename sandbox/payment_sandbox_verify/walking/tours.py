"""The tours: sequences of calls through the life of an order, with refused calls in each state."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import Final, NamedTuple

from payment_sandbox_verify.model import step
from payment_sandbox_verify.model.calls import (
    Act,
    Advance,
    Call,
    Cancel,
    Capture,
    Create,
    CreateCode,
    MakeRefund,
    Outcomes,
    Update,
    Void,
)
from payment_sandbox_verify.model.records import METHODS, Method, Shop
from payment_sandbox_verify.service import MARK
from payment_sandbox_verify.walking.alphabet import (
    AMOUNT,
    CARD,
    FULL,
    about_order,
    codes,
    creations,
    needs,
    stored_cards,
)

PAY_LATER: Final = "pay-later-a"
INVOICE: Final = "invoice-later-b"
TRANSFER: Final = "bank-transfer"
SHORT: Final = "PT8S"
SHORT_IS_OVER: Final = "PT10S"
VISIT, PAY, GIVE_UP = (Act(0, "customer", action) for action in ("visit", "pay", "cancel"))
ONE_SOCK: Final = (("socks", 1),)
TESTABLE: Final = [name for name, facts in METHODS.items() if facts.has_page and facts.is_testable]


class TourStep(NamedTuple):
    """A call, and whether the service should refuse it; reads only follow accepted calls."""

    call: Call
    is_refused: bool = False


class Tour(NamedTuple):
    """A sequence of calls with new orders; ``spends`` if it creates invoices or moves money."""

    name: str
    steps: tuple[TourStep, ...]
    rules: tuple[str, ...]
    spends: bool


def _moves() -> Iterator[tuple[str, list[Call]]]:
    """Yield the name and the accepted calls of each tour."""
    page = Create(AMOUNT, period="P2D", **FULL)
    more = Update(0, amount=AMOUNT + 1)
    yield "a hosted order", [page, Update(0, description="changed"), more, Cancel(0, if_match="current")]
    yield "a hosted order with a choice", [Create(AMOUNT, offered=(CARD, PAY_LATER)), VISIT, Cancel(0)]
    for method in [name for name in TESTABLE if not needs(name)]:
        chosen = Act(0, "customer", "choose", method=method)
        yield f"{method} on the hosted page", [Create(AMOUNT), chosen, Cancel(0)]
    yield "a payment on the hosted page", [page, Act(0, "customer", "choose", method=CARD), PAY]
    for method in TESTABLE:
        made = Create(AMOUNT, method, period="PT45M", **needs(method))
        yield method, [made, more, VISIT, Update(0, description="changed"), Cancel(0)]
        yield f"{method} given up", [Create(AMOUNT, method, **needs(method)), GIVE_UP]
        if not METHODS[method].screenings:
            parts = [MakeRefund(0, amount=1), MakeRefund(0, amount=500), MakeRefund(0)]
            yield f"{method} paid", [Create(AMOUNT, method, **needs(method)), PAY, *parts]
    yield TRANSFER, [Create(AMOUNT, TRANSFER), more, Update(0, description="changed"), Cancel(0)]
    yield from _of_authorizations()
    yield from _of_invoices()
    yield from _of_cards()
    of_one_size: list[Call] = [code for code in codes() if code.size == CreateCode.size]
    yield "QR requests", of_one_size
    yield "expiries", _endings()


def _of_authorizations() -> Iterator[tuple[str, list[Call]]]:
    """Yield tours with captures and voids of authorizations."""
    for method in (CARD, PAY_LATER):
        held = Create(AMOUNT, method, capture_mode="manual", **FULL)
        by_lines = [Capture(0, 0, lines=ONE_SOCK, if_match="current"), Void(0, 0, lines=ONE_SOCK)]
        yield f"{method} by lines", [held, PAY, *by_lines, Capture(0, 0), MakeRefund(0, amount=250)]
        parts = [
            Capture(0, 0, amount=400),
            Void(0, 0, amount=1),
            Capture(0, 0, amount=1),
            Void(0, 0, amount=598),
        ]
        yield f"{method} by amount", [held, PAY, *parts, MakeRefund(0)]
        delayed = replace(held, capture_mode="delayed")
        yield f"{method}, delayed", [delayed, PAY, Void(0, 0, amount=250), Void(0, 0, amount=750)]
    yield "a cancelled authorization", [Create(AMOUNT, CARD, capture_mode="manual"), PAY, Cancel(0)]


def _of_invoices() -> Iterator[tuple[str, list[Call]]]:
    """Yield tours with all kinds of captures, voids, refunds and cancellations of invoices."""
    made = Create(AMOUNT, INVOICE, **FULL)
    refunds = [MakeRefund(0, lines=ONE_SOCK), MakeRefund(0, lines=(("post", 1),))]
    yield "an invoice", [made, Update(0, description="changed"), Cancel(0, if_match="current")]
    yield "an invoice in full", [made, Capture(0, 0), *refunds, MakeRefund(0, lines=(("socks", 2),))]
    two = Capture(0, 0, lines=(("socks", 2),))
    yield "an invoice by lines", [made, Capture(0, 0, lines=ONE_SOCK), two, *refunds[:1], Capture(0, 0)]
    half = Capture(0, 0, amount=500, if_match="current")
    yield "an invoice by amount", [made, Capture(0, 0, amount=1), half, Capture(0, 0, amount=499)]
    voids = [Void(0, 0, lines=ONE_SOCK), Void(0, 0, amount=250)]
    yield "an invoice voided", [made, *voids, Void(0, 0, amount=500)]
    yield "an invoice voided in part", [made, *voids, Capture(0, 0, lines=ONE_SOCK), Void(0, 0, amount=250)]
    yield "an invoice voided by all lines", [made, Void(0, 0, lines=(("socks", 3), ("post", 1)))]


def _of_cards() -> Iterator[tuple[str, list[Call]]]:
    """Yield tours with stored cards."""
    once = [Create(AMOUNT + more, CARD, flow="one-click", card=0, cvc="123") for more in (750, 0, -999)]
    yield "one-click", [Create(AMOUNT, CARD, flow="first one-click"), PAY, *once, MakeRefund(1, amount=750)]
    again = Create(AMOUNT, CARD, flow="recurring", card=0)
    yield "recurring", [Create(AMOUNT, CARD, flow="first recurring"), PAY, again]


def _endings() -> list[Call]:
    """List the calls of a tour: an expired hosted page, expired authorizations and a delayed capture."""
    delayed = Create(AMOUNT, CARD, capture_mode="delayed", period=SHORT)
    invoice = Create(AMOUNT, INVOICE, period=SHORT, **FULL)
    begun: list[Call] = [Create(AMOUNT, period=SHORT), delayed, replace(PAY, order=1), Void(1, 0, amount=250)]
    begun += [invoice, Capture(2, 0, amount=250), invoice, Create(AMOUNT, CARD, period=SHORT)]
    return [*begun, Advance(SHORT_IS_OVER), Capture(2, 0), Void(2, 0, amount=1), Capture(3, 0), Cancel(0)]


@cache
def tours() -> list[Tour]:
    """All tours, with one refused call of each kind in each state."""
    seen: set[tuple[object, ...]] = set()
    refused = [TourStep(call, is_refused=True) for call in _refused_creations()]
    wrong = [_tour("refused orders", [each for each in refused if not _spends(each.call)])]
    wrong.append(_tour("refused invoices", [each for each in refused if _spends(each.call)]))
    return [*wrong, *(_tour(name, list(_with_refusals(moves, seen))) for name, moves in _moves())]


def _refused_creations() -> Iterator[Call]:
    """Yield the creations that both test and live mode refuse; other tours cover amounts."""
    for method in ("", *METHODS):
        for call in creations(method):
            test, live = (step(Shop(mode=mode), call) for mode in ("test", "live"))
            if len(test) == 1 and len(live) == 1 and test[0].status >= 400 and call.amount == AMOUNT:
                yield call


def _tour(name: str, steps: list[TourStep]) -> Tour:
    rules: dict[str, None] = {}
    shop = Shop()
    for each in steps:
        outcome = step(shop, each.call)[0]
        rules |= dict.fromkeys(outcome.rules)
        shop = outcome.shop
    return Tour(name, tuple(steps), tuple(rules), any(_spends(each.call) for each in steps))


def _spends(call: Call) -> bool:
    """Whether a call creates an invoice or moves money, or would if the service failed to refuse it."""
    facts = METHODS.get(getattr(call, "method", ""), Method(""))
    is_charge = isinstance(call, Create) and bool(facts.screenings or call.card is not None)
    return is_charge or (isinstance(call, Act) and (call.action == "pay" or bool(facts.screenings)))


def _with_refusals(moves: Iterable[Call], seen: set[tuple[object, ...]]) -> Iterator[TourStep]:
    shop = Shop()
    for move in moves:
        call = replace(move, description=MARK) if isinstance(move, Create) else move
        outcomes = step(shop, call)
        is_refused = all(outcome.status >= 400 for outcome in outcomes)
        yield TourStep(call, is_refused)
        shop = outcomes[0].shop
        if not is_refused:
            yield from (TourStep(refused, is_refused=True) for refused in _refusals(shop, seen))


def _refusals(shop: Shop, seen: set[tuple[object, ...]]) -> Iterator[Call]:
    """Yield the calls refused in this state, unless another tour covers the same kind."""
    tried: list[Call] = about_order(shop, len(shop.orders) - 1) if len(shop.orders) == 1 else []
    for call in [*tried, *(stored_cards(shop) if len(shop.orders) == 1 and shop.cards else ())]:
        outcomes = step(shop, call)
        is_refused = bool(outcomes) and all(each.status >= 400 for each in outcomes)
        key = _kind(shop, call, outcomes)
        if is_refused and not isinstance(call, Act | CreateCode) and key not in seen:
            seen.add(key)
            yield call


def _kind(shop: Shop, call: Call, outcomes: Outcomes) -> tuple[object, ...]:
    """Return the kind of a call in a kind of state; the tours make one call of each."""
    order = shop.orders[-1]
    held = [(a.status, a.facts.authorizes, a.facts.is_invoice, a.captured > 0) for a in order.attempts[-1:]]
    answers = tuple((each.status, each.type, each.rules) for each in outcomes)
    state = () if getattr(call, "if_match", "") else (order.status, *held)
    is_less = isinstance(call, Create) and call.amount < AMOUNT
    return type(call), getattr(call, "style", ""), answers, state, is_less
