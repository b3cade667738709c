"""Call sequences that take orders through their life, with refused calls in each state."""

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
    CreateRefund,
    Outcomes,
    Update,
    Void,
)
from payment_sandbox_verify.model.records import METHODS, Method, Shop
from payment_sandbox_verify.service import MARKER
from payment_sandbox_verify.walking.alphabet import (
    AMOUNT,
    CARD,
    LINES_AND_CUSTOMER,
    code_creations,
    creations,
    order_calls,
    required_fields,
    stored_card_payments,
)

PAY_LATER: Final = "pay-later-a"
INVOICE: Final = "invoice-later-b"
TRANSFER: Final = "bank-transfer"
SHORT_PERIOD: Final = "PT8S"
AFTER_SHORT_PERIOD: Final = "PT10S"
VISIT, PAY, GIVE_UP = (Act(0, "customer", action) for action in ("visit", "pay", "cancel"))
ONE_SOCK: Final = (("socks", 1),)
TESTABLE_METHODS: Final = [name for name, facts in METHODS.items() if facts.has_page and facts.is_testable]


class SequenceStep(NamedTuple):
    """A call, and whether the service should refuse it; reads only follow accepted calls."""

    call: Call
    is_refused: bool = False


class CallSequence(NamedTuple):
    """A sequence of calls on new orders; ``is_costly`` means that it creates invoices or moves money."""

    name: str
    steps: tuple[SequenceStep, ...]
    rules: tuple[str, ...]
    is_costly: bool


def _accepted_calls() -> Iterator[tuple[str, list[Call]]]:
    """Yield each sequence's name and accepted calls."""
    page = Create(AMOUNT, period="P2D", **LINES_AND_CUSTOMER)
    new_amount = Update(0, amount=AMOUNT + 1)
    yield (
        "a hosted order",
        [page, Update(0, description="changed"), new_amount, Cancel(0, if_match="current")],
    )
    yield "a hosted order with a choice", [Create(AMOUNT, offered=(CARD, PAY_LATER)), VISIT, Cancel(0)]
    for method in [name for name in TESTABLE_METHODS if not required_fields(name)]:
        chosen = Act(0, "customer", "choose", method=method)
        yield f"{method} on the hosted page", [Create(AMOUNT), chosen, Cancel(0)]
    yield "a payment on the hosted page", [page, Act(0, "customer", "choose", method=CARD), PAY]
    for method in TESTABLE_METHODS:
        order = Create(AMOUNT, method, period="PT45M", **required_fields(method))
        yield method, [order, new_amount, VISIT, Update(0, description="changed"), Cancel(0)]
        yield f"{method} given up", [Create(AMOUNT, method, **required_fields(method)), GIVE_UP]
        if not METHODS[method].screenings:
            parts = [CreateRefund(0, amount=1), CreateRefund(0, amount=500), CreateRefund(0)]
            yield f"{method} paid", [Create(AMOUNT, method, **required_fields(method)), PAY, *parts]
    yield TRANSFER, [Create(AMOUNT, TRANSFER), new_amount, Update(0, description="changed"), Cancel(0)]
    yield from _authorization_sequences()
    yield from _invoice_sequences()
    yield from _card_sequences()
    requests: list[Call] = [code for code in code_creations() if code.size == CreateCode.size]
    yield "QR requests", requests
    yield "expiries", _expiry_calls()


def _authorization_sequences() -> Iterator[tuple[str, list[Call]]]:
    """Yield sequences with captures and voids of authorizations."""
    for method in (CARD, PAY_LATER):
        authorized = Create(AMOUNT, method, capture_mode="manual", **LINES_AND_CUSTOMER)
        by_lines = [Capture(0, 0, lines=ONE_SOCK, if_match="current"), Void(0, 0, lines=ONE_SOCK)]
        yield f"{method} by lines", [authorized, PAY, *by_lines, Capture(0, 0), CreateRefund(0, amount=250)]
        parts = [
            Capture(0, 0, amount=400),
            Void(0, 0, amount=1),
            Capture(0, 0, amount=1),
            Void(0, 0, amount=598),
        ]
        yield f"{method} by amount", [authorized, PAY, *parts, CreateRefund(0)]
        delayed = replace(authorized, capture_mode="delayed")
        yield f"{method}, delayed", [delayed, PAY, Void(0, 0, amount=250), Void(0, 0, amount=750)]
    yield "a cancelled authorization", [Create(AMOUNT, CARD, capture_mode="manual"), PAY, Cancel(0)]


def _invoice_sequences() -> Iterator[tuple[str, list[Call]]]:
    """Yield sequences with all kinds of captures, voids, refunds and cancellations of invoices."""
    order = Create(AMOUNT, INVOICE, **LINES_AND_CUSTOMER)
    refunds = [CreateRefund(0, lines=ONE_SOCK), CreateRefund(0, lines=(("post", 1),))]
    yield "an invoice", [order, Update(0, description="changed"), Cancel(0, if_match="current")]
    yield "an invoice in full", [order, Capture(0, 0), *refunds, CreateRefund(0, lines=(("socks", 2),))]
    two = Capture(0, 0, lines=(("socks", 2),))
    yield "an invoice by lines", [order, Capture(0, 0, lines=ONE_SOCK), two, *refunds[:1], Capture(0, 0)]
    half = Capture(0, 0, amount=500, if_match="current")
    yield "an invoice by amount", [order, Capture(0, 0, amount=1), half, Capture(0, 0, amount=499)]
    voids = [Void(0, 0, lines=ONE_SOCK), Void(0, 0, amount=250)]
    yield "an invoice voided", [order, *voids, Void(0, 0, amount=500)]
    yield "an invoice voided in part", [order, *voids, Capture(0, 0, lines=ONE_SOCK), Void(0, 0, amount=250)]
    yield "an invoice voided by all lines", [order, Void(0, 0, lines=(("socks", 3), ("post", 1)))]


