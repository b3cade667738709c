"""Payment pages offer outcomes to testers, and show customers results and progress."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from payment_sandbox.web.pages.language import Language
from tests.support.driver import LINES_TOTAL, Sandbox, by, card
from tests.support.payer import HTML, WITH_PAGE, Payer, order_page, payment_page, placed
from tests.support.shop import Shop

ENGLISH = Language("en-GB")


@pytest.fixture
def payer(sandbox: Sandbox) -> Payer:
    """The browser of a customer in test mode."""
    return Payer(sandbox)


@pytest.mark.parametrize("method", WITH_PAGE)
@pytest.mark.parametrize("end", ["pay", "fail", "cancel", "expire"])
def test_each_outcome_gives_the_status_on_its_button(live: Sandbox, method: str, end: str) -> None:
    """On every method's page, each outcome gives the order the status that its button names."""
    payer, order = Payer(live), placed(live, method)
    page = payer.open(payment_page(order))
    named = re.search(r"order: ([a-z]+)", page.ids[f"sandbox-{end}"])
    assert named is not None
    panel = page.forms[-1]
    payer.http.post(
        panel.action,
        data={**panel.fields, "action": end},
        headers={"Origin": live.url},
        allow_redirects=False,
    )
    assert live.read(order)["status"] == named[1]


def test_an_authorization_is_named_on_its_button(sandbox: Sandbox, payer: Payer) -> None:
    """The button names an authorization and the status that the settings give it."""
    order = sandbox.place(card(capture_mode="manual"))
    for status in ("completed", "accepted"):
        sandbox.settings(authorized_status=status)
        label = payer.open(payment_page(order)).ids["sandbox-pay"]
        assert label.startswith("Authorized")
        assert label.endswith(f"order: {status}")


def test_a_decline_has_a_reason(sandbox: Sandbox, payer: Payer) -> None:
    """A listed reason is on the transaction and on the result page; others are ignored."""
    order = sandbox.place(card())
    page = payer.press(payer.open(payment_page(order)), "fail", reason="Insufficient funds")
    assert page.ids["reason"] == "Insufficient funds"
    assert sandbox.read(order)["transactions"][0]["reason"] == "Insufficient funds"
    other = sandbox.place(card())
    payer.press(payer.open(payment_page(other)), "fail", reason="<made up>")
    assert sandbox.read(other)["transactions"][0]["reason"] != "<made up>"


def test_expiring_moves_the_clock(sandbox: Sandbox, payer: Payer) -> None:
    """The clock advances exactly to the payment's expiry."""
    order = sandbox.place(card(expiration_period="PT5M"))
    page = payer.press(payer.open(payment_page(order)), "expire")
    assert "result-expired" in page.ids
    assert sandbox.now() == "2026-03-01T12:05:00.000000+00:00"


def create_authorized(live: Sandbox) -> dict[str, Any]:
    """Create an authorized order without captures."""
    return live.pay(live.place(card(capture_mode="manual"), merchant_order_id="shop-7"))


def create_invoiced(live: Sandbox) -> dict[str, Any]:
    """Create an accepted order that will be paid by invoice."""
    order = live.place_with_lines("invoice-later-b", merchant_order_id="shop-7")
    return live.read(order)


def create_refunded(live: Sandbox) -> dict[str, Any]:
    """Create a paid order and refund it."""
    order = live.pay(live.place(card(), merchant_order_id="shop-7"))
    live.post(f"/v1/orders/{order['id']}/refunds/", {})
    return order


@pytest.mark.parametrize(
    ("create_order", "ending"),
    [(create_authorized, "authorized"), (create_invoiced, "invoice"), (create_refunded, "refunded")],
)
def test_results_other_than_payments_are_named(
    live: Sandbox, create_order: Callable[[Sandbox], dict[str, Any]], ending: str
) -> None:
    """An authorization, an invoice and a refund have their own result pages with the order's facts."""
    order = create_order(live)
    payer = Payer(live)
    url = f"{live.url}/pay/{live.project['project_id']}/{order['id']}/result/"
    page = payer.open(url)
    assert page.ids[f"result-{ending}"] == ENGLISH.say(f"{ending}_title")
    assert "shop-7" in page.ids["facts"]
    assert live.read(order)["status"] in page.ids["for-testers"]
    assert f"/dashboard/{live.project['project_id']}/orders/{order['id']}/" in page.links


