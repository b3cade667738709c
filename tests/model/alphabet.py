"""The calls that need the control API: acts of customers, banks and processors, scans and advances."""

from collections.abc import Iterator

from tests.model.letters import AMOUNT, CARD, order_calls
from tests.model.specification.calls import Act, Advance, Call, Scan, SetReachability
from tests.model.specification.changes import due_times
from tests.model.specification.records import METHODS, Order, Shop


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
        yield from (
            Scan(number, amount + difference) for amount in sorted(bounds) for difference in (-1, 0, 1)
        )
