"""Customers pay, fail, cancel and walk away in Chromium, with every method and in every language."""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import axe_playwright_python
import pytest
import zxingcpp
from PIL import Image
from playwright.sync_api import Page, Route, expect

from payment_sandbox.methods import ALL
from payment_sandbox.orders.cards import CARDS
from payment_sandbox.orders.customers import LOCALES
from tests.browser.conftest import NewContext
from tests.support.driver import CUSTOMER, LINES, LINES_TOTAL, Sandbox, by
from tests.support.shop import Shop

WITH_PAGE = [
    method.name for method in ALL if method.capabilities.page in ("card", "login", "sheet", "scan", "terms")
]
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
WIRE_BYTES_MAX = 50_000


def placed(sandbox: Sandbox, method: str | None, shop: Shop | None = None, **more: Any) -> dict[str, Any]:
    """An order that every method can pay, whose customer comes back to the shop."""
    transactions = [by(method)] if method is not None else []
    fields: dict[str, Any] = {"amount": LINES_TOTAL, "order_lines": LINES, "customer": CUSTOMER}
    if shop is not None:
        fields["return_url"] = shop.url.replace("/webhook", "/thanks?basket=7#top")
    return sandbox.place(*transactions, description="Socks & <b>more</b>", **{**fields, **more})


def address(order: dict[str, Any]) -> str:
    """Where its customer goes."""
    attempts = order["transactions"]
    return f"http://{attempts[-1]['payment_url'] if attempts else order['order_url']}"


def by_id(page: Page, test_id: str) -> Any:
    """The part of a page with a test id."""
    return page.get_by_test_id(test_id)


def expect_shop(page: Page, order: dict[str, Any]) -> None:
    """The customer is back in the shop, with both ids."""
    page.wait_for_url("**/thanks**")
    found = urlsplit(page.url)
    query = parse_qs(found.query)
    assert query == {"basket": ["7"], "order_id": [order["id"]], "project_id": [order["project_id"]]}
    assert found.fragment == "top"


def press(page: Page, *test_ids: str) -> str:
    """Press whichever of several buttons the page has, once it is there; says which it was."""
    page.locator(",".join(f"[data-testid={test_id}]" for test_id in test_ids)).first.wait_for()
    found = next(test_id for test_id in test_ids if by_id(page, test_id).count())
    by_id(page, found).first.click()
    return found


def confirm(page: Page) -> None:
    """Press the page's own button; the app's, for a code."""
    if press(page, "scan-open", "pay") == "scan-open":
        by_id(page, "pay").first.click()


@pytest.mark.parametrize("method", WITH_PAGE)
def test_a_customer_pays(live: Sandbox, shop: Shop, page: Page, method: str) -> None:
    """From creation to return_url."""
    order = placed(live, method, shop)
    page.goto(address(order))
    confirm(page)
    expect_shop(page, order)
    assert live.status(order) == ("completed", "completed")


@pytest.mark.parametrize("ending", ["fail", "cancel"])
@pytest.mark.parametrize("method", WITH_PAGE)
def test_a_customer_does_not_pay(live: Sandbox, shop: Shop, page: Page, method: str, ending: str) -> None:
    """From the tester's corner, to return_url."""
    order = placed(live, method, shop)
    page.goto(address(order))
    by_id(page, f"sandbox-{ending}").click()
    expect_shop(page, order)
    assert live.status(order)[0] == {"fail": "error", "cancel": "cancelled"}[ending]


@pytest.mark.parametrize("method", [*WITH_PAGE, "bank-transfer"])
def test_a_customer_walks_away_and_comes_back(live: Sandbox, page: Page, method: str) -> None:
    """Nothing has happened, and the payment is still open."""
    order = placed(live, method)
    page.goto(address(order))
    before = live.status(order)
    by_id(page, "sandbox-leave").click()
    expect(by_id(page, "left")).to_be_visible()
    assert live.status(order) == before
    by_id(page, "back-to-payment").click()
    expect(by_id(page, "sandbox-leave")).to_be_visible()


