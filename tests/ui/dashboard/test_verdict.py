"""The order's page names mistakes of the shop with their reasons, and confirms correct handling."""

from contextlib import nullcontext
from typing import Any

import pytest
import requests

from tests.judge.test_judge import handling, pays, reads
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, card
from tests.support.shop import Shop


def test_only_a_paid_order_looks_like_success(watched: Sandbox, shop: Shop) -> None:
    """Correct handling of a payment is confirmed in one line; other endings are not green."""
    handling(watched, shop, reads)
    browser = Dashboard(watched)
    page = browser.open(f"orders/{pays(watched)['id']}/")
    assert "good-verdict" in page.answer.text
    assert page.ids["verdict"] == "Your shop knows that the order is paid."
    assert page.ids["nav-mistakes"] == "Mistakes"
    others = [
        watched.acted(watched.place(card()), "customer fail"),
        watched.authorized(),
        watched.place(card()),
    ]
    watched.settle()
    watched.advance("PT31M")
    for order in others:
        assert "good-verdict" not in browser.open(f"orders/{order['id']}/").answer.text


def test_findings_are_counted_and_marked(watched: Sandbox) -> None:
    """Findings are counted and marked; equal ones share a card, whose links lead to existing sections."""
    orders = [pays(watched) for _ in range(3)]
    browser = Dashboard(watched)
    page = browser.open("mistakes/")
    assert page.ids["nav-mistakes"] == "Mistakes1"
    assert page.answer.text.count('data-testid="finding"') == 1
    assert "3 orders" in page.text
    for order in orders:
        assert order["id"] in page.answer.text
    assert browser.open("orders/").answer.text.count('data-testid="marked"') == 3
    watched.post(f"/v1/orders/{watched.place(card())['id']}/refunds/", {})
    links = {link for link in browser.open("mistakes/").links if "/docs/" in link and "#" in link}
    assert {link.partition("#")[0] for link in links} == {"/docs/mistakes/", "/docs/fidelity/"}
    for link in links:
        shown = browser.http.get(f"{watched.url}{link}").text
        assert f'id="{link.partition("#")[2]}"' in shown


def test_a_deviating_step_names_its_cause(watched: Sandbox, shop: Shop) -> None:
    """A step names its cause: an action by hand, a scenario rule, a fault or a webhook rule."""
    browser = Dashboard(watched)
    by_hand = watched.acted(watched.place(card()), "customer pay")
    assert "pays · by hand" in browser.open(f"orders/{by_hand['id']}/").ids["story"]
    watched.scenario({"then": {"customer": "fails", "reason": "Do not honour"}})
    watched.put("/control/faults/", {"webhooks": [{"then": {"answer": 503}}]})
    by_rule = watched.place(card())
    watched.settle()
    watched.put("/control/faults/", {"faults": [{"then": {"status": 503, "phase": "after"}}]})
    watched.call("GET", f"/v1/orders/{by_rule['id']}/")
    steps = browser.open(f"orders/{by_rule['id']}/").ids["story"]
    assert "the payment fails · rule 1 of of-the-test" in steps
    assert "webhook, attempt 1: error · 503 (fault)" in steps
    assert "503 · sandbox fault: response lost (503 instead)" in steps
    shop.answer = lambda received: 500
    watched.advance("PT25M")
    steps = browser.open(f"orders/{by_rule['id']}/").ids["story"]
    assert "webhook, attempt 2: error · retry" in steps
    assert "attempts 3 to 10 like these" in steps


def test_the_money_is_shown_in_words(sandbox: Sandbox) -> None:
    """The page shows authorized, captured, refunded and reserved amounts."""
    order = sandbox.authorized()
    browser = Dashboard(sandbox)
    page = browser.open(f"orders/{order['id']}/")
    assert page.ids["second-status"] == "authorized, not captured"
    page = browser.press(page, "merchant capture", amount="10.00")
    assert page.ids["second-status"] == "captured in part"
    for words in (
        "€20.00 authorized",
        "€10.00 captured",
        "€10.00 still reserved",
        "expires in 30 min, 12:30",
    ):
        assert words in page.ids["money"]
    page = browser.press(page, "merchant refund", amount="5.00")
    for words in ("€5.00 refunded", "€5.00 left", "expires in 30 min, 12:30"):
        assert words in page.ids["money"]


def test_two_cards_compare_the_shop_with_the_service(watched: Sandbox) -> None:
    """The cards show the shop's belief and the service's status; missing reads are shown until the shop reads."""
    order = pays(watched)
    browser = Dashboard(watched)
    page = browser.open(f"orders/{order['id']}/")
    assert page.ids["beliefs"].endswith("newcompleted≠")
    assert page.ids["believed"] == "new · answered 200, did not read the order"
    assert page.ids["known"] == "completed"
    assert page.answer.text.count('<li class="missing"') == 2
    watched.read(order)
    page = browser.open(f"orders/{order['id']}/")
    assert page.ids["beliefs"].endswith("completedcompleted")
    assert page.ids["believed"] == "completed"
    row = watched.get("/control/orders/").json()["items"][0]
    assert (row["service"], row["shop"], row["shop_status"]) == ("completed", "completed", "completed")
    refund = watched.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 500}).json()
    watched.settle()
    page = browser.open(f"orders/{order['id']}/")
    assert page.answer.text.count('<li class="missing"') == 1
    assert "your shop did not read the refund" in page.answer.text
    assert page.ids["order-webhooks"].count("Refund €5.00delivered") == 1
    watched.read(refund)
    watched.read(order)
    assert '<li class="missing"' not in browser.open(f"orders/{order['id']}/").answer.text


@pytest.mark.parametrize(
    ("effect", "is_lost"), [({"reset": True, "phase": "after"}, True), ({"latency": 0.01}, False)]
)
def test_a_lost_response_is_marked(watched: Sandbox, effect: dict[str, Any], is_lost: bool) -> None:
    """A lost response is marked, and the shop does not know its content; a slow one arrives."""
    order = pays(watched)
    watched.put("/control/faults/", {"faults": [{"when": {"method": "GET"}, "then": effect}]})
    with pytest.raises(requests.ConnectionError) if is_lost else nullcontext():
        watched.read(order)
    page = Dashboard(watched).open(f"orders/{order['id']}/")
    assert page.answer.text.count('<li class="lost"') == is_lost
    assert ("200 · lost (fault)" in page.ids["story"]) is is_lost
    assert page.ids["believed"].startswith("new" if is_lost else "completed")
