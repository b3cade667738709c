"""An order can be replayed with a variation; two orders can be compared; the diagram shows missing reads."""

import re
from typing import Any

import pytest

from tests.judge.test_judge import pays
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, card
from tests.support.shop import Shop

Order = dict[str, Any]


def read_newest(sandbox: Sandbox) -> Order:
    """Return the newest order."""
    order: Order = sandbox.get("/control/orders/?limit=1").json()["items"][0]
    return order


def attempt_results(sandbox: Sandbox, order: Order) -> list[str | None]:
    """Return the result of each attempt to deliver the order's webhooks."""
    webhooks = sandbox.get(f"/control/webhooks/?order_id={order['id']}").json()["items"]
    return [
        str(attempt["response"]["status"]) if attempt["response"] else attempt["error"] or attempt["warning"]
        for webhook in webhooks
        for attempt in webhook["attempts"]
    ]


@pytest.mark.parametrize(
    ("name", "status", "results"),
    [
        ("declined", "error", ["200", "200"]),
        ("webhook-lost", "completed", ["dropped by the scenario: the merchant never got it"] * 2),
        ("webhook-twice", "completed", ["200"] * 4),
        ("webhook-late", "completed", []),
        ("slow-shop", "completed", ["timed out, as the scenario says"] * 2),
        ("expires", "expired", ["200"]),
    ],
)
def test_an_order_can_be_replayed(
    watched: Sandbox, shop: Shop, name: str, status: str, results: list[str]
) -> None:
    """The copy has the same fields and one variation, which applies only to the copy."""
    order = pays(watched, merchant_order_id="shop-1")
    browser = Dashboard(watched)
    page = browser.press(browser.open(f"orders/{order['id']}/"), f"again={name}")
    copy = read_newest(watched)
    assert copy["id"] != order["id"]
    assert page.url.partition("?")[0].endswith(f"orders/{order['id']}/beside/{copy['id']}/")
    assert (copy["merchant_order_id"], copy["amount"], copy["status"]) == ("shop-1", 1000, status)
    assert attempt_results(watched, copy) == results
    assert watched.get("/control/faults/").json() == {"faults": [], "webhooks": []}
    assert "apart" in page.ids
    watched.advance("PT10M")
    later = attempt_results(watched, copy)
    assert later.count("200") == results.count("200") + (2 if name in ("webhook-late", "slow-shop") else 0)


@pytest.mark.parametrize("name", ["expires", "authorization-expires"])
def test_the_original_does_not_expire_with_its_copy(watched: Sandbox, name: str) -> None:
    """The copy has the shortest expiration period, so the clock advances very little."""
    order = watched.authorized(amount=1001)
    open_order = watched.place(card())
    browser = Dashboard(watched)
    browser.press(browser.open(f"orders/{order['id']}/"), f"again={name}")
    assert read_newest(watched)["status"] == "expired"
    assert watched.read(order)["status"] == "completed"
    assert watched.read(open_order)["status"] == "new"


def test_a_replayed_authorization_is_captured_in_parts(watched: Sandbox) -> None:
    """A replayed authorization is captured twice by hand."""
    order = watched.authorized(amount=1001)
    browser = Dashboard(watched)
    page = browser.press(browser.open(f"orders/{order['id']}/"), "captured-in-parts")
    copy = read_newest(watched)
    history = watched.get(f"/control/timeline/?order_id={copy['id']}").json()["items"]
    assert [item["label"] for item in history].count("captures by hand") == 2
    assert watched.read(copy)["transactions"][0]["is_fully_captured"]
    assert "captures by hand" in page.ids["beside"]
    assert "captured-in-parts" not in str(browser.open(f"orders/{pays(watched)['id']}/").forms)


def test_a_test_order_can_be_replayed(watched: Sandbox) -> None:
    """On the copy the customer chooses the same payment method."""
    browser = Dashboard(watched)
    page = browser.open("orders/")
    (form,) = [form for form in page.forms if form.action.endswith("orders/") and "token" in form.fields]
    page = browser.send(form, {}, page)
    page = browser.press(page, "customer choose", payment_method="credit-card")
    page = browser.press(page, "customer pay")
    watched.settle()
    browser.press(page, "again=declined")
    copy = watched.read(read_newest(watched))
    assert [attempt["status"] for attempt in copy["transactions"]] == ["error"]
    assert copy["description"] == "Two pairs of wool socks"


def test_a_refund_that_nobody_reads_does_not_fail_with_a_declining_bank(watched: Sandbox) -> None:
    """An unread refund offers no variation, as none would show the mistake."""
    order = pays(watched)
    watched.settle()
    watched.read(order)
    refund = watched.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 100}).json()
    watched.settle()
    for order_id in (order["id"], refund["id"]):
        page = Dashboard(watched).open(f"orders/{order_id}/")
        assert "Your shop answered a webhook for a refund, but did not read the refund" in page.answer.text
        assert "see-it-fail" not in page.ids