@pytest.mark.parametrize("method", [method.name for method in ALL])
def test_a_customer_chooses_on_the_order_page(live: Sandbox, shop: Shop, page: Page, method: str) -> None:
    """And pays; a transfer is credited by the tester, an invoice leads back by its link."""
    order = placed(live, None, shop)
    page.goto(address(order))
    by_id(page, f"method-{method}").click()
    by_id(page, f"method-{method}").wait_for(state="detached")  # the way back to the shop is here, too
    if press(page, "sandbox-credit", "back-to-shop", "scan-open", "pay") == "scan-open":
        by_id(page, "pay").click()
    expect_shop(page, order)
    assert live.read(order)["status"] in ("completed", "accepted")


def test_a_customer_tries_again(live: Sandbox, shop: Shop, page: Page) -> None:
    """After a decline, with another method."""
    order = placed(live, None, shop)
    page.goto(address(order))
    by_id(page, "method-credit-card").click()
    by_id(page, "card-declined").check()
    by_id(page, "pay").click()
    expect(by_id(page, "notice")).to_be_visible()
    by_id(page, "method-wallet-web").click()
    by_id(page, "pay").click()
    expect_shop(page, order)


@pytest.mark.parametrize(
    ("answer", "status"),
    [("pay", "completed"), ("fail", "error"), ("unavailable", "error"), ("cancel", "cancelled")],
)
def test_the_bank_answers_as_the_tester_chooses(
    live: Sandbox, shop: Shop, page: Page, answer: str, status: str
) -> None:
    """A typed test card, then the 3-D Secure step."""
    order = placed(live, "credit-card", shop)
    page.goto(address(order))
    for field, typed in {
        "number": CARDS["challenge-configurable"].number,
        "expiry": "12/31",
        "cvc": "123",
        "holder": "J. de Vries",
    }.items():
        by_id(page, field).fill(typed)
    by_id(page, "pay").click()
    by_id(page, answer).click()
    expect_shop(page, order)
    assert live.status(order)[0] == status


def test_a_waiting_page_moves_on_by_itself(
    live: Sandbox, shop: Shop, page: Page, new_context: NewContext
) -> None:
    """Once the app on another device has confirmed what the code leads to."""
    order = placed(live, "wallet-qr", shop)
    page.goto(address(order))
    picture = by_id(page, "code").screenshot()
    (code,) = zxingcpp.read_barcodes(Image.open(BytesIO(picture)))
    phone = new_context(viewport={"width": 390, "height": 844}).new_page()
    phone.goto(code.text)
    by_id(phone, "pay").click()
    expect_shop(phone, order)
    expect_shop(page, order)


def test_an_account_number_is_copied(live: Sandbox, new_context: NewContext) -> None:
    """With a button that says so when it is done."""
    context = new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    order = placed(live, "bank-transfer")
    page.goto(address(order))
    by_id(page, "copy-transfer-iban").click()
    expect(by_id(page, "copy-transfer-iban")).to_have_text("Copied")
    iban = order["transactions"][0]["payment_method_details"]["creditor_iban"]
    assert page.evaluate("navigator.clipboard.readText()") == iban


def test_a_bank_qr_code_is_paid(sandbox: Sandbox, shop: Shop, page: Page) -> None:
    """Amount, bank, confirmation."""
    request = {
        "amount": 1000,
        "amount_changeable": True,
        "amount_max": 5000,
        "return_url": f"{shop.url}/thanks?basket=7#top",
    }
    made = sandbox.post("/v1/bankqr/", request).json()
    page.goto(made["qr_url"].removesuffix(".png") + "/")
    by_id(page, "amount-input").fill("60")
    by_id(page, "continue").click()
    expect(by_id(page, "error-amount")).to_be_visible()
    by_id(page, "amount-input").fill("12,50")
    by_id(page, "issuer_id").select_option("POLDNL2R")
    by_id(page, "continue").click()
    by_id(page, "pay").click()
    page.wait_for_url("**/thanks**")
    order = sandbox.read(parse_qs(urlsplit(page.url).query)["order_id"][0])
    assert (order["status"], order["amount"]) == ("completed", 1250)


