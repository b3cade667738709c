"""Every page is readable for everybody, speaks five languages and asks nobody else."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from payment_sandbox.orders.order import LOCALES
from tests.support.browser import NewContext, address, by_id, placed, violations
from tests.support.driver import Sandbox

WIRE_BYTES_MAX = 50_000
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


def bank_choice(live: Sandbox, page: Page) -> None:
    """The second step of a method with banks."""
    order_page(live, page)
    follow(page, "method-bank-redirect-nl")


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
    page.locator(".typed summary").click()
    by_id(page, "number").fill("4242 4242 4242 4242")
    follow(page, "pay-typed")


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
    "bank-choice": bank_choice,
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


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_accessible_light_and_dark(live: Sandbox, new_context: NewContext, name: str) -> None:
    """Nothing for axe-core to find; nothing refused by the page's own policy, nothing asked of another host."""
    page = new_context(viewport={"width": 390, "height": 844}, bypass_csp=True).new_page()
    PAGES[name](live, page)
    assert violations(page) == []
    page.emulate_media(color_scheme="dark")
    assert violations(page, only_colours=True) == []
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
    files = [f"{live.url}/assets/pay.css", f"{live.url}/assets/pay.js", f"{address(order)}code.svg"]
    return sum(len(live.http.get(file, timeout=10).content) for file in files)
