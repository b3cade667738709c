"""Bounded exhaustive exploration: every sequence of calls and events up to a length, equal states merged."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.model.books import CheckedCaller
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


@dataclass
class Exploration:
    """The results of an exploration."""

    states: int = 0
    transitions: int = 0
    unspecified_calls: int = 0


def relevant_state(shop: Shop) -> Shop:
    """Return a state without finished webhooks and descriptions, which do not influence later calls."""

    def without_finished(order: Order) -> Order:
        pending = tuple(webhook for webhook in order.webhooks if webhook.state == "pending")
        return replace(order, webhooks=pending, description="")

    return replace(shop, orders=tuple(without_finished(order) for order in shop.orders))


def with_own_url(method: str) -> Create:
    """Return the creation of an order with its own webhook URL."""
    return Create(
        AMOUNT, method, webhook_url=OWN_URL, **(required_fields(method) if method else LINES_AND_CUSTOMER)
    )


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


def explore(judge: ControlJudge, first: Sequence[Call], length: int, transitions_max: int) -> Exploration:
    """Explore every sequence that begins with one of these calls, up to a length and a number of transitions.

    The number of transitions is divided among the levels, and among the states of a level.
    """
    exploration, start = Exploration(), judge.save()
    level: list[tuple[StoredSnapshot, Callable[[Shop], Iterator[Call]]]] = [(start, lambda _: iter(first))]
    visited = {relevant_state(judge.shop)}
    for depth in range(length):
        next_level: list[tuple[StoredSnapshot, Callable[[Shop], Iterator[Call]]]] = []
        share = (transitions_max - exploration.transitions) // (length - depth) + exploration.transitions
        for number, (saved, calls_of) in enumerate(level):
            calls = [call for call in calls_of(saved.shop) if is_worthwhile(saved.shop, call)]
            judge.restore(saved)
            for call in sample(calls, -(-(share - exploration.transitions) // (len(level) - number)), number):
                if judge.shop != saved.shop or judge.driver.ids != saved.ids:
                    judge.restore(saved)
                judge.make_call(call)
                exploration.transitions += 1
                if relevant_state(judge.shop) not in visited:
                    visited.add(relevant_state(judge.shop))
                    next_level.append((judge.save(), next_calls))
        level = next_level
    exploration.states, exploration.unspecified_calls = len(visited), judge.unspecified_calls
    return exploration


def is_worthwhile(shop: Shop, call: Call) -> bool:
    """Return whether the model specifies a call, and the call is more than an advance in an empty project."""
    is_waiting = isinstance(call, Advance) and not shop.orders and not shop.codes
    return bool(step(shop, call)) and not is_waiting


def explore_method(
    server: PaymentSandboxServer, method: str, mode: str, length: int, transitions_max: int
) -> Exploration:
    """Explore the orders of a method in a new project."""
    with server.project(clock=FROM_START, webhook_url=WEBHOOK_URL, mode=mode) as project:
        return explore(
            ControlJudge(CheckedCaller(project), Shop(mode=mode)),
            [*creations(method), with_own_url(method)],
            length,
            transitions_max,
        )


def beside_late_transfer(credit: int | None, *calls: Call) -> tuple[Call, ...]:
    """Return calls on an order a minute before a credit arrives for its expired transfer."""
    created = Create(AMOUNT, period="P90D", **LINES_AND_CUSTOMER)
    return created, choose_transfer(0, credit), Advance("P30DT23H59M"), *calls


def beside_transfer(method: str, *calls: Call) -> tuple[Call, ...]:
    """Return the choice of another method after a transfer, and calls on the order."""
    transfer, other = (Act(0, "customer", "choose", method=name) for name in ("bank-transfer", method))
    return Create(AMOUNT, **LINES_AND_CUSTOMER), transfer, other, *calls


START_STATES: Final[dict[str, tuple[Call, ...]]] = {
    "a QR code of 5 to 15 euros": (code_creations()[2],),
    "a late transfer beside an open attempt": beside_late_transfer(
        None,
        Act(0, "customer", "choose", method="wallet-web"),
    ),
    "too little money of a late transfer beside another payment": beside_late_transfer(
        AMOUNT // 2,
        Act(0, "customer", "choose", method=CARD),
        Advance("PT1M"),
        Act(0, "customer", "pay"),
    ),
    "too much money of a late transfer beside an authorization": beside_late_transfer(
        AMOUNT + 500,
        Act(0, "customer", "choose", method="pay-later-a"),
        Act(0, "customer", "pay"),
    ),
    "a late transfer beside a partly captured invoice": beside_late_transfer(
        None,
        Act(0, "customer", "choose", method="invoice-later-b"),
        Capture(0, 1, amount=300),
    ),
    "half of the money of a late transfer beside a partly captured authorization": beside_late_transfer(
        AMOUNT // 2,
        Act(0, "customer", "choose", method="pay-later-a"),
        Act(0, "customer", "pay"),
        Capture(0, 1, amount=600),
    ),
    "a transfer given up for an open attempt": beside_transfer(CARD),
    "a transfer given up for another payment": beside_transfer(CARD, Act(0, "customer", "pay")),
    "a transfer beside a paid card": beside_transfer(
        CARD, Act(0, "customer", "pay"), Act(0, "bank", "credit")
    ),
    "a transfer beside an invoice with a captured line": beside_transfer(
        "invoice-later-b", Capture(0, 1, lines=(("socks", 2),)), Act(0, "bank", "credit")
    ),
    "half of the money of a transfer that was given up": beside_transfer(
        CARD, Act(0, "bank", "credit", amount=AMOUNT // 2)
    ),
    "a cancelled transfer": (Create(AMOUNT, "bank-transfer"), Cancel(0)),
    "a cancelled transfer with half of its money": (
        Create(AMOUNT, "bank-transfer"),
        Act(0, "bank", "credit", amount=AMOUNT // 2),
        Cancel(0),
    ),
    "a paid transfer": (Create(AMOUNT, "bank-transfer"), Act(0, "bank", "credit")),
    "a transfer whose money arrives after a cancellation": (
        Create(AMOUNT),
        choose_transfer(0, None),
        Cancel(0),
    ),
    "a payment with two of three socks refunded": (
        Create(AMOUNT, "wallet-web", lines=LINES),
        Act(0, "customer", "pay"),
        CreateRefund(0, lines=(("socks", 2),)),
    ),
    "a half-paid transfer": (
        Create(AMOUNT, "bank-transfer"),
        Act(0, "bank", "credit", amount=500),
    ),
    "a transfer while the shop is down": (
        SetReachability(is_reachable=False),
        Create(AMOUNT, "bank-transfer"),
    ),
    "a partly captured invoice": (
        Create(AMOUNT, "invoice-later-b", **LINES_AND_CUSTOMER),
        Capture(0, 0, amount=300),
    ),
    "an authorization a second before the order's expiry": (
        Create(AMOUNT, CARD, capture_mode="manual", lines=LINES),
        Advance("PT29M59S"),
        Act(0, "customer", "pay"),
    ),
    "a refund that will fail": (
        Create(70_000, CARD),
        Act(0, "customer", "pay"),
        CreateRefund(0, amount=66605),
        Act(0, "processor", "fail", refund=0),
    ),
    "a recurring series a second before its year ends": (
        Create(AMOUNT, CARD, flow="first recurring"),
        Act(0, "customer", "pay"),
        Advance("P364DT23H59M59S"),
    ),
    "a recurring series a year later": (
        Create(AMOUNT, CARD, flow="first recurring"),
        Act(0, "customer", "pay"),
        Advance("P1Y"),
    ),
    "a card stored for one-click payments a year later": (
        Create(AMOUNT, CARD, flow="first one-click"),
        Act(0, "customer", "pay"),
        Advance("P1Y"),
    ),
    "a delayed authorization": (
        Create(AMOUNT, "pay-later-a", capture_mode="delayed", **LINES_AND_CUSTOMER),
        Act(0, "customer", "pay"),
    ),
    "a second attempt on the hosted page": (
        Create(AMOUNT, **LINES_AND_CUSTOMER),
        Act(0, "customer", "choose", method=CARD),
        Act(0, "customer", "fail"),
        Act(0, "customer", "choose", method="bank-transfer"),
    ),
    "a hosted page with a failed attempt": (
        Create(AMOUNT, **LINES_AND_CUSTOMER),
        Act(0, "customer", "choose", method=CARD),
        Act(0, "customer", "fail"),
    ),
    "an authorization with a captured line": (
        Create(AMOUNT, "pay-later-a", **LINES_AND_CUSTOMER),
        Act(0, "customer", "pay"),
        Capture(0, 0, lines=(("socks", 1),)),
    ),
    "an authorization with a captured and a voided line": (
        Create(AMOUNT, CARD, capture_mode="manual", lines=LINES),
        Act(0, "customer", "pay"),
        Capture(0, 0, lines=(("socks", 1),)),
        Void(0, 0, lines=(("post", 1),)),
    ),
    "a voided line of an authorization captured by amount": (
        Create(AMOUNT, "pay-later-a", **LINES_AND_CUSTOMER),
        Act(0, "customer", "pay"),
        Void(0, 0, lines=(("post", 1),)),
        Capture(0, 0, amount=750),
    ),
    "a refunded line of an authorization captured by amount": (
        Create(AMOUNT, "invoice-later-b", **LINES_AND_CUSTOMER),
        Capture(0, 0, amount=500),
        CreateRefund(0, lines=(("socks", 1),)),
        CreateRefund(0, lines=(("post", 1),)),
    ),
    "an expired authorization with a capture": (
        Create(AMOUNT, CARD, capture_mode="manual", lines=LINES),
        Act(0, "customer", "pay"),
        Capture(0, 0, amount=300),
        Advance("PT30M"),
    ),
    "a delayed authorization 20 minutes after the order's creation": (
        Create(AMOUNT, CARD, capture_mode="delayed", lines=LINES),
        Advance("PT20M"),
        Act(0, "customer", "pay"),
        Void(0, 0, amount=300),
    ),
    "a screening that needs time": (Create(AMOUNT, "pay-later-a", lines=LINES, customer="needs-time"),),
    "an expired transfer": (Create(AMOUNT, "bank-transfer"), Advance("P30D")),
    "a partly refunded payment": (
        Create(AMOUNT, CARD, lines=LINES),
        Act(0, "customer", "pay"),
        CreateRefund(0, amount=400),
    ),
    "a scanned QR code": (code_creations()[0], Scan(0)),
    "a QR code for many scans a second before it expires": (code_creations()[1], Advance("P364DT23H59M59S")),
    "an order with its own webhook URL": (
        Create(AMOUNT, "bank-redirect-de", webhook_url=OWN_URL),
        Act(0, "customer", "visit"),
    ),
}
"""Start states of further explorations, which random walks rarely reach."""


def explore_from(server: PaymentSandboxServer, name: str, length: int, transitions_max: int) -> Exploration:
    """Explore every sequence from a start state, in mode ``live``."""
    with server.project(clock=FROM_START, webhook_url=WEBHOOK_URL, mode="live") as project:
        judge = ControlJudge(CheckedCaller(project), Shop(mode="live"))
        for call in START_STATES[name]:
            judge.make_call(call)
        return explore(judge, [*next_calls(judge.shop)], length, transitions_max)
