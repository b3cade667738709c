"""A comparison begins with its conclusion: failed again, fixed or undecided."""

from typing import Any

import pytest

from tests.judge.test_judge import Handler, handling, reads, refunds_a_part, refunds_once
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, card
from tests.support.payer import Page
from tests.support.shop import Shop

Order = dict[str, Any]
FINDING = "Your shop refunded €5.00 four times for two status changes"


def create_twice_refunded(watched: Sandbox, shop: Shop) -> Order:
    """Create an order whose webhooks are sent twice, with a shop that refunds at each webhook."""
    handling(watched, shop, refunds_a_part)
    order = watched.place(card(), amount=2450)
    watched.put("/control/faults/", {"webhooks": [{"then": {"duplicate": 2}}]})
    watched.acted(order, "customer pay")
    watched.settle()
    watched.put("/control/faults/", {})
    return order


def replay(watched: Sandbox, order: Order, name: str = "webhook-twice") -> Page:
    """Replay an order with a variation and return the comparison."""
    browser = Dashboard(watched)
    return browser.press(browser.open(f"orders/{order['id']}/"), f"again={name}")


def test_a_repeated_mistake(watched: Sandbox, shop: Shop) -> None:
    """The conclusion is red and names the problem, and both sides are red."""
    page = replay(watched, create_twice_refunded(watched, shop))
    assert page.ids["conclusion"] == f"Failed again: y{FINDING[1:]}."
    assert 'class="verdict bad-verdict" data-testid="conclusion"' in page.answer.text
    assert page.answer.text.count('class="side failed"') == 4


def test_a_corrected_mistake(watched: Sandbox, shop: Shop) -> None:
    """The conclusion is green, and the original is still red."""
    order = create_twice_refunded(watched, shop)
    handling(watched, shop, refunds_once())
    page = replay(watched, order)
    assert page.ids["conclusion"] == "Fixed: your shop made no mistake this time."
    assert 'good-verdict" data-testid="conclusion"' in page.answer.text
    assert page.answer.text.count('class="side failed"') == page.answer.text.count('class="side ok"') == 2


NO_MISTAKE = "Your shop made no mistake with either."
LOST = "Undecided: a fault lost the webhooks. Your shop has a day to read the order: move the clock to see."
CONCLUSIONS = {
    "declined": (reads, f"The first order is completed, the second one error. {NO_MISTAKE}"),
    "webhook-twice": (reads, NO_MISTAKE),
    "webhook-lost": (reads, LOST),
    "slow-shop": (reads, "Undecided: not all webhooks have arrived."),
    "webhook-twice, then refunds": (refunds_a_part, f"Failed this time: y{FINDING[1:]}."),
}


@pytest.mark.parametrize(("name", "handles", "conclusion"), [(n, *c) for n, c in CONCLUSIONS.items()])
def test_a_first_order_without_a_mistake(
    watched: Sandbox, shop: Shop, name: str, handles: Handler, conclusion: str
) -> None:
    """The conclusion confirms both orders, but not before the shop could react, or names the copy's mistake."""
    handling(watched, shop, reads)
    order = watched.acted(watched.place(card(), amount=2450), "customer pay")
    watched.settle()
    handling(watched, shop, handles)
    page = replay(watched, order, name.partition(",")[0])
    assert page.ids["conclusion"] == conclusion
    if conclusion == LOST:
        watched.advance("P2D")
        later = Dashboard(watched).open(page.url).ids["conclusion"]
        assert later.startswith("Failed this time: your shop does not know that the customer paid €24.50")
