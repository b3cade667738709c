"""Keyboards reach the main action of each page soon, and readers of screens hear what has changed."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_dashboard import at
from tests.support.browser import by_id
from tests.support.driver import Sandbox, card
from tests.support.shop import Shop

STOPS_MAX = 12
SKIP_TO_ORDER, SKIP_TO_CONTENT = "Skip to the order", "Skip to content"
FOCUSED = "() => document.activeElement.dataset.testid || ''"


def stops_to(page: Page, skip: str, wanted: str) -> int:
    """How many keys lead from the address to an element, by way of a link that skips the head of the page."""
    stops = 0
    for way in (skip, wanted):
        while stops <= STOPS_MAX:
            page.keyboard.press("Tab")
            stops += 1
            if way in (page.evaluate(FOCUSED), page.locator(":focus").inner_text()):
                break
        if way == skip:
            page.keyboard.press("Enter")
    return stops


@pytest.mark.parametrize(
    ("view", "skip", "wanted"),
    [
        ("orders/", SKIP_TO_CONTENT, "create-test-order"),
        ("order", SKIP_TO_ORDER, "see-it-fail"),
        ("webhooks/", SKIP_TO_CONTENT, "send-a-test"),
        ("journal/", SKIP_TO_CONTENT, "search"),
        ("review/", SKIP_TO_CONTENT, "Wrong and right code"),
        ("coverage/", SKIP_TO_CONTENT, "play"),
        ("scenario/", SKIP_TO_CONTENT, "use-authorization-runs-out"),
        ("settings/", SKIP_TO_CONTENT, "save-settings"),
        ("vault/", SKIP_TO_CONTENT, "make-code"),
        ("webhook", SKIP_TO_CONTENT, "redeliver"),
        ("request", SKIP_TO_CONTENT, "older"),
    ],
)
def test_the_main_action_is_near(watched: Sandbox, page: Page, view: str, skip: str, wanted: str) -> None:
    """In at most twelve stops, on a page with many orders before it."""
    for number in range(12):
        watched.place(card(), merchant_order_id=f"S-{number}")
    order = watched.acted(watched.place(card()), "customer pay")
    watched.settle()
    entry = watched.get("/control/journal/?limit=1&summary=1").json()["items"][0]
    paths = {
        "order": f"orders/{order['id']}/",
        "webhook": f"webhooks/{watched.webhooks()[0]['id']}/",
        "request": f"requests/{entry['id']}/",
    }
    page.goto(at(watched, paths.get(view, view)))
    assert stops_to(page, skip, wanted) <= STOPS_MAX


def test_what_changes_is_announced(watched: Sandbox, shop: Shop, page: Page) -> None:
    """In a region that says only that, and is there from the beginning."""
    shop.answer = lambda received: 204
    order = watched.place(card(), merchant_order_id="S-1")
    page.goto(at(watched, f"orders/{order['id']}/"))
    announced = by_id(page, "announced")
    expect(announced).to_have_attribute("role", "status")
    expect(announced).to_contain_text("S-1 is new.")
    watched.acted(order, "customer pay")
    expect(announced).to_contain_text("S-1 is completed.")
    page.goto(at(watched, "orders/"))
    expect(announced).to_contain_text("1 order; S-1 is completed.")
    watched.place(card(), merchant_order_id="S-2")
    expect(announced).to_contain_text("2 orders; S-2 is new.")


def test_a_case_is_played_by_one_click(sandbox: Sandbox, page: Page) -> None:
    """From the coverage to the order that has met it."""
    sandbox.pay(sandbox.place(card()))
    page.goto(at(sandbox, "coverage/"))
    page.get_by_role("button", name="▶ declined").first.click()
    expect(by_id(page, "notice")).to_have_text("Played: credit-card, declined.")
    expect(by_id(page, "reason")).to_have_text("Reason: Do not honour")
