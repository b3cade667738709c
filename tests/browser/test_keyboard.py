"""The main action of each page takes few key presses, and screen readers announce changes."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.pages import by_id
from tests.browser.test_dashboard import view_url
from tests.support.driver import Sandbox, card
from tests.support.shop import Shop

STOPS_MAX = 12
SKIP_TO_ORDER, SKIP_TO_CONTENT = "Skip to the order", "Skip to content"
FOCUSED = "() => document.activeElement.dataset.testid || ''"


def tab_stops_to(page: Page, skip: str, main_action: str) -> int:
    """Return the number of Tab presses to an element, by the link that skips the page header."""
    stops = 0
    for target in (skip, main_action):
        while stops <= STOPS_MAX:
            page.keyboard.press("Tab")
            stops += 1
            if target in (page.evaluate(FOCUSED), page.locator(":focus").inner_text()):
                break
        if target == skip:
            page.keyboard.press("Enter")
    return stops


@pytest.mark.parametrize(
    ("view", "skip", "main_action"),
    [
        ("orders/", SKIP_TO_CONTENT, "create-test-order"),
        ("order", SKIP_TO_ORDER, "Refund …"),
        ("requests/", SKIP_TO_CONTENT, "send-a-test"),
        ("requests/", SKIP_TO_CONTENT, "search"),
        ("mistakes/", SKIP_TO_CONTENT, "Wrong and right code"),
        ("simulate/", SKIP_TO_CONTENT, "use-authorization-runs-out"),
        ("settings/", SKIP_TO_CONTENT, "save-settings"),
        ("webhook", SKIP_TO_CONTENT, "redeliver"),
        ("request", SKIP_TO_CONTENT, "older"),
    ],
)
def test_the_main_action_is_near(
    watched: Sandbox, page: Page, view: str, skip: str, main_action: str
) -> None:
    """The main action takes twelve Tab stops at most, also on a page with many orders."""
    for number in range(12):
        watched.place(card(), merchant_order_id=f"S-{number}")
    order = watched.acted(watched.place(card()), "customer pay")
    watched.settle()
    entry = watched.get("/control/journal/?limit=1&summary=1").json()["items"][0]
    paths = {
        "order": f"orders/{order['id']}/",
        "webhook": f"requests/{watched.webhooks()[0]['id']}/",
        "request": f"requests/{entry['id']}/",
    }
    page.goto(view_url(watched, paths.get(view, view)))
    assert tab_stops_to(page, skip, main_action) <= STOPS_MAX


def test_what_changes_is_announced(watched: Sandbox, shop: Shop, page: Page) -> None:
    """Changes are announced in a live region that exists from the start."""
    shop.answer = lambda received: 204
    order = watched.place(card(), merchant_order_id="S-1")
    page.goto(view_url(watched, f"orders/{order['id']}/"))
    region = by_id(page, "announced")
    expect(region).to_have_attribute("role", "status")
    expect(region).to_contain_text("S-1 is new.")
    watched.acted(order, "customer pay")
    expect(region).to_contain_text("S-1 is completed.")
    page.goto(view_url(watched, "orders/"))
    expect(region).to_contain_text("1 order; S-1 is completed.")
    watched.place(card(), merchant_order_id="S-2")
    expect(region).to_contain_text("2 orders; S-2 is new.")