@pytest.mark.parametrize("method", [method.name for method in ALL])
def test_it_all_works_without_scripts(
    live: Sandbox, shop: Shop, new_context: NewContext, method: str
) -> None:
    """Chosen on the order's page and paid, with JavaScript off."""
    test_a_customer_chooses_on_the_order_page(
        live, shop, new_context(java_script_enabled=False).new_page(), method
    )


@pytest.mark.parametrize("method", WITH_PAGE)
def test_it_all_works_with_the_keyboard(live: Sandbox, shop: Shop, page: Page, method: str) -> None:
    """Tab to the method, Enter, Tab to the button, Enter; what has the focus can be seen."""
    order = placed(live, None, shop)
    page.goto(address(order))
    tab_to(page, f"method-{method}")
    page.keyboard.press("Enter")
    if method == "wallet-qr":
        tab_to(page, "scan-open")
        page.keyboard.press("Enter")
    tab_to(page, "pay")
    page.keyboard.press("Enter")
    expect_shop(page, order)


def tab_to(page: Page, test_id: str) -> None:
    """Press Tab until a part of the page has the focus, and see that it shows."""
    by_id(page, test_id).first.wait_for()
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.testid") == test_id:
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
            assert outline == "3px"
            return
    raise AssertionError(f"{test_id} cannot be reached")


# Every page


Opener = Callable[[Sandbox, Page], None]


def at(method: str, *steps: str, **more: Any) -> Opener:
    """A page of a method, after some clicks."""

    def opened(live: Sandbox, page: Page) -> None:
        page.goto(address(placed(live, method, **more)))
        for step in steps[:-1]:
            by_id(page, step).click()
        for step in steps[-1:]:
            follow(page, step)

    return opened


def follow(page: Page, test_id: str) -> None:
    """Press a button, and be on the page that it leads to."""
    with page.expect_navigation():
        by_id(page, test_id).first.click()


def order_page(live: Sandbox, page: Page) -> None:
    """The ways to pay."""
    page.goto(address(placed(live, None, merchant_order_id="shop-1001")))


def ended(how: str) -> Opener:
    """The order's page after its end."""

    def opened(live: Sandbox, page: Page) -> None:
        order = placed(live, None)
        if how == "expired":
            live.advance("P1D")
        elif how == "cancelled":
            live.delete(f"/v1/orders/{order['id']}/")
        else:
            live.acted(order, "customer choose", payment_method="wallet-web")
            live.acted(order, "customer pay")
        page.goto(address(order))

    return opened


def after_failure(live: Sandbox, page: Page) -> None:
    """The order's page with a notice."""
    order_page(live, page)
    by_id(page, "method-wallet-web").click()
    follow(page, "sandbox-fail")


def card_errors(live: Sandbox, page: Page) -> None:
    """A card form that was filled in wrong."""
    page.goto(address(placed(live, "credit-card")))
    by_id(page, "number").fill("4242 4242 4242 4242")
    follow(page, "pay")


def screening(live: Sandbox, page: Page) -> None:
    """A request that is being looked into."""
    live.scenario({"then": {"screening": "needs-time", "then": "passed", "after": "P2D"}})
    order = placed(live, None)
    page.goto(address(order))
    follow(page, "method-pay-later-a")
    live.scenario()


def bank_qr(live: Sandbox, page: Page) -> None:
    """The page of a bank QR code."""
    request = {"amount": 1000, "amount_changeable": True, "amount_max": 5000, "description": "Coffee"}
    page.goto(live.post("/v1/bankqr/", request).json()["qr_url"].removesuffix(".png") + "/")


def bank_qr_expired(live: Sandbox, page: Page) -> None:
    """The same, too late."""
    bank_qr(live, page)
    live.advance("P1Y")
    page.reload()


def nowhere(live: Sandbox, page: Page) -> None:
    """An address that leads to nothing."""
    page.goto(f"{live.url}/pay/{live.project['project_id']}/00000000-0000-4000-8000-000000000000/")


