"""The review and the lists look again only at the orders that have changed."""

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType

import pytest

from payment_sandbox.judge import review_log
from payment_sandbox.judge.standing import statuses_read
from payment_sandbox.operations import find_orders
from payment_sandbox.projects.order_logs import OrderLog
from payment_sandbox.testing.project_fixture import PaymentSandbox
from payment_sandbox.ui.dashboard import requests as requests_view
from tests.support.in_process import place, shop_that

PER_ORDER = {
    each.__code__: name
    for name, each in {
        "review": review_log,
        "statuses": statuses_read,
        "order texts": find_orders._searchable_text,
        "request texts": requests_view._texts,
    }.items()
}
PAGES = ("orders/", "orders/?text=S-1", "requests/?text=S-1", "mistakes/")
LOST = {"when": {"method": "POST", "nth": 1}, "then": {"status": 503, "phase": "after"}}
Step = Callable[[PaymentSandbox, list[str]], object]


def derivations(work: Callable[[], object]) -> Counter[str]:
    """Count what some work derives from logs of orders, by kind."""
    counts = Counter[str]()

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code in PER_ORDER and isinstance(frame.f_locals.get("log"), OrderLog):
            counts[PER_ORDER[frame.f_code]] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return counts


def get_pages(sandbox: PaymentSandbox) -> None:
    """Get the pages with a review or a search."""
    for page in PAGES:
        url = f"{sandbox.base_url}/dashboard/{sandbox.project_id}/{page}"
        assert sandbox.session.get(url).status_code == 200


def create(sandbox: PaymentSandbox, **body: object) -> None:
    """Send a creation."""
    sandbox.session.post(f"{sandbox.base_url}/v1/orders/", json=body)


def pay_an_order(sandbox: PaymentSandbox, orders: list[str]) -> None:
    """Pay one of the orders."""
    sandbox.act(orders[4])


def refund_an_order(sandbox: PaymentSandbox, orders: list[str]) -> None:
    """Refund a part of a paid order, which another order records."""
    sandbox.session.post(f"{sandbox.base_url}/v1/orders/{orders[4]}/refunds/", json={"amount": 100})


def lose_a_response(sandbox: PaymentSandbox, orders: list[str]) -> None:
    """Lose the response to a creation."""
    sandbox.client.faults(faults=[LOST])
    create(sandbox, currency="EUR", amount=7)


def repeat_the_creation(sandbox: PaymentSandbox, orders: list[str]) -> None:
    """Create the order of the lost response again."""
    sandbox.client.faults(faults=[])
    create(sandbox, currency="EUR", amount=7)


CHANGES: dict[str, Step] = {
    "read an order": lambda sandbox, orders: sandbox.session.get(
        f"{sandbox.base_url}/v1/orders/{orders[3]}/"
    ),
    "pay an order": pay_an_order,
    "refund an order": refund_an_order,
    "create an order": lambda sandbox, orders: orders.append(place(sandbox, merchant_order_id="S-5")),
    "call an unknown order": lambda sandbox, _: sandbox.session.get(f"{sandbox.base_url}/v1/orders/nobody/"),
    "send a wrong order": lambda sandbox, _: create(sandbox, amount=5),
    "lose a response": lose_a_response,
    "repeat the creation": repeat_the_creation,
}


@pytest.fixture
def shop(payment_sandbox: PaymentSandbox) -> PaymentSandbox:
    """A project whose shop answers each webhook with an error."""
    payment_sandbox.deliver_to(shop_that(lambda _: ("", 503)), "http://testserver/webhook")
    return payment_sandbox


def begin(sandbox: PaymentSandbox) -> list[str]:
    """Create some orders, and pay every second one."""
    orders = [place(sandbox, merchant_order_id=f"S-{number}") for number in range(12)]
    for order_id in orders[::2]:
        if order_id != orders[4]:
            sandbox.act(order_id)
    return orders


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_reviewed_without_the_other_orders(shop: PaymentSandbox, change: Step) -> None:
    """After a change, every view looks at one log, and then at none; the first one has looked at all."""
    orders = begin(shop)
    if change is refund_an_order:
        pay_an_order(shop, orders)
    first = derivations(lambda: get_pages(shop))
    assert first == dict.fromkeys(PER_ORDER.values(), len(orders))
    change(shop, orders)
    again = derivations(lambda: get_pages(shop))
    assert set(again.values()) == {1}
    assert derivations(lambda: get_pages(shop)) == {}


def test_time_alone_reviews_nothing_again(shop: PaymentSandbox) -> None:
    """A mistake that begins a day after a payment is known before, and shown when the day has passed."""
    shop.client.faults(webhooks=[{"then": {"drop": True}}])
    order_id = place(shop)
    shop.act(order_id)
    assert shop.review() == []
    assert derivations(lambda: shop.clock.advance("P2D")) == {}
    get_pages(shop)
    assert [finding.rule for finding in shop.review()] == ["HOOK-12"]


def test_a_review_after_each_change_equals_one_of_all_orders(shop: PaymentSandbox) -> None:
    """What was reviewed before does not change what the review finds; a setting has all orders reviewed."""
    orders = begin(shop)
    for change in CHANGES.values():
        change(shop, orders)
        shop.review()
    shop.clock.advance("P2D")
    reviewed = shop.review()
    for timing in ("before_response", "after_response"):
        shop.client.change_settings(webhook_timing=timing)
        anew = derivations(lambda: get_pages(shop))
    assert anew["review"] > len(orders)
    assert reviewed == shop.review()
    assert {finding.rule for finding in reviewed} >= {"HOOK-09", "ORD-07", "CTL-23"}