def _card_sequences() -> Iterator[tuple[str, list[Call]]]:
    """Yield sequences with stored cards."""
    one_click = [Create(AMOUNT + more, CARD, flow="one-click", card=0, cvc="123") for more in (750, 0, -999)]
    yield (
        "one-click",
        [Create(AMOUNT, CARD, flow="first one-click"), PAY, *one_click, CreateRefund(1, amount=750)],
    )
    recurring = Create(AMOUNT, CARD, flow="recurring", card=0)
    yield "recurring", [Create(AMOUNT, CARD, flow="first recurring"), PAY, recurring]


def _expiry_calls() -> list[Call]:
    """List calls that lead to an expired hosted page, expired authorizations and a delayed capture."""
    delayed = Create(AMOUNT, CARD, capture_mode="delayed", period=SHORT_PERIOD)
    invoice = Create(AMOUNT, INVOICE, period=SHORT_PERIOD, **LINES_AND_CUSTOMER)
    calls: list[Call] = [
        Create(AMOUNT, period=SHORT_PERIOD),
        delayed,
        replace(PAY, order=1),
        Void(1, 0, amount=250),
    ]
    calls += [invoice, Capture(2, 0, amount=250), invoice, Create(AMOUNT, CARD, period=SHORT_PERIOD)]
    return [
        *calls,
        Advance(AFTER_SHORT_PERIOD),
        Capture(2, 0),
        Void(2, 0, amount=1),
        Capture(3, 0),
        Cancel(0),
    ]


@cache
def call_sequences() -> list[CallSequence]:
    """Return all sequences, with one refused call of each kind in each state."""
    seen: set[tuple[object, ...]] = set()
    refused = [SequenceStep(call, is_refused=True) for call in _refused_creations()]
    refused_sequences = [
        _create_sequence("refused orders", [each for each in refused if not _is_costly(each.call)])
    ]
    refused_sequences.append(
        _create_sequence("refused invoices", [each for each in refused if _is_costly(each.call)])
    )
    return [
        *refused_sequences,
        *(_create_sequence(name, list(_add_refused_calls(calls, seen))) for name, calls in _accepted_calls()),
    ]


def _refused_creations() -> Iterator[Call]:
    """Yield the create calls that both test and live mode refuse; other sequences cover amounts."""
    for method in ("", *METHODS):
        for call in creations(method):
            test, live = (step(Shop(mode=mode), call) for mode in ("test", "live"))
            if len(test) == 1 and len(live) == 1 and test[0].status >= 400 and call.amount == AMOUNT:
                yield call


def _create_sequence(name: str, steps: list[SequenceStep]) -> CallSequence:
    rules: dict[str, None] = {}
    shop = Shop()
    for each in steps:
        outcome = step(shop, each.call)[0]
        rules |= dict.fromkeys(outcome.rules)
        shop = outcome.shop
    return CallSequence(name, tuple(steps), tuple(rules), any(_is_costly(each.call) for each in steps))


def _is_costly(call: Call) -> bool:
    """Whether a call creates an invoice or moves money, or would if the service failed to refuse it."""
    facts = METHODS.get(getattr(call, "method", ""), Method(""))
    is_charge = isinstance(call, Create) and bool(facts.screenings or call.card is not None)
    return is_charge or (isinstance(call, Act) and (call.action == "pay" or bool(facts.screenings)))


def _add_refused_calls(calls: Iterable[Call], seen: set[tuple[object, ...]]) -> Iterator[SequenceStep]:
    shop = Shop()
    for accepted in calls:
        call = replace(accepted, description=MARKER) if isinstance(accepted, Create) else accepted
        outcomes = step(shop, call)
        is_refused = all(outcome.status >= 400 for outcome in outcomes)
        yield SequenceStep(call, is_refused)
        shop = outcomes[0].shop
        if not is_refused:
            yield from (SequenceStep(refused, is_refused=True) for refused in _refused_calls(shop, seen))


def _refused_calls(shop: Shop, seen: set[tuple[object, ...]]) -> Iterator[Call]:
    """Yield the calls refused in this state, unless another sequence covers the same kind."""
    candidates: list[Call] = order_calls(shop, len(shop.orders) - 1) if len(shop.orders) == 1 else []
    for call in [*candidates, *(stored_card_payments(shop) if len(shop.orders) == 1 and shop.cards else ())]:
        outcomes = step(shop, call)
        is_refused = bool(outcomes) and all(each.status >= 400 for each in outcomes)
        key = _call_kind(shop, call, outcomes)
        if is_refused and not isinstance(call, Act | CreateCode) and key not in seen:
            seen.add(key)
            yield call


def _call_kind(shop: Shop, call: Call, outcomes: Outcomes) -> tuple[object, ...]:
    """Return the kind of a call and of the state; the sequences make one call of each such kind."""
    order = shop.orders[-1]
    attempts = [
        (a.status, a.facts.authorizes, a.facts.is_invoice, a.captured > 0) for a in order.attempts[-1:]
    ]
    answers = tuple((each.status, each.type, each.rules) for each in outcomes)
    state = () if getattr(call, "if_match", "") else (order.status, *attempts)
    is_small = isinstance(call, Create) and call.amount < AMOUNT
    return type(call), getattr(call, "style", ""), answers, state, is_small