@pytest.mark.parametrize(
    ("status", "is_notified", "counts"),
    [(204, True, "2 / 2"), (500, False, "0 / 2: HTTP 500")],
    ids=["takes", "refuses"],
)
def test_the_result_says_whether_the_shop_was_notified(
    watched: Sandbox, shop: Shop, status: int, is_notified: bool, counts: str
) -> None:
    """The page shows the shop's responses and claims a notification only if they succeeded."""
    shop.answer = lambda received: status
    order = watched.pay(watched.place(card()))
    assert watched.get("/control/wait/?idle=1").status_code == 200
    page = Payer(watched).open(f"{watched.url}/pay/{watched.project['project_id']}/{order['id']}/result/")
    assert page.ids["webhooks"] == counts
    assert (ENGLISH.say("paid_text") in page.text) is is_notified


def test_the_result_follows_its_webhooks(watched: Sandbox, shop: Shop) -> None:
    """While a webhook is pending, the page polls a number that the next attempt changes; then it stops."""
    shop.answer = lambda received: 500
    order = watched.pay(watched.place(card()))
    watched.settle()
    url = f"{watched.url}/pay/{watched.project['project_id']}/{order['id']}/result/"
    polled = re.search(r'data-waiting="([^"]+)" data-state="(\d+)"', Payer(watched).open(url).answer.text)
    assert polled is not None
    before = int(polled[2])
    assert watched.http.get(f"{watched.url}{polled[1]}").json() == {"state": before}
    shop.answer = lambda received: 204
    watched.advance("PT2M")
    assert watched.http.get(f"{watched.url}{polled[1]}").json()["state"] > before
    page = Payer(watched).open(url)
    assert page.ids["webhooks"] == "2 / 2"
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


def test_a_language_is_chosen_for_one_order(live: Sandbox) -> None:
    """A language that was chosen for one order does not apply to another order."""
    payer = Payer(live)
    first = live.place(by("wallet-web"), customer={"locale": "de"})
    second = live.place(by("wallet-web"), customer={"locale": "nl"})
    payer.open(f"{payment_page(first)}?language=fr-BE")
    assert payer.open(payment_page(first)).language == "fr-BE"
    assert payer.open(payment_page(second)).language == "nl"


def test_a_used_code_leads_to_the_payment_under_way(sandbox: Sandbox, payer: Payer) -> None:
    """A used code leads to its payment until that has ended."""
    request = sandbox.post("/v1/bankqr/", {"amount": 500}).json()
    code = request["qr_url"].removesuffix(".png") + "/"
    bank = payer.press(payer.open(code), "")
    page = payer.open(code)
    (payment_path,) = {link for link in page.links if link.startswith("/pay/")}
    assert payment_path in bank.url
    payer.press(bank, "pay")
    assert "go-there" not in payer.open(code).ids


def test_every_step_has_a_title_of_its_own(live: Sandbox) -> None:
    """Tabs and the browser's history can distinguish the pages by their titles."""
    payer = Payer(live)
    titles = set()
    for method in (None, "credit-card", "wallet-web", "bank-transfer", "pay-later-a", "wallet-qr"):
        order = placed(live, method) if method is not None else live.place(amount=LINES_TOTAL)
        url = payment_page(order) if method is not None else order_page(order)
        text = payer.open(url).answer.text
        titles.add(text.partition("<title>")[2].partition("</title>")[0])
    assert len(titles) == 6


def test_the_ribbon_shows_sandbox_time(sandbox: Sandbox, payer: Payer) -> None:
    """The ribbon shows the sandbox time and whether the clock is frozen."""
    page = payer.open(payment_page(sandbox.place(card())))
    assert page.ids["sandbox-time"] == "1 Mar, 12:00"
    assert "frozen" in page.ids["ribbon"]


def test_a_refusal_says_why(sandbox: Sandbox) -> None:
    """The error page for a wrong host names the option that allows it."""
    order = sandbox.place(card())
    page = f"http://{payment_page(order)}"
    answer = sandbox.http.post(page, headers={**HTML, "Host": "pay.example"})
    assert answer.status_code == 403
    assert "--allow-host pay.example" in answer.text


@pytest.mark.parametrize("method", ["wallet-qr", "bank-transfer"])
def test_a_waiting_page_reloads_without_scripts(sandbox: Sandbox, payer: Payer, method: str) -> None:
    """Without scripts the browser reloads the page at intervals."""
    text = payer.open(payment_page(sandbox.place(by(method)))).answer.text
    assert '<noscript><meta http-equiv="refresh"' in text
