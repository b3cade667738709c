"""The dashboard uses the available space: one row for the clock, the whole width for the picture."""

import pytest
from playwright.sync_api import FloatRect, Locator, Page, expect

from tests.browser.test_dashboard import view_url
from tests.support.browser import NewContext, by_id, unfold, violations
from tests.support.driver import Sandbox, card

TEXT_PX_MIN = 11
SIZES = """root => [...root.querySelectorAll('li, li *')].filter(each => each.innerText)
    .map(each => parseFloat(getComputedStyle(each).fontSize))"""


def box(element: Locator) -> FloatRect:
    """Return the bounding box of an element."""
    bounds = element.bounding_box()
    assert bounds is not None
    return bounds


def open_window(new_context: NewContext, width: int) -> Page:
    """Open a window with this width."""
    return new_context(viewport={"width": width, "height": 900}, bypass_csp=True).new_page()


@pytest.mark.parametrize("width", [1280, 1920, 2560])
def test_the_clock_is_one_row(sandbox: Sandbox, new_context: NewContext, width: int) -> None:
    """The clock takes one row, also with a long project name and an event on another day."""
    sandbox.patch("/control/project/", {"name": "Shop of Team Checkout"})
    sandbox.authorized(expiration_period="P7D")
    page = open_window(new_context, width)
    page.goto(view_url(sandbox, "orders/"))
    tops = [box(by_id(page, name))["y"] for name in ("clock-freeze", "clock-minute", "clock-next")]
    assert max(tops) - min(tops) < 10
    assert box(by_id(page, "clock-bar"))["height"] < 70
    assert box(page.locator(".top"))["height"] < 60


def test_a_picture_uses_a_wide_window(watched: Sandbox, new_context: NewContext) -> None:
    """The picture is as wide as its card, with text of the normal size."""
    order = watched.pay(watched.place(card()))
    watched.settle()
    page = open_window(new_context, 2560)
    page.goto(view_url(watched, f"orders/{order['id']}/"))
    assert box(page.locator(".sequence"))["width"] > 0.95 * box(by_id(page, "money"))["width"]
    label = box(page.locator(".sequence .label").first)
    assert TEXT_PX_MIN <= label["height"] < 20


def test_a_phone_has_readable_text(watched: Sandbox, new_context: NewContext) -> None:
    """On a phone, text in the story of an order has eleven pixels at least."""
    order = watched.pay(watched.place(card()))
    watched.settle()
    page = open_window(new_context, 390)
    page.goto(view_url(watched, f"orders/{order['id']}/"))
    assert min(by_id(page, "story").evaluate(SIZES)) >= TEXT_PX_MIN


@pytest.mark.parametrize("view", ["journal/", "webhooks/"])
def test_a_wide_window_shows_an_entry_beside_the_list(
    watched: Sandbox, new_context: NewContext, view: str
) -> None:
    """A wide window shows the newest entry, then the clicked entry, beside the list."""
    for number in (1, 2):
        watched.acted(watched.place(card(), merchant_order_id=f"S-{number}"), "customer visit")
    watched.settle()
    page = open_window(new_context, 2560)
    page.goto(view_url(watched, view))
    detail, calls = page.locator("#detail"), page.locator("#rows .call")
    expect(detail).to_contain_text("S-2")
    expect(calls.first).to_have_attribute("aria-current", "true")
    calls.last.click()
    expect(detail).to_contain_text("S-1")
    expect(calls.last).to_have_attribute("aria-current", "true")
    assert not page.locator("dialog").is_visible()
    assert box(detail)["x"] > box(page.locator("#rows"))["x"] + box(page.locator("#rows"))["width"]
    assert violations(page) == []


@pytest.mark.parametrize("width", [390, 1280])
def test_open_menus_are_accessible(watched: Sandbox, new_context: NewContext, width: int) -> None:
    """One menu is open at a time, inside the window, and passes axe-core."""
    order = watched.authorized()
    page = open_window(new_context, width)
    page.goto(view_url(watched, f"orders/{order['id']}/"))
    for name in ("menu-capture", "again", "filter", "clock-menu", "recipes"):
        unfold(page, name)
        assert page.locator("details[name=menus][open]").count() == 1
        panel = box(by_id(page, name).locator(".panel"))
        assert panel["x"] >= 0
        assert panel["x"] + panel["width"] <= width, name
        assert violations(page) == [], name
