"""What can be tried where the sandbox is controlled: everybody acts, codes are scanned, and time passes."""

from collections.abc import Iterator

from payment_sandbox_verify.model.calls import Act, Advance, Call, Scan, SetReachability
from payment_sandbox_verify.model.changes import due_times
from payment_sandbox_verify.model.records import METHODS, Order, Shop
from payment_sandbox_verify.walking.alphabet import AMOUNT, CARD, order_calls


def about_people(order: Order, number: int) -> Iterator[Call]:
    """What only a controlled customer does, and what banks, screenings and processors do."""
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


def around_order(shop: Shop, number: int) -> list[Call]:
    """Everything that can happen to an order."""
    return [*about_people(shop.orders[number], number), *order_calls(shop, number)]


def deadlines(shop: Shop) -> list[Call]:
    """Both sides of the next deadline, of the last one and of a code's; whether the shop answers webhooks."""
    due = due_times(shop)
    ends = [code.expires for code in shop.codes if code.expires > shop.now]
    seconds = {int((moment - shop.now).total_seconds()) for moment in (due[:1] + due[-1:] + ends[:1])}
    tried: list[Call] = [SetReachability(not shop.is_reachable)]
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
