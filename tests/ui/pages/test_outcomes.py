"""Payment pages offer outcomes to testers, and show customers results and progress."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from payment_sandbox.ui.pages.language import Language
from tests.support.driver import Sandbox, by, card
from tests.support.payer import RETURN, Payer, order_page, payment_page
from tests.support.shop import Shop

ENGLISH = Language("en-GB")


@pytest.fixture
def payer(sandbox: Sandbox) -> Payer:
    """The browser of a customer in test mode."""
    return Payer(sandbox)


def test_an_authorization_is_named_on_its_button(sandbox: Sandbox, payer: Payer) -> None:
    """The button names the status that the settings give an authorization; an accepted order leads to the shop."""
    order = sandbox.place(card(capture_mode="manual"), return_url=RETURN)
    for status in ("completed", "accepted"):
        sandbox.settings(authorized_status=status)
        label = payer.open(payment_page(order)).ids["sandbox-pay"]
        assert label.startswith("Authorized")
        assert label.endswith(f"order: {status}")
    panel = payer.open(payment_page(order)).forms[-1]
    data, headers = {**panel.fields, "action": "pay"}, {"Origin": sandbox.url}
    answer = payer.http.post(panel.action, data=data, headers=headers, allow_redirects=False)
    assert sandbox.read(order)["status"] == "accepted"
    assert answer.headers["Location"].startswith(RETURN.partition("?")[0])


def test_a_decline_has_a_reason(sandbox: Sandbox, payer: Payer) -> None:
    """A listed reason is on the transaction and on the result page; others are ignored."""
    order = sandbox.place(card())
    page = payer.press(payer.open(payment_page(order)), "fail", reason="Insufficient funds")
    assert page.ids["reason"] == "Insufficient funds"
    assert sandbox.read(order)["transactions"][0]["reason"] == "Insufficient funds"
    other = sandbox.place(card())
    payer.press(payer.open(payment_page(other)), "fail", reason="<made up>")
    assert sandbox.read(other)["transactions"][0]["reason"] != "<made up>"


Make = Callable[[Sandbox], dict[str, Any]]
RESULTS: list[tuple[str, Make]] = [
    (
        "authorized",
        lambda live: live.pay(live.place(card(capture_mode="manual"), merchant_order_id="shop-7")),
    ),
    ("invoice", lambda live: live.place_with_lines("invoice-later-b", merchant_order_id="shop-7")),
    ("refunded", lambda live: live.pay(live.place(card(), merchant_order_id="shop-7"))),
]


@pytest.mark.parametrize(("ending", "make"), RESULTS)
def test_results_other_than_payments_are_named(live: Sandbox, ending: str, make: Make) -> None:
    """An authorization, an invoice and a refund have their own result pages with the order's facts."""
    order = make(live)
    if ending == "refunded":
        live.post(f"/v1/orders/{order['id']}/refunds/", {})
    page = Payer(live).open(f"{live.url}/pay/{live.project['project_id']}/{order['id']}/result/")
    assert page.ids[f"result-{ending}"] == ENGLISH.say(f"{ending}_title")
    assert "shop-7" in page.ids["facts"]
    assert live.read(order)["status"] in page.ids["for-testers"]
    assert f"/dashboard/{live.project['project_id']}/orders/{order['id']}/" in page.links


def test_the_result_follows_its_webhooks(watched: Sandbox, shop: Shop) -> None:
    """The page claims a notification only after it; until then it polls a number that an attempt changes."""
    shop.answer = lambda received: 500
    order = watched.pay(watched.place(card()))
    watched.settle()
    url = f"{watched.url}/pay/{watched.project['project_id']}/{order['id']}/result/"
    page = Payer(watched).open(url)
    assert page.ids["webhooks"] == "0 / 2: HTTP 500"
    assert ENGLISH.say("paid_text") not in page.text
    polled = re.search(r'data-waiting="([^"]+)" data-state="(\d+)"', page.answer.text)
    assert polled is not None
    before = int(polled[2])
    assert watched.http.get(f"{watched.url}{polled[1]}").json() == {"state": before}
    shop.answer = lambda received: 204
    watched.advance("PT2M")
    assert watched.http.get(f"{watched.url}{polled[1]}").json()["state"] > before
    page = Payer(watched).open(url)
    assert page.ids["webhooks"] == "2 / 2"
    assert ENGLISH.say("paid_text") in page.text
    assert "data-waiting" not in page.answer.text


def test_an_outdated_tab_links_to_the_current_attempt(sandbox: Sandbox, payer: Payer) -> None:
    """A tab with a replaced attempt links to the current one."""
    order = sandbox.place(payment_methods=["wallet-web", "credit-card"])
    first = payer.press(payer.open(order_page(order)), "wallet-web")
    payer.press(payer.open(order_page(order)), "credit-card")
    page = payer.press(first, "pay")
    assert "Card" in page.ids["notice"]
    newest = sandbox.read(order)["transactions"][1]["id"]
    assert "go-there" in page.ids
    assert any(newest in link for link in page.links)


@pytest.mark.parametrize("method", ["wallet-qr", "bank-transfer"])
def test_a_waiting_page_reloads_without_scripts(sandbox: Sandbox, payer: Payer, method: str) -> None:
    """Without scripts the browser reloads the page at intervals; the ribbon shows the sandbox time."""
    page = payer.open(payment_page(sandbox.place(by(method))))
    assert '<noscript><meta http-equiv="refresh"' in page.answer.text
    assert page.ids["sandbox-time"] == "1 Mar, 12:00"
    assert "frozen" in page.ids["ribbon"]
