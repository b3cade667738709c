"""Bounded exhaustive exploration: every sequence of calls and events up to a length, equal states merged."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from payment_sandbox.testing.servers import PaymentSandboxServer
from payment_sandbox_verify.model import step
from payment_sandbox_verify.model.calls import (
    Act,
    Advance,
    Call,
    Capture,
    Create,
    CreateRefund,
    Scan,
    SetReachability,
    Void,
)
from payment_sandbox_verify.model.records import Order, Shop
from payment_sandbox_verify.walking.alphabet import (
    AMOUNT,
    CARD,
    LINES,
    LINES_AND_CUSTOMER,
    code_creations,
    creations,
    required_fields,
    stored_card_payments,
)
from tests.model.alphabet import around_order, deadlines, scans
from tests.model.driver import SessionCaller
from tests.model.judge import FROM_START, WEBHOOK_URL, ControlJudge, Saved

OWN_URL: Final = "http://127.0.0.1:9/own"


@dataclass
class Explored:
    """What was covered."""

    states: int = 0
    transitions: int = 0
    unspecified_calls: int = 0
    rules: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return (
            f"{self.states} states, {self.transitions} transitions, {len(self.rules)} rules and assumptions, "
            f"{self.unspecified_calls} calls of which nothing is said"
        )


def untimed(shop: Shop) -> Shop:
    """A state without the webhooks that are done, which decide nothing that follows."""

    def merged(order: Order) -> Order:
        pending = tuple(webhook for webhook in order.webhooks if webhook.state == "pending")
        return replace(order, webhooks=pending, description="")

    return replace(shop, orders=tuple(merged(order) for order in shop.orders))


def with_own_url(method: str) -> Create:
    """An order with a webhook address of its own."""
    return Create(
        AMOUNT, method, webhook_url=OWN_URL, **(required_fields(method) if method else LINES_AND_CUSTOMER)
    )


def next_calls(shop: Shop) -> Iterator[Call]:
    """Everything to try with the first order, its deadlines and the codes."""
    if shop.orders:
        yield from around_order(shop, 0)
    yield from (call for call in deadlines(shop) if not isinstance(call, SetReachability) or shop.orders)
    yield from scans(shop)
    if shop.cards and len(shop.orders) == 1:
        yield from stored_card_payments(shop)


def spread(tried: Sequence[Call], most: int, number: int) -> list[Call]:
    """At most so many of the calls of a state, evenly spread, and others for the state of another number."""
    count, most = len(tried), min(most, len(tried))
    return [tried[(number + place * count // most) % count] for place in range(most)]


def explore(judge: ControlJudge, first: Sequence[Call], length: int, most: int) -> Explored:
    """Try every sequence that begins with one of these calls, up to a length or a number of transitions.

    If there are more, each level has its share of them, and so has each state of a level.
    """
    explored, start = Explored(), judge.save()
    level: list[tuple[Saved, Callable[[Shop], Iterator[Call]]]] = [(start, lambda _: iter(first))]
    seen = {untimed(judge.shop)}
    for depth in range(length):
        following: list[tuple[Saved, Callable[[Shop], Iterator[Call]]]] = []
        share = (most - explored.transitions) // (length - depth) + explored.transitions
        for number, (saved, calls_of) in enumerate(level):
            tried = [call for call in calls_of(saved.shop) if is_worthwhile(saved.shop, call)]
            judge.restore(saved)
            for call in spread(tried, -(-(share - explored.transitions) // (len(level) - number)), number):
                if judge.shop != saved.shop or judge.driver.ids != saved.ids:
                    judge.restore(saved)
                judge.make_call(call)
                explored.transitions += 1
                if untimed(judge.shop) not in seen:
                    seen.add(untimed(judge.shop))
                    following.append((judge.save(), next_calls))
        level = following
    explored.states, explored.unspecified_calls, explored.rules = (
        len(seen),
        judge.unspecified_calls,
        Counter(judge.rules),
    )
    return explored


def is_worthwhile(shop: Shop, call: Call) -> bool:
    """Whether the model says something of a call, and it is no mere waiting."""
    is_waiting = isinstance(call, Advance) and not shop.orders and not shop.codes
    return bool(step(shop, call)) and not is_waiting


def explored_in_a_project(
    server: PaymentSandboxServer, method: str, mode: str, length: int, most: int
) -> Explored:
    """Explore the orders of a method in a project of its own."""
    with server.project(clock=FROM_START, webhook_url=WEBHOOK_URL, mode=mode) as project:
        caller = SessionCaller(project.session, project.base_url)
        return explore(
            ControlJudge(caller, Shop(mode=mode)), [*creations(method), with_own_url(method)], length, most
        )


PLACES: Final[dict[str, tuple[Call, ...]]] = {
    "a QR code of 5 to 15 euros": (code_creations()[2],),
    "a transfer of which a half has come": (
        Create(AMOUNT, "bank-transfer"),
        Act(0, "bank", "credit", amount=500),
    ),
    "a transfer while the shop is down": (
        SetReachability(is_reachable=False),
        Create(AMOUNT, "bank-transfer"),
    ),
    "an invoice of which a part was captured": (
        Create(AMOUNT, "invoice-later-b", **LINES_AND_CUSTOMER),
        Capture(0, 0, amount=300),
    ),
    "an authorization a second before the order would have expired": (
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
    "a recurring series a second before its year is over": (
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
    "a hosted page on which an attempt has failed": (
        Create(AMOUNT, **LINES_AND_CUSTOMER),
        Act(0, "customer", "choose", method=CARD),
        Act(0, "customer", "fail"),
    ),
    "an authorization of which a line was captured": (
        Create(AMOUNT, "pay-later-a", **LINES_AND_CUSTOMER),
        Act(0, "customer", "pay"),
        Capture(0, 0, lines=(("socks", 1),)),
    ),
    "an authorization of which a line was captured and a line voided": (
        Create(AMOUNT, CARD, capture_mode="manual", lines=LINES),
        Act(0, "customer", "pay"),
        Capture(0, 0, lines=(("socks", 1),)),
        Void(0, 0, lines=(("post", 1),)),
    ),
    "a captured authorization that has expired": (
        Create(AMOUNT, CARD, capture_mode="manual", lines=LINES),
        Act(0, "customer", "pay"),
        Capture(0, 0, amount=300),
        Advance("PT30M"),
    ),
    "a delayed authorization of an order of which time has passed": (
        Create(AMOUNT, CARD, capture_mode="delayed", lines=LINES),
        Advance("PT20M"),
        Act(0, "customer", "pay"),
        Void(0, 0, amount=300),
    ),
    "a screening that needs time": (Create(AMOUNT, "pay-later-a", lines=LINES, customer="needs-time"),),
    "a transfer that has expired": (Create(AMOUNT, "bank-transfer"), Advance("P30D")),
    "a payment that was refunded in part": (
        Create(AMOUNT, CARD, lines=LINES),
        Act(0, "customer", "pay"),
        CreateRefund(0, amount=400),
    ),
    "a QR code that was scanned": (code_creations()[0], Scan(0)),
    "a QR code for many scans a second before it expires": (code_creations()[1], Advance("P364DT23H59M59S")),
    "an order with a webhook address of its own": (
        Create(AMOUNT, "bank-redirect-de", webhook_url=OWN_URL),
        Act(0, "customer", "visit"),
    ),
}
"""From where to look further: states that a walk seldom reaches."""


def explored_from(server: PaymentSandboxServer, place: str, length: int, most: int) -> Explored:
    """Explore every sequence that begins there, in mode ``live``."""
    with server.project(clock=FROM_START, webhook_url=WEBHOOK_URL, mode="live") as project:
        judge = ControlJudge(SessionCaller(project.session, project.base_url), Shop(mode="live"))
        for call in PLACES[place]:
            judge.make_call(call)
        return explore(judge, [*next_calls(judge.shop)], length, most)


def exercised(method: str, length: int, most: int) -> Counter[str]:
    """Count which rules the model applies in such an exploration, without a server."""
    rules, transitions = Counter[str](), 0
    level, seen = [Shop(mode="live")], set[Shop]()
    for _ in range(length):
        following = []
        for shop in level:
            for call in next_calls(shop) if shop.orders else creations(method) + code_creations():
                transitions += 1
                for outcome in step(shop, call) if transitions <= most else ():
                    rules.update({*outcome.rules, outcome.assumption} - {""})
                    if untimed(outcome.shop) not in seen:
                        seen.add(untimed(outcome.shop))
                        following.append(outcome.shop)
        level = following
    return rules
