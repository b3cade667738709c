"""The dashboard uses the available space: one row for the clock."""

import pytest
from playwright.sync_api import FloatRect, Locator, Page

from tests.browser.pages import NewContext, by_id, unfold, violations
from tests.browser.test_dashboard import view_url
from tests.support.driver import Sandbox

TEXT_PX_MIN = 11


def box(element: Locator) -> FloatRect:
    """Return the bounding box of an element."""
    bounds = element.bounding_box()
    assert bounds is not None
    return bounds


def open_window(new_context: NewContext, width: int) -> Page:
    """Open a window with this width."""
    return new_context(viewport={"width": width, "height": 900}, bypass_csp=True).new_page()


@pytest.mark.parametrize(("width", "height"), [(390, 100), (1280, 60), (2560, 60)])
def test_the_header_is_low(sandbox: Sandbox, new_context: NewContext, width: int, height: int) -> None:
    """The header with the clock is low, also with a long project name and an event on another day."""
    sandbox.patch("/control/project/", {"name": "Shop of the Team Checkout and Payments"})
    sandbox.authorized(expiration_period="P7D")
    page = open_window(new_context, width)
    page.goto(view_url(sandbox, "orders/"))
    assert box(page.locator(".top"))["height"] < height
    assert box(by_id(page, "clock-next"))["width"] > 60
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [390, 1280])
def test_open_menus_are_accessible(watched: Sandbox, new_context: NewContext, width: int) -> None:
    """One menu is open at a time, inside the window, and passes axe-core."""
    order = watched.authorized()
    page = open_window(new_context, width)
    page.goto(view_url(watched, f"orders/{order['id']}/"))
    for name in ("menu-capture", "clock-menu"):
        unfold(page, name)
        assert page.locator("details[name=menus][open]").count() == 1
        panel = box(by_id(page, name).locator(".panel"))
        assert panel["x"] >= 0
        assert panel["x"] + panel["width"] <= width, name
        assert violations(page) == [], name
