"""Bounded exhaustive exploration: every sequence of calls and events up to a length, equal states merged."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from payment_sandbox.model import step
from payment_sandbox.model.calls import Act, Advance, Answer, Call, Create
from payment_sandbox.model.records import METHODS, Order, Shop
from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.model.alphabet import AMOUNT, CARD, about_order, creations, deadlines, scans, stored_cards
from tests.model.driver import SessionDoor
from tests.model.judge import FROM_START, WEBHOOK_URL, Judge, Saved


@dataclass
class Explored:
    """What was covered."""

    states: int = 0
    transitions: int = 0
    silent: int = 0
    rules: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Explored") -> None:
        """Count another exploration, too."""
        self.states += other.states
        self.transitions += other.transitions
        self.silent += other.silent
        self.rules += other.rules

    def __str__(self) -> str:
        return (
            f"{self.states} states, {self.transitions} transitions, {len(self.rules)} rules and assumptions, "
            f"{self.silent} calls of which nothing is said"
        )


def untimed(shop: Shop) -> Shop:
    """A state without the webhooks that are done, which decide nothing that follows."""

    def merged(order: Order) -> Order:
        pending = tuple(webhook for webhook in order.webhooks if webhook.state == "pending")
        return replace(order, webhooks=pending, description="")

    return replace(shop, orders=tuple(merged(order) for order in shop.orders))


def next_calls(shop: Shop) -> Iterator[Call]:
    """Everything to try with the first order, its deadlines and the codes."""
    if shop.orders:
        yield from about_order(shop, 0)
    yield from (call for call in deadlines(shop) if not isinstance(call, Answer) or shop.orders)
    yield from scans(shop)
    if shop.cards and len(shop.orders) == 1:
        yield from stored_cards(shop)


def explore(judge: Judge, first: Sequence[Call], length: int, most: int) -> Explored:
    """Try every sequence that begins with one of these calls, up to a length or a number of transitions."""
    explored, start = Explored(), judge.save()
    level: list[tuple[Saved, Callable[[Shop], Iterator[Call]]]] = [(start, lambda _: iter(first))]
    seen = {untimed(judge.shop)}
    for _ in range(length):
        following: list[tuple[Saved, Callable[[Shop], Iterator[Call]]]] = []
        for saved, calls_of in level:
            judge.restore(saved)
            for call in calls_of(saved.shop):
                if explored.transitions >= most:
                    break
                if judge.shop != saved.shop or judge.driver.names != saved.names:
                    judge.restore(saved)
                if not is_worthwhile(saved.shop, call):
                    continue
                judge.do(call)
                explored.transitions += 1
                if untimed(judge.shop) not in seen:
                    seen.add(untimed(judge.shop))
                    following.append((judge.save(), next_calls))
        level = following
    explored.states, explored.silent, explored.rules = len(seen), judge.silent, judge.rules
    return explored


def is_worthwhile(shop: Shop, call: Call) -> bool:
    """Whether the model says something of a call, and it is no mere waiting."""
    return bool(step(shop, call)) and not (isinstance(call, Advance) and not shop.orders)


def explored_in_a_project(
    server: PaymentSandboxServer, method: str, mode: str, length: int, most: int
) -> Explored:
    """Explore the orders of a method in a project of its own."""
    with server.project(clock=FROM_START, webhook_url=WEBHOOK_URL, mode=mode) as project:
        door = SessionDoor(project.session, project.base_url)
        return explore(Judge(door, Shop(mode=mode)), [*creations(method)], length, most)


def explored_series(server: PaymentSandboxServer) -> Explored:
    """Explore what follows a first recurring payment, with both sides of its year."""
    first = Create(AMOUNT, CARD, flow="first recurring")
    with server.project(clock=FROM_START, webhook_url=WEBHOOK_URL) as project:
        judge = Judge(SessionDoor(project.session, project.base_url))
        for call in (first, Act(0, "customer", "pay")):
            judge.do(call)
        nearly = [Advance("P1Y"), Advance("P364DT23H59M59S")]
        return explore(judge, nearly, length=2, most=200)


def explore_all(server: PaymentSandboxServer, most: int = 700) -> Explored:
    """Explore every method and the hosted page, up to so many transitions each."""
    explored = explored_series(server)
    for method in ("", *METHODS):
        more = explored_in_a_project(server, method, "live", 4, most)
        print(f"{method or 'hosted page'}: {more}")
        explored.add(more)
    return explored
