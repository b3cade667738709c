"""Bounded exhaustive exploration: every sequence of calls and events up to a length, equal states merged."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.model.driver import CheckedCaller
from tests.model.judge import FROM_START, WEBHOOK_URL, ControlJudge, StoredSnapshot
from tests.model.letters import (
    AMOUNT,
    CARD,
    LINES,
    LINES_AND_CUSTOMER,
    advances_to_deadlines,
    calls_on_order,
    choose_transfer,
    code_creations,
    creations,
    required_fields,
    scans,
    stored_card_payments,
)
from tests.model.specification import step
from tests.model.specification.calls import (
    Act,
    Advance,
    Call,
    Cancel,
    Capture,
    Create,
    CreateRefund,
    Scan,
    SetReachability,
    Void,
)
from tests.model.specification.records import Order, Shop

OWN_URL: Final = "http://127.0.0.1:9/own"
NextCalls = Callable[[Shop], Iterator[Call]]


def relevant_state(shop: Shop) -> Shop:
    """Return a state without finished webhooks and descriptions, which do not influence later calls."""

    def without_finished(order: Order) -> Order:
        pending = tuple(webhook for webhook in order.webhooks if webhook.state == "pending")
        return replace(order, webhooks=pending, description="")

    return replace(shop, orders=tuple(without_finished(order) for order in shop.orders))


def next_calls(shop: Shop) -> Iterator[Call]:
    """Yield all calls on the first order, advances to deadlines, and scans of the codes."""
    if shop.orders:
        yield from calls_on_order(shop, 0)
    yield from (
        call for call in advances_to_deadlines(shop) if not isinstance(call, SetReachability) or shop.orders
    )
    yield from scans(shop)
    if shop.cards and len(shop.orders) == 1:
        yield from stored_card_payments(shop)


def sample(candidates: Sequence[Call], calls_max: int, number: int) -> list[Call]:
    """Sample at most ``calls_max`` calls of a state evenly; ``number`` shifts the sample."""
    count, calls_max = len(candidates), min(calls_max, len(candidates))
    return [candidates[(number + index * count // calls_max) % count] for index in range(calls_max)]


def explore(judge: ControlJudge, first: Sequence[Call], length: int, transitions_max: int) -> int:
    """Explore every sequence that begins with one of these calls, up to a length and a number of transitions.

    The number of transitions is divided among the levels, and among the states of a level; return how many it is.
    """
    transitions = 0
    level: list[tuple[StoredSnapshot, NextCalls]] = [(judge.save(), lambda _: iter(first))]
    visited = {relevant_state(judge.shop)}
    for depth in range(length):
        next_level: list[tuple[StoredSnapshot, NextCalls]] = []
        share = (transitions_max - transitions) // (length - depth) + transitions
        for number, (saved, calls_of) in enumerate(level):
            calls = [call for call in calls_of(saved.shop) if is_worthwhile(saved.shop, call)]
            judge.restore(saved)
            for call in sample(calls, -(-(share - transitions) // (len(level) - number)), number):
                if judge.shop != saved.shop or judge.driver.ids != saved.ids:
                    judge.restore(saved)
                judge.make_call(call)
                transitions += 1
                if relevant_state(judge.shop) not in visited:
                    visited.add(relevant_state(judge.shop))
                    next_level.append((judge.save(), next_calls))
        level = next_level
    return transitions


def is_worthwhile(shop: Shop, call: Call) -> bool:
    """Return whether the model specifies a call, and the call is more than an advance in an empty project."""
    is_waiting = isinstance(call, Advance) and not shop.orders and not shop.codes
    return bool(step(shop, call)) and not is_waiting


def explore_method(
    server: PaymentSandboxServer, method: str, mode: str, length: int, transitions_max: int
) -> int:
    """Explore the orders of a method in a new project."""
    fields = required_fields(method) if method else LINES_AND_CUSTOMER
    first = [*creations(method), Create(AMOUNT, method, webhook_url=OWN_URL, **fields)]
    with server.project(clock=FROM_START, webhook_url=WEBHOOK_URL, mode=mode) as project:
        judge = ControlJudge(CheckedCaller(project), Shop(mode=mode))
        return explore(judge, first, length, transitions_max)


VISIT, PAY, FAIL = (Act(0, "customer", action) for action in ("visit", "pay", "fail"))
MANUAL: Final = Create(AMOUNT, CARD, capture_mode="manual", lines=LINES)
HOSTED: Final = Create(AMOUNT, **LINES_AND_CUSTOMER)
LATER: Final = Create(AMOUNT, "pay-later-a", **LINES_AND_CUSTOMER)
INVOICE: Final = Create(AMOUNT, "invoice-later-b", **LINES_AND_CUSTOMER)
TRANSFER: Final = Create(AMOUNT, "bank-transfer")
A_SOCK, TWO_SOCKS, POSTAGE = (("socks", 1),), (("socks", 2),), (("post", 1),)


def choose(method: str) -> Act:
    """Return the choice of a method on the hosted page."""
    return Act(0, "customer", "choose", method=method)


def credit(amount: int | None = None) -> Act:
    """Return the credit of a transfer."""
    return Act(0, "bank", "credit", amount=amount)


def late_transfer(amount: int | None) -> tuple[Call, ...]:
    """Return calls until a minute before a credit arrives for an expired transfer."""
    created = Create(AMOUNT, period="P90D", **LINES_AND_CUSTOMER)
    return created, choose_transfer(0, amount), Advance("P30DT23H59M")


START_STATES: Final[dict[str, tuple[Call, ...]]] = {
    "a QR code of 5 to 15 euros": (code_creations()[2],),
    "a late transfer beside an open attempt": (*late_transfer(None), choose("wallet-web")),
    "too little money of a late transfer beside another payment": (
        *(*late_transfer(AMOUNT // 2), choose(CARD), Advance("PT1M"), PAY),
    ),
    "too much money of a late transfer beside an authorization": (
        *(*late_transfer(AMOUNT + 500), choose("pay-later-a"), PAY),
    ),
    "a late transfer beside a partly captured invoice": (
        *(*late_transfer(None), choose("invoice-later-b"), Capture(0, 1, amount=300)),
    ),
    "half of the money of a late transfer beside a partly captured authorization": (
        *(*late_transfer(AMOUNT // 2), choose("pay-later-a"), PAY, Capture(0, 1, amount=600)),
    ),
    "a transfer given up for an open attempt": (HOSTED, choose("bank-transfer"), choose(CARD)),
    "a transfer given up for another payment": (HOSTED, choose("bank-transfer"), choose(CARD), PAY),
    "a transfer beside a paid card": (HOSTED, choose("bank-transfer"), choose(CARD), PAY, credit()),
    "a transfer beside an invoice with a captured line": (
        *(HOSTED, choose("bank-transfer"), choose("invoice-later-b")),
        *(Capture(0, 1, lines=TWO_SOCKS), credit()),
    ),
    "half of the money of a transfer that was given up": (
        *(HOSTED, choose("bank-transfer"), choose(CARD), credit(AMOUNT // 2)),
    ),
    "a cancelled transfer": (TRANSFER, Cancel(0)),
    "a cancelled transfer with half of its money": (TRANSFER, credit(AMOUNT // 2), Cancel(0)),
    "a paid transfer": (TRANSFER, credit()),
    "a transfer whose money arrives after a cancellation": (
        *(Create(AMOUNT), choose_transfer(0, None), Cancel(0)),
    ),
    "a payment with two of three socks refunded": (
        *(Create(AMOUNT, "wallet-web", lines=LINES), PAY, CreateRefund(0, lines=TWO_SOCKS)),
    ),
    "a half-paid transfer": (TRANSFER, credit(500)),
    "a transfer while the shop is down": (SetReachability(is_reachable=False), TRANSFER),
    "a partly captured invoice": (INVOICE, Capture(0, 0, amount=300)),
    "an authorization a second before the order's expiry": (MANUAL, Advance("PT29M59S"), PAY),
    "a refund that will fail": (
        *(Create(70_000, CARD), PAY, CreateRefund(0, amount=66605)),
        Act(0, "processor", "fail", refund=0),
    ),
    "a recurring series a second before its year ends": (
        *(Create(AMOUNT, CARD, flow="first recurring"), PAY, Advance("P364DT23H59M59S")),
    ),
    "a recurring series a year later": (
        *(Create(AMOUNT, CARD, flow="first recurring"), PAY, Advance("P1Y")),
    ),
    "a card stored for one-click payments a year later": (
        *(Create(AMOUNT, CARD, flow="first one-click"), PAY, Advance("P1Y")),
    ),
    "a delayed authorization": (replace(LATER, capture_mode="delayed"), PAY),
    "a second attempt on the hosted page": (HOSTED, choose(CARD), FAIL, choose("bank-transfer")),
    "a hosted page with a failed attempt": (HOSTED, choose(CARD), FAIL),
    "an authorization with a captured line": (LATER, PAY, Capture(0, 0, lines=A_SOCK)),
    "an authorization with a captured and a voided line": (
        *(MANUAL, PAY, Capture(0, 0, lines=A_SOCK), Void(0, 0, lines=POSTAGE)),
    ),
    "a voided line of an authorization captured by amount": (
        *(LATER, PAY, Void(0, 0, lines=POSTAGE), Capture(0, 0, amount=750)),
    ),
    "a refunded line of an authorization captured by amount": (
        *(INVOICE, Capture(0, 0, amount=500)),
        *(CreateRefund(0, lines=lines) for lines in (A_SOCK, POSTAGE)),
    ),
    "an expired authorization with a capture": (MANUAL, PAY, Capture(0, 0, amount=300), Advance("PT30M")),
    "a delayed authorization 20 minutes after the order's creation": (
        *(replace(MANUAL, capture_mode="delayed"), Advance("PT20M"), PAY, Void(0, 0, amount=300)),
    ),
    "a screening that needs time": (replace(LATER, customer="needs-time"),),
    "an expired transfer": (TRANSFER, Advance("P30D")),
    "a partly refunded payment": (*(Create(AMOUNT, CARD, lines=LINES), PAY, CreateRefund(0, amount=400)),),
    "a scanned QR code": (code_creations()[0], Scan(0)),
    "a QR code for many scans a second before it expires": (code_creations()[1], Advance("P364DT23H59M59S")),
    "an order with its own webhook URL": (Create(AMOUNT, "bank-redirect-de", webhook_url=OWN_URL), VISIT),
}
"""Start states of further explorations, which random walks rarely reach."""


def explore_from(server: PaymentSandboxServer, name: str, length: int, transitions_max: int) -> int:
    """Explore every sequence from a start state, in mode ``live``."""
    with server.project(clock=FROM_START, webhook_url=WEBHOOK_URL, mode="live") as project:
        judge = ControlJudge(CheckedCaller(project), Shop(mode="live"))
        for call in START_STATES[name]:
            judge.make_call(call)
        return explore(judge, [*next_calls(judge.shop)], length, transitions_max)