def test_impossible_variations_are_not_offered(sandbox: Sandbox) -> None:
    """An unknown variation changes nothing; without a webhook address, none about webhooks is offered."""
    order = pays(sandbox)
    browser = Dashboard(sandbox)
    page = browser.open(f"orders/{order['id']}/")
    assert "again-webhook-lost" not in page.ids
    form, _ = browser.button(page, "again=declined")
    refused = browser.send(form, {"again": "sideways"}, page)
    assert re.search("Must be one of: .*declined", refused.ids["notice"])
    assert read_newest(sandbox)["id"] == order["id"]


def test_equal_orders_have_no_differences(watched: Sandbox, shop: Shop) -> None:
    """Durations of responses, and the IDs in the reasons of refusals, are no differences."""
    orders = [watched.place(card()) for _ in range(2)]
    for order in orders:
        watched.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 500})
        watched.pay(order)
    watched.settle()
    browser = Dashboard(watched)
    page = browser.open(f"orders/{orders[0]['id']}/beside/{orders[1]['id']}/")
    assert "apart" not in page.ids
    assert "409 · order … is new" in page.ids["beside"]
    assert "pays · by handcustomer → bankpays · by handcustomer → bank" in page.ids["beside"]
    assert browser.open(f"orders/{orders[0]['id']}/beside/unknown/", 404)


def test_missing_reads_are_shown(watched: Sandbox, shop: Shop) -> None:
    """Each answered webhook shows a missing read until the shop reads the current status."""
    order = pays(watched)
    browser = Dashboard(watched)
    first_page = browser.open(f"orders/{order['id']}/")
    assert first_page.ids["see-it-fail"] == "See it fail", (
        "the verdict offers the variation that shows the mistake"
    )
    assert 'title="The same order, declined"' in first_page.answer.text
    assert first_page.answer.text.count('class="row missing"') == 2
    assert "your shop did not read the order" in first_page.answer.text
    watched.read(order)
    refund = watched.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 500}).json()
    watched.settle()
    page = browser.open(f"orders/{order['id']}/").answer.text
    assert page.count('class="row missing"') == 1
    assert "your shop did not read the refund" in page
    watched.read(refund)
    watched.read(order)
    assert 'class="row missing"' not in browser.open(f"orders/{order['id']}/").answer.text


def test_calls_are_described_in_words(watched: Sandbox) -> None:
    """The history describes each call in words, with its amount."""
    order = watched.authorized()
    attempt = watched.read(order)["transactions"][0]["id"]
    base = f"/v1/orders/{order['id']}/"
    watched.post(f"{base}transactions/{attempt}/captures/amount/", {"amount": 500, "description": "x"})
    watched.post(f"{base}refunds/", {"amount": 100})
    for invalid_amount in (10**4000, -(10**4000), True, "x", None, [1]):
        watched.post(f"{base}refunds/", {"amount": invalid_amount})
    history = Dashboard(watched).open(f"orders/{order['id']}/").ids["told"]
    for words in ("creates the order · €20.00", "reads the order", "captures · €5.00", "refunds · €1.00"):
        assert words in history


def test_the_fault_remains_while_webhooks_wait(watched: Sandbox, shop: Shop) -> None:
    """The fault remains while the copy's webhooks have no listener, and does not affect other orders."""
    order = pays(watched)
    watched.patch("/control/project/", {"forward_to": shop.url})
    browser = Dashboard(watched)
    browser.press(browser.open(f"orders/{order['id']}/"), "again=webhook-twice")
    copy = read_newest(watched)
    (rule,) = watched.get("/control/faults/").json()["webhooks"]
    assert rule["when"] == {"order_id": copy["id"], "attempt": 1}
    other = watched.pay(watched.place(card()))
    shop.received.clear()
    watched.patch("/control/project/", {"forward_to": None})
    watched.settle()
    assert (shop.orders().count(copy["id"]), shop.orders().count(other["id"])) == (4, 2)
    assert watched.get("/control/faults/").json() == {"faults": [], "webhooks": []}


@pytest.mark.parametrize("name", ["webhook-lost", "webhook-late", "slow-shop"])
def test_the_fault_of_an_authorization_ends_with_its_webhooks(
    watched: Sandbox, shop: Shop, name: str
) -> None:
    """The fault ends before the later capture, whose webhooks are sent normally."""
    order = watched.authorized(capture_mode="manual")
    watched.settle()
    browser = Dashboard(watched)
    browser.press(browser.open(f"orders/{order['id']}/"), f"again={name}")
    assert watched.get("/control/faults/").json() == {"faults": [], "webhooks": []}
    assert read_newest(watched)["status"] == "completed"
