"""The order's page shows a mistake of the shop without scrolling."""

from playwright.sync_api import Page, ViewportSize, expect

from payment_sandbox.orders.amounts import euros
from tests.browser.pages import by_id
from tests.browser.test_dashboard import view_url
from tests.judge.test_judge import WRONG, begin, told
from tests.support.driver import Sandbox
from tests.support.shop import Shop

__all__ = ["told"]
SCREEN: ViewportSize = {"width": 1280, "height": 830}


def orders(sandbox: Sandbox) -> list[str]:
    """Return the ids of all orders except refunds."""
    items = sandbox.get("/control/orders/?limit=100").json()["items"]
    return [item["id"] for item in items if not item.get("related_order_id")]


def test_a_mistake_is_in_the_first_screen(told: Sandbox, shop: Shop, page: Page) -> None:
    """The verdict on each mistake about money shows the amount, the cause and the remedy in the first screen."""
    page.set_viewport_size(SCREEN)
    for story, _, amount, problem, advice in filter(lambda mistake: mistake.amount, WRONG):
        begin(told, shop)
        story(told, shop)
        assert any(_is_named(page, told, order_id, problem) for order_id in orders(told)), story.__name__
        verdict = by_id(page, "verdict").first
        expect(verdict).to_contain_text(advice, ignore_case=True)
        expect(verdict).to_contain_text(euros(amount))
        box = verdict.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= SCREEN["height"], story.__name__


def _is_named(page: Page, sandbox: Sandbox, order_id: str, problem: str) -> bool:
    page.goto(view_url(sandbox, f"orders/{order_id}/"))
    verdict = by_id(page, "verdict")
    return bool(verdict.count()) and problem.lower() in verdict.first.inner_text().lower()
