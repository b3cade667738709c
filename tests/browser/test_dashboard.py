"""The dashboard in a browser: live in every window, accessible, and fast."""

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from payment_sandbox.ui.dashboard.frame import VIEW_TITLES as FRAME_VIEWS
from tests.browser.pages import NewContext, Traffic, by_id, scrolls_sideways, unfold, violations
from tests.support.driver import Sandbox, card
from tests.support.samples import of_the_day
from tests.support.shop import Received, Shop

VIEW_TITLES = (*FRAME_VIEWS, "order", "webhook", "request")
WIDTHS = (390, 1280, 1920, 2560)
WIRE_BYTES_MAX = 100_000


@pytest.fixture
def busy_project(watched: Sandbox, shop: Shop) -> tuple[Sandbox, dict[str, str]]:
    """A project with orders, webhooks and refusals, and the path of each view."""
    webhooks = []

    def answer(received: Received) -> int:
        webhooks.append(received)
        watched.read(received.body["order_id"])
        return 503 if len(webhooks) == 1 else 204

    shop.answer = answer
    order = watched.authorized(merchant_order_id="shop-1001")
    watched.take(order, "captures/amount", {"amount": 500})
    watched.pay(watched.place(card(payment_method_details={"recurring_type": "first"}), amount=700))
    watched.post("/v1/bankqr/", {"amount": 500, "description": "Coffee"})
    watched.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 99_999})
    watched.settle()
    webhook, entry = watched.webhooks()[0], watched.get("/control/journal/").json()["items"][0]
    paths = {view: f"{view}/" for view in VIEW_TITLES}
    paths["order"] = f"orders/{order['id']}/"
    paths["webhook"] = f"requests/{webhook['id']}/"
    paths["request"] = f"requests/{entry['id']}/"
    return watched, paths


def view_url(sandbox: Sandbox, path: str) -> str:
    """Return the URL of a view."""
    return f"{sandbox.url}/dashboard/{sandbox.project['project_id']}/{path}"


@pytest.mark.parametrize("view", of_the_day(VIEW_TITLES, 4))
def test_a_view_is_accessible_at_every_width(
    busy_project: tuple[Sandbox, dict[str, str]], new_context: NewContext, view: str
) -> None:
    """A view passes axe-core in light and dark, and does not scroll sideways at any width."""
    sandbox, paths = busy_project
    page = new_context(bypass_csp=True).new_page()
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(view_url(sandbox, paths[view]))
        page.emulate_media(color_scheme="light")
        assert violations(page, only_colours=width == WIDTHS[-1]) == [], width
        page.emulate_media(color_scheme="dark")
        assert violations(page, only_colours=True) == [], width
        assert not scrolls_sideways(page), width


@pytest.mark.parametrize("view", VIEW_TITLES)
def test_every_view_is_small_and_loads_from_the_sandbox_only(
    busy_project: tuple[Sandbox, dict[str, str]], new_context: NewContext, view: str
) -> None:
    """Every view loads at most 100 KB, from the sandbox only, and the console stays empty."""
    sandbox, paths = busy_project
    page = new_context().new_page()
    traffic = Traffic(page)
    page.goto(view_url(sandbox, paths[view]))
    expect(page.locator("#live")).to_have_text("live")
    assert (traffic.hosts, traffic.console) == ({urlsplit(sandbox.url).netloc}, [])
    assert sum(traffic.sizes) <= WIRE_BYTES_MAX


def test_a_click_opens_headers_and_bodies(watched: Sandbox, page: Page) -> None:
    """Enter on a call opens a dialog with headers and bodies, and Escape closes it."""
    order = watched.place(card(), merchant_order_id="shop-7")
    page.goto(view_url(watched, f"orders/{order['id']}/"))
    by_id(page, "story").get_by_role("link").first.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Content-Type")
    expect(dialog).to_contain_text('"merchant_order_id": "shop-7"')
    page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()


@pytest.mark.parametrize("width", [390, 1280])
def test_open_menus_are_accessible(watched: Sandbox, new_context: NewContext, width: int) -> None:
    """One menu is open at a time, inside the window, and passes axe-core."""
    order = watched.authorized()
    page = new_context(viewport={"width": width, "height": 900}, bypass_csp=True).new_page()
    page.goto(view_url(watched, f"orders/{order['id']}/"))
    for name in ("menu-capture", "clock-menu"):
        unfold(page, name)
        assert page.locator("details[name=menus][open]").count() == 1
        panel = by_id(page, name).locator(".panel").bounding_box()
        assert panel is not None
        assert 0 <= panel["x"] <= width - panel["width"], name
        assert violations(page) == [], name
