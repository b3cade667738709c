"""Orders are found under the names that people use, and lists explain events in words."""

import re

import pytest

from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, card


@pytest.mark.parametrize(
    "text",
    ["€1,234.50", "1234.50", "1234,50", "lukasz", "Łukasz", "LUKASZ", "soren", "shop-1", "completed"],
)
def test_an_order_is_found_under_common_spellings(sandbox: Sandbox, text: str) -> None:
    """Orders are found by number, status, amount in any notation, and name without accents and strokes."""
    customer = {"first_name": "Łukasz", "last_name": "Søren", "email_address": "l@example.com"}
    match = sandbox.pay(sandbox.place(card(), amount=123_450, merchant_order_id="shop-1", customer=customer))
    other = sandbox.place(card(), amount=2300)
    page = Dashboard(sandbox).open(f"orders/?text={text}")
    assert f"order-{match['id']}" in page.ids
    assert f"order-{other['id']}" not in page.ids


def test_lists_name_orders_and_refunds_by_the_shops_number(watched: Sandbox) -> None:
    """Lists show the shop's number, or the beginning of the ID; a refund is shown with its amount and order."""
    order = watched.pay(watched.place(card(), merchant_order_id="S-77"))
    nameless = watched.pay(watched.place(card()))
    refund, _ = (
        watched.post(f"/v1/orders/{each['id']}/refunds/", {"amount": 500}).json()
        for each in (order, nameless)
    )
    watched.settle()
    watched.place(card(), merchant_order_id="S-78")
    browser = Dashboard(watched)
    assert "S-77" in browser.open("mistakes/").text
    assert "S-78" in browser.open().ids["agenda"]
    webhooks = browser.open("requests/?show=webhooks").ids["requests"]
    for name in ("S-77", nameless["id"][:8]):
        assert name in webhooks
        assert f"Refund €5.00 of {name}" in webhooks
    watched.read(refund["id"])
    calls = browser.open("requests/?show=calls").ids["requests"]
    assert "S-77" in calls.replace("Refund €5.00 of S-77", "")
    assert "Refund €5.00 of S-77" in calls
    webhook = watched.webhooks(order_id=refund["id"])[0]
    assert "OrderRefund €5.00 of S-77" in browser.open(f"requests/{webhook['id']}/").ids["webhook"]
    page = browser.open(f"orders/{order['id']}/")
    assert "completedRefund €5.00delivered" in page.ids["order-webhooks"]


def test_the_list_says_why_a_call_was_refused(sandbox: Sandbox) -> None:
    """The list of requests gives the reason in a sentence, and names faults."""
    order = sandbox.authorized(merchant_order_id="S-77")
    sandbox.take(order, "captures/amount", {"amount": 99_900})
    browser = Dashboard(sandbox)
    assert sandbox.create({"payment_method": "bank-redirect-nl"}).status_code == 400
    reasons = browser.open("requests/").ids["requests"]
    assert "€999.00 is too much: €20.00 are left to capture" in reasons
    assert "transactions[0].payment_method_details" in reasons, "the path of a field is not capitalized"
    sandbox.put("/control/faults/", {"faults": [{"then": {"status": 503, "phase": "after"}}]})
    sandbox.call("GET", f"/v1/orders/{order['id']}/")
    page = browser.open("requests/")
    assert "response lost (503 instead)" in page.ids["requests"]
    request = next(link for link in page.links if "/requests/request-" in link)
    assert "by a fault: response lost (503 instead)" in browser.open(f"{sandbox.url}{request}").text


@pytest.mark.rule("SET-49")
def test_a_refusal_has_room_for_its_reason(sandbox: Sandbox) -> None:
    """Lists and the review shorten IDs; the request's page shows the whole sentence."""
    order = sandbox.place(card())
    sandbox.pay(order)
    refund = sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 500}).json()
    sandbox.post(f"/v1/orders/{refund['id']}/refunds/", {"amount": 500})
    browser = Dashboard(sandbox)
    reason = f"order {refund['id'][:8]}… is itself a refund: nothing to refund"
    page = browser.open("requests/")
    assert f"{reason[0].upper()}{reason[1:]}" in page.ids["requests"]
    request = next(link for link in page.links if "/requests/request-" in link)
    whole = f"Order {refund['id']} is itself a refund: nothing to refund"
    assert whole in browser.open(f"{sandbox.url}{request}").text
    review = browser.open("mistakes/?now=1").text
    assert reason in review
    assert re.search(rf"\d\d:\d\d:\d\d  POST /v1/orders/{refund['id'][:8]}…/refunds/ → 409", review)
