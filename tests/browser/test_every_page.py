"""Every payment page is accessible, has five languages and loads from the sandbox only."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from payment_sandbox.orders.order import LOCALES
from tests.browser.pages import NewContext, Traffic, address, by_id, placed, scrolls_sideways, violations
from tests.support.driver import Sandbox
from tests.support.samples import of_the_day

WIRE_BYTES_MAX = 50_000
Opener = Callable[[Sandbox, Page], None]


def method_page(method: str, *steps: str, **fields: Any) -> Opener:
    """Return an opener of a method's page after some clicks."""

    def open_page(live: Sandbox, page: Page) -> None:
        page.goto(address(placed(live, method, **fields)))
        for step in steps[:-1]:
            by_id(page, step).click()
        for step in steps[-1:]:
            follow(page, step)

    return open_page


def follow(page: Page, test_id: str) -> None:
    """Press a button, and wait for the next page."""
    with page.expect_navigation():
        by_id(page, test_id).first.click()


def order_page(live: Sandbox, page: Page) -> None:
    """Open the choice of payment methods."""
    page.goto(address(placed(live, None, merchant_order_id="shop-1001")))


def bank_choice(live: Sandbox, page: Page) -> None:
    """Open the choice of banks."""
    order_page(live, page)
    follow(page, "method-bank-redirect-nl")


def after_failure(live: Sandbox, page: Page) -> None:
    """Open the order's page after a failed attempt, with a notice."""
    order_page(live, page)
    by_id(page, "method-wallet-web").click()
    follow(page, "sandbox-fail")


def card_errors(live: Sandbox, page: Page) -> None:
    """Open a card form with errors."""
    page.goto(address(placed(live, "credit-card")))
    page.locator(".typed summary").click()
    by_id(page, "number").fill("4242 4242 4242 4242")
    follow(page, "pay-typed")


def pending_screening(live: Sandbox, page: Page) -> None:
    """Open the page of a pending screening."""
    live.scenario({"then": {"screening": "needs-time", "then": "passed", "after": "P2D"}})
    order = placed(live, None)
    page.goto(address(order))
    follow(page, "method-pay-later-a")
    live.scenario()


def bank_qr(live: Sandbox, page: Page) -> None:
    """Open the page of a bank QR code."""
    request = {"amount": 1000, "amount_changeable": True, "amount_max": 5000, "description": "Coffee"}
    page.goto(live.post("/v1/bankqr/", request).json()["qr_url"].removesuffix(".png") + "/")


def bank_qr_expired(live: Sandbox, page: Page) -> None:
    """Open the page of an expired bank QR code."""
    bank_qr(live, page)
    live.advance("P1Y")
    page.reload()


def unknown_order(live: Sandbox, page: Page) -> None:
    """Open the page of an unknown order."""
    page.goto(f"{live.url}/pay/{live.project['project_id']}/00000000-0000-4000-8000-000000000000/")


PAGES: dict[str, Opener] = {
    "order": order_page,
    "bank-choice": bank_choice,
    "order-after-failure": after_failure,
    "card": method_page("credit-card"),
    "card-errors": card_errors,
    "secure": method_page("credit-card", "card-challenge-configurable", "pay"),
    "bank-nl": method_page("bank-redirect-nl"),
    "bank-be": method_page("bank-redirect-be"),
    "bank-de": method_page("bank-redirect-de"),
    "wallet-web": method_page("wallet-web"),
    "wallet-qr": method_page("wallet-qr"),
    "wallet-qr-confirm": method_page("wallet-qr", "scan-open"),
    "wallet-apple": method_page("wallet-apple"),
    "wallet-google": method_page("wallet-google"),
    "pay-later": method_page("pay-later-a"),
    "screening": pending_screening,
    "transfer": method_page("bank-transfer"),
    "invoice": method_page("invoice-later-b"),
    "left": method_page("wallet-web", "sandbox-leave"),
    "paid": method_page("wallet-web", "pay"),
    "failed": method_page("wallet-web", "sandbox-fail"),
    "cancelled": method_page("wallet-web", "sandbox-cancel"),
    "expired": method_page("wallet-web", "sandbox-expire"),
    "bank-qr": bank_qr,
    "bank-qr-expired": bank_qr_expired,
    "nothing": unknown_order,
}


@pytest.mark.parametrize("name", of_the_day(PAGES, 9))
def test_a_page_is_accessible_light_and_dark(live: Sandbox, new_context: NewContext, name: str) -> None:
    """A page passes axe-core in light and dark, and does not scroll sideways on a phone."""
    page = new_context(viewport={"width": 390, "height": 844}, bypass_csp=True).new_page()
    PAGES[name](live, page)
    assert violations(page) == []
    page.emulate_media(color_scheme="dark")
    assert violations(page, only_colours=True) == []
    assert not scrolls_sideways(page)


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_small_and_has_five_languages(
    live: Sandbox, new_context: NewContext, name: str
) -> None:
    """Every page loads at most 50 KB, from the sandbox only, without a block by its policy, in five languages."""
    page = new_context().new_page()
    traffic = Traffic(page)
    PAGES[name](live, page)
    page.wait_for_load_state("networkidle") if name not in ("wallet-qr", "transfer", "screening") else None
    traffic.hosts.discard("")  # the empty favicon
    assert traffic.hosts == {urlsplit(live.url).netloc}
    assert [line for line in traffic.console if "404" not in line and "400" not in line] == []
    assert len(page.content().encode()) + assets_bytes(live) <= WIRE_BYTES_MAX
    texts = {}
    is_posted = name == "card-errors"  # a GET of its URL shows the empty form again
    for tag in LOCALES:
        by_id(page, f"language-{tag}").click()
        expect(page.locator("html")).to_have_attribute("lang", tag)
        texts[tag] = page.locator("main").inner_text()
    assert len({texts[tag] for tag in ("nl", "de", "fr-BE", "en-GB")}) == 4 or is_posted
    assert not any("{" in text or "_text" in text or "_title" in text for text in texts.values())


def assets_bytes(live: Sandbox) -> int:
    """Return the largest size of a page's assets: style sheet, script and a code."""
    order = placed(live, "wallet-qr")
    files = [f"{live.url}/assets/pay.css", f"{live.url}/assets/pay.js", f"{address(order)}code.svg"]
    return sum(len(live.http.get(file).content) for file in files)
