"""The longest values that the API accepts fit into every page, on a phone and in a window."""

from typing import Any, Final

import pytest
from playwright.sync_api import Page

from payment_sandbox.orders.amounts import AMOUNT_CENTS_MAX, euros
from tests.browser.pages import NewContext, address, by_id
from tests.browser.test_dashboard import view_url
from tests.support.driver import Sandbox, card, details
from tests.support.shop import Shop

WORD: Final = "W" * 2000
"""Longer than any screen, without a place to break the line."""
WIDTHS: Final = (390, 1280)


@pytest.fixture
def longest(watched: Sandbox, shop: Shop) -> tuple[Sandbox, dict[str, Any]]:
    """A project and an order with the longest values in every place, and a mistake of the shop."""
    shop.answer = lambda received: 500
    shop.says = WORD.encode()
    watched.patch("/control/project/", {"name": WORD, "owner": WORD})
    customer = {"first_name": WORD, "last_name": WORD, "email_address": f"{'e' * 60}@{'x' * 60}.example"}
    values: dict[str, Any] = {
        "merchant_order_id": WORD,
        "description": WORD,
        "customer": customer,
        "return_url": f"http://shop.example/{WORD[:1900]}",
        "webhook_url": f"{shop.url}?{WORD[:1900]}",
        "extra": {WORD: WORD},
    }
    watched.pay(watched.place(card(), amount=AMOUNT_CENTS_MAX, **values))
    order = watched.acted(
        watched.place(details(recurring_type="first"), amount=999_999, **values), "customer pay"
    )
    watched.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 999_999_999, "description": WORD})
    code = watched.post("/v1/bankqr/", {"amount": 99_999_999, "description": WORD}).json()
    order["code"] = code["qr_url"].removesuffix(".png") + "/"
    watched.get(f"/v1/orders/{WORD}/?{WORD}")
    watched.settle()
    return watched, order


def width_of(page: Page, url: str) -> int:
    """Open a page, and return its width."""
    page.goto(url)
    width: int = page.evaluate("document.documentElement.scrollWidth")
    return width


@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_scrolls_sideways(
    longest: tuple[Sandbox, dict[str, Any]], new_context: NewContext, width: int
) -> None:
    """No page of dashboard or payment is wider than the window; method and amount are shown in full."""
    sandbox, order = longest
    page = new_context(viewport={"width": width, "height": 900}).new_page()
    entries = [entry["id"] for entry in sandbox.get("/control/journal/").json()["items"]]
    webhook = sandbox.webhooks()[0]["id"]
    views = ["requests/", "mistakes/", "simulate/", "settings/", f"orders/{order['id']}/"]
    views += [f"requests/{webhook}/"]
    for view in [*views, *(f"requests/{entry}/" for entry in entries), "orders/"]:
        assert width_of(page, view_url(sandbox, view)) <= width, view
    page.goto(view_url(sandbox, "orders/"))
    methods = page.locator(".customer small").evaluate_all(
        "all => all.map(each => each.scrollWidth <= each.clientWidth)"
    )
    assert all(methods), "no method is cut"
    cell = by_id(page, "orders").get_by_text(euros(AMOUNT_CENTS_MAX))
    assert cell.evaluate("each => each.scrollWidth <= each.clientWidth")
    values = {"merchant_order_id": WORD, "description": WORD, "amount": AMOUNT_CENTS_MAX}
    for url in (
        address(sandbox.place(**values)),
        address(sandbox.place(card(), **values)),
        f"{sandbox.url}/pay/{sandbox.project['project_id']}/{order['id']}/result/",
        order["code"],
    ):
        assert width_of(page, url) <= width, url