PAGES: dict[str, Opener] = {
    "order": order_page,
    "order-after-failure": after_failure,
    "card": at("credit-card"),
    "card-errors": card_errors,
    "secure": at("credit-card", "card-challenge-configurable", "pay"),
    "bank-nl": at("bank-redirect-nl"),
    "bank-be": at("bank-redirect-be"),
    "bank-de": at("bank-redirect-de"),
    "wallet-web": at("wallet-web"),
    "wallet-qr": at("wallet-qr"),
    "wallet-qr-confirm": at("wallet-qr", "scan-open"),
    "wallet-apple": at("wallet-apple"),
    "wallet-google": at("wallet-google"),
    "pay-later": at("pay-later-a"),
    "screening": screening,
    "transfer": at("bank-transfer"),
    "invoice": at("invoice-later-b"),
    "left": at("wallet-web", "sandbox-leave"),
    "paid": at("wallet-web", "pay"),
    "failed": at("wallet-web", "sandbox-fail"),
    "cancelled": at("wallet-web", "sandbox-cancel"),
    "order-paid": ended("paid"),
    "order-cancelled": ended("cancelled"),
    "order-expired": ended("expired"),
    "bank-qr": bank_qr,
    "bank-qr-expired": bank_qr_expired,
    "nothing": nowhere,
}


def violations(page: Page) -> list[str]:
    """What axe-core finds."""
    page.evaluate(AXE)
    found = page.evaluate(
        "axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']})"
    )
    return [f"{item['id']}: {item['nodes'][0]['html'][:120]}" for item in found["violations"]]


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_accessible_light_and_dark(live: Sandbox, new_context: NewContext, name: str) -> None:
    """Nothing for axe-core to find; nothing refused by the page's own policy, nothing asked of another host."""
    page = new_context(viewport={"width": 390, "height": 844}, bypass_csp=True).new_page()
    PAGES[name](live, page)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == []
    wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    assert not wide, "the page scrolls sideways on a phone"


@pytest.mark.parametrize("name", PAGES)
def test_every_page_speaks_five_languages(live: Sandbox, new_context: NewContext, name: str) -> None:
    """Switched on the page itself; each says so in its lang, and no two say the same."""
    page = new_context().new_page()
    said = {}
    PAGES[name](live, page)
    posted = name == "card-errors"  # its address shows the empty form again
    for tag in LOCALES:
        by_id(page, f"language-{tag}").click()
        expect(page.locator("html")).to_have_attribute("lang", tag)
        said[tag] = page.locator("main").inner_text()
    assert len({said[tag] for tag in ("nl", "de", "fr-BE", "en-GB")}) == 4 or posted
    assert not any("{" in text or "_text" in text or "_title" in text for text in said.values())


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_light_and_asks_nobody_else(live: Sandbox, new_context: NewContext, name: str) -> None:
    """At most 50 KB over the wire in all, from the sandbox alone; its policy stops nothing of its own."""
    page = new_context().new_page()
    hosts: set[str] = set()
    noise: list[str] = []
    page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
    page.on("console", lambda message: noise.append(message.text) if message.type == "error" else None)
    PAGES[name](live, page)
    page.wait_for_load_state("networkidle") if name not in ("wallet-qr", "transfer", "screening") else None
    hosts.discard("")  # the empty icon
    assert hosts == {urlsplit(live.url).netloc}
    assert [line for line in noise if "404" not in line and "400" not in line] == []
    assert len(page.content().encode()) + assets_bytes(live) <= WIRE_BYTES_MAX


def assets_bytes(live: Sandbox) -> int:
    """What a page loads besides itself at most: style, script and a code."""
    order = placed(live, "wallet-qr")
    files = [f"{live.url}/assets/pay.css", f"{live.url}/assets/pay.js", f"{address(order)}code.png"]
    return sum(len(live.http.get(file, timeout=10).content) for file in files)


@pytest.fixture
def outside(page: Page) -> list[str]:
    """What a page asks of anybody but the sandbox and the shop."""
    asked: list[str] = []

    def refuse(route: Route) -> None:
        asked.append(route.request.url)
        route.abort()

    page.route(lambda url: not url.startswith(("http://127.0.0.1", "data:")), refuse)
    return asked


def test_no_page_on_the_way_asks_anybody_else(
    live: Sandbox, shop: Shop, page: Page, outside: list[str]
) -> None:
    """From the order's page to the shop."""
    test_a_customer_chooses_on_the_order_page(live, shop, page, "credit-card")
    assert outside == []
