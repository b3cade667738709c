"""Customers choose a method and pay in Chromium; the tests of the pages cover what needs no browser."""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from payment_sandbox.ui.docs.library import read_source
from tests.browser.pages import NewContext, address, by_id, placed
from tests.support.blocks import blocks
from tests.support.codes import read_code
from tests.support.documentation import run_command
from tests.support.driver import Sandbox
from tests.support.payer import WITH_PAGE
from tests.support.samples import of_the_day
from tests.support.shop import Shop
from tests.support.tools import find_tool, require


def expect_return_to_shop(page: Page, order: dict[str, Any]) -> None:
    """Wait for the customer's return to the shop, and check both ids in the URL."""
    page.wait_for_url("**/thanks**")
    returned = urlsplit(page.url)
    query = parse_qs(returned.query)
    assert query == {"basket": ["7"], "order_id": [order["id"]], "project_id": [order["project_id"]]}
    assert returned.fragment == "top"


def test_a_waiting_page_moves_on_by_itself(
    live: Sandbox, shop: Shop, page: Page, new_context: NewContext
) -> None:
    """A page with a code moves on once the app on another device has confirmed the payment."""
    order = placed(live, "wallet-qr", shop)
    page.goto(address(order))
    picture = by_id(page, "code").screenshot()
    phone = new_context(viewport={"width": 390, "height": 844}).new_page()
    phone.goto(read_code(picture))
    by_id(phone, "pay").click()
    expect_return_to_shop(phone, order)
    expect_return_to_shop(page, order)


def test_an_account_number_is_copied(live: Sandbox, new_context: NewContext) -> None:
    """A button copies the account number, and confirms that for a moment."""
    context = new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    order = placed(live, "bank-transfer")
    page.goto(address(order))
    by_id(page, "copy-transfer-iban").click()
    expect(by_id(page, "copy-transfer-iban")).to_have_text("Copied")
    iban = order["transactions"][0]["payment_method_details"]["creditor_iban"]
    assert page.evaluate("navigator.clipboard.readText()") == iban
    expect(page.locator("#copied")).to_contain_text(iban)
    expect(by_id(page, "copy-transfer-iban")).to_have_text("Copy")


@pytest.mark.parametrize("method", of_the_day(WITH_PAGE, 4))
def test_a_method_works_with_the_keyboard(live: Sandbox, shop: Shop, page: Page, method: str) -> None:
    """A method can be chosen and paid with Tab and Enter, with a visible focus."""
    order = placed(live, None, shop)
    page.goto(address(order))
    tab_to(page, f"method-{method}")
    page.keyboard.press("Enter")
    if method == "bank-redirect-nl":
        tab_to(page, "issuer-SBXANL2A")
        page.keyboard.press("Enter")
    if method == "wallet-qr":
        tab_to(page, "scan-open")
        page.keyboard.press("Enter")
    tab_to(page, "pay")
    page.keyboard.press("Enter")
    expect_return_to_shop(page, order)


def tab_to(page: Page, test_id: str) -> None:
    """Press Tab until an element has the focus, and check that the focus is visible."""
    by_id(page, test_id).first.wait_for()
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.testid") == test_id:
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
            assert outline == "3px"
            return
    raise AssertionError(f"{test_id} cannot be reached")


def test_the_example_of_the_documentation_passes(tmp_path: Path) -> None:
    """The test with Playwright passes as pasted, apart from the place of the browser."""
    require("chromium")
    (example,) = (block.text for block in blocks(read_source("hosted-page")) if block.language == "py")
    options = {"executable_path": find_tool("chromium"), "args": ["--no-sandbox", "--disable-gpu"]}
    (tmp_path / "test_pasted.py").write_text(example.replace("launch()", f"launch(**{options})"))
    result = run_command(["pytest", "-q", "-p", "no:cacheprovider"], tmp_path)
    assert result.returncode == 0, result.stdout[-4000:]
