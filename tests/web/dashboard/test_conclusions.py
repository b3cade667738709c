"""A comparison begins with what came of it: failed again, fixed, or not decided yet."""

from typing import Any

import pytest

from tests.operations.test_judge import handling, refunds_a_part
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, card
from tests.support.payer import Page
from tests.support.shop import Received, Shop

Order = dict[str, Any]
TWICE = "Your shop refunded €5.00 four times for two status changes"


def twice(watched: Sandbox, shop: Shop) -> Order:
    """An order of a shop that refunds at each of two webhooks, which both come twice."""
    handling(watched, shop, refunds_a_part)
    order = watched.place(card(), amount=2450)
    watched.put("/control/faults/", {"webhooks": [{"then": {"duplicate": 2}}]})
    watched.acted(order, "customer pay")
    watched.settle()
    watched.put("/control/faults/", {})
    return order


def played(watched: Sandbox, order: Order, name: str = "webhook-twice") -> Page:
    """The comparison after this variation of an order."""
    browser = Dashboard(watched)
    return browser.press(browser.open(f"orders/{order['id']}/"), f"again={name}")


def test_a_mistake_that_is_made_again(watched: Sandbox, shop: Shop) -> None:
    """In red, with the problem, and both sides are red."""
    page = played(watched, twice(watched, shop))
    assert page.ids["conclusion"] == f"Failed again: y{TWICE[1:]}."
    assert 'class="verdict bad-verdict" data-testid="conclusion"' in page.answer.text
    assert page.answer.text.count('class="side failed"') == 4


def test_a_shop_that_was_mended(watched: Sandbox, shop: Shop) -> None:
    """In green, beside the red original."""
    order, refunded = twice(watched, shop), set[str]()

    def once(received: Received) -> int:
        made = watched.read(received.body["order_id"])
        if made["status"] == "completed" and "is-refund" not in made["flags"] and made["id"] not in refunded:
            refunded.add(made["id"])
            watched.post(f"/v1/orders/{made['id']}/refunds/", {"amount": 500})
        return 200

    shop.answer = once
    page = played(watched, order)
    assert page.ids["conclusion"] == "Fixed: your shop made no mistake this time."
    assert 'good-verdict" data-testid="conclusion"' in page.answer.text
    assert page.answer.text.count('class="side failed"') == page.answer.text.count('class="side ok"') == 2


def test_a_mistake_that_comes_for_the_first_time(watched: Sandbox, shop: Shop) -> None:
    """The original was right, since its webhooks came once."""
    handling(watched, shop, lambda own, order_id: own.read(order_id))
    order = watched.acted(watched.place(card(), amount=2450), "customer pay")
    watched.settle()
    handling(watched, shop, refunds_a_part)
    assert played(watched, order).ids["conclusion"] == f"Failed this time: y{TWICE[1:]}."


@pytest.mark.parametrize(
    ("name", "conclusion"),
    [
        (
            "declined",
            "The first order is completed, the second one error. Your shop made no mistake with either.",
        ),
        ("webhook-twice", "Your shop made no mistake with either."),
        (
            "webhook-lost",
            "Undecided: a fault lost the webhooks. Your shop has a day to read the order: move the clock to see.",
        ),
        ("slow-shop", "Undecided: not all webhooks have arrived."),
    ],
)
def test_a_right_shop(watched: Sandbox, shop: Shop, name: str, conclusion: str) -> None:
    """It is praised for both, and not before it could do anything."""
    handling(watched, shop, lambda own, order_id: own.read(order_id))
    order = watched.acted(watched.place(card(), amount=2450), "customer pay")
    watched.settle()
    assert played(watched, order, name).ids["conclusion"] == conclusion


def test_an_undecided_one_is_decided_a_day_later(watched: Sandbox, shop: Shop) -> None:
    """The page says so when it is opened again."""
    handling(watched, shop, lambda own, order_id: own.read(order_id))
    order = watched.acted(watched.place(card(), amount=2450), "customer pay")
    watched.settle()
    page = played(watched, order, "webhook-lost")
    watched.advance("P2D")
    conclusion = Dashboard(watched).open(page.url).ids["conclusion"]
    assert conclusion.startswith("Failed this time: your shop does not know that the customer paid €24.50")
