"""Live updates of the dashboard do not disturb its users."""

from playwright.sync_api import Page, expect

from tests.browser.pages import NewContext, by_id, unfold
from tests.browser.test_dashboard import view_url
from tests.support.driver import Sandbox, card
from tests.support.ports import free_port
from tests.support.servers import make_server

FONT_SIZES = """root => [...root.querySelectorAll('li, li *')].filter(each => each.innerText)
    .map(each => parseFloat(getComputedStyle(each).fontSize))"""


def test_input_and_open_sections_survive_live_updates(sandbox: Sandbox, page: Page) -> None:
    """A live update shows a new capture, and keeps focus, selection and input of the amount field."""
    order = sandbox.authorized()
    page.goto(view_url(sandbox, f"orders/{order['id']}/"))
    expect(page.locator("#live")).to_have_text("live")
    amount = page.locator("#amount-capture")
    page.get_by_text("The order as JSON").click()
    unfold(page, "menu-capture")
    amount.fill("7.7")
    page.evaluate("document.querySelector('#amount-capture').setSelectionRange(1, 2)")
    sandbox.take(order, "captures/amount", {"amount": 500})
    expect(by_id(page, "money")).to_contain_text("€5.00 captured")
    expect(by_id(page, "second-status")).to_have_text("captured in part")
    expect(amount).to_be_focused()
    expect(amount).to_have_value("7.7")
    assert page.evaluate("document.activeElement.selectionStart") == 1
    assert page.get_by_text("The order as JSON").locator("..").get_attribute("open") is not None
    amount.blur()
    sandbox.take(order, "captures/amount", {"amount": 100})
    expect(by_id(page, "money")).to_contain_text("€6.00 captured")
    expect(amount).to_have_value("7.7")


def test_input_survives_a_server_restart(page: Page) -> None:
    """A banner shows that the server is unreachable; input stays, and the page recovers with the server."""
    port = free_port()
    with make_server(port=port, seed=1) as server:
        sandbox = Sandbox(server)
        order = sandbox.authorized()
        page.goto(view_url(sandbox, f"orders/{order['id']}/"))
        expect(page.locator("#live")).to_have_text("live")
        snapshot = sandbox.get("/control/state/").json()
    expect(page.locator("#lost")).to_contain_text("The server is not responding")
    unfold(page, "menu-capture")
    page.locator("#amount-capture").fill("4.00")
    by_id(page, "act-merchant-capture").click()
    expect(page.locator("#lost")).to_contain_text("nothing was sent")
    expect(page.locator("#amount-capture")).to_have_value("4.00")
    with make_server(port=port, seed=1) as server:
        restarted = Sandbox(server)
        assert restarted.project["project_id"] == sandbox.project["project_id"]
        restarted.put("/control/state/", snapshot)
        expect(page.locator("#lost")).to_be_hidden()
        expect(page.locator("#live")).to_have_text("live")


def test_a_missing_order_is_reported(page: Page) -> None:
    """After a restart without the order, its page shows that it no longer exists, and stays open."""
    port = free_port()
    with make_server(port=port, seed=1) as server:
        sandbox = Sandbox(server)
        order = sandbox.place(card())
        page.goto(view_url(sandbox, f"orders/{order['id']}/"))
        expect(page.locator("#live")).to_have_text("live")
    expect(page.locator("#lost")).to_contain_text("is not responding")
    with make_server(port=port, seed=1) as server:
        Sandbox(server)
        expect(page.locator("#lost")).to_contain_text("This page no longer exists")
        expect(by_id(page, "order-title")).to_be_visible()


def test_keys_move_through_the_list(sandbox: Sandbox, page: Page) -> None:
    """j and k move through the list, Enter opens an order, and / focuses the search, where keys are text."""
    orders = [sandbox.place(card(), merchant_order_id=f"jk-{number}") for number in range(3)]
    page.goto(view_url(sandbox, "orders/"))
    for key in "jjk":
        page.keyboard.press(key)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(by_id(page, "order-title")).to_have_text("jk-1")
    page.go_back()
    page.keyboard.press("/")
    page.keyboard.type("jk-2")
    expect(by_id(page, "search")).to_have_value("jk-2")
    page.keyboard.press("Enter")
    expect(by_id(page, f"order-{orders[2]['id']}")).to_be_visible()
    expect(by_id(page, f"order-{orders[0]['id']}")).to_have_count(0)


def test_rows_stay_in_place_while_somebody_reads_them(sandbox: Sandbox, page: Page) -> None:
    """New orders are only counted while the pointer is on the list; a click shows them."""
    first = sandbox.place(card(), merchant_order_id="S-1")
    page.goto(view_url(sandbox, "orders/"))
    expect(page.locator("#live")).to_have_text("live")
    rows = page.get_by_test_id("orders").locator("tbody tr")
    rows.first.hover()
    place = rows.first.bounding_box()
    for number in range(2, 8):
        sandbox.place(card(), merchant_order_id=f"S-{number}")
    expect(by_id(page, "newer-orders")).to_have_text("↑ 6 new orders")
    expect(rows).to_have_count(1)
    assert rows.first.bounding_box() == place
    sandbox.pay(first)
    expect(rows.first).to_contain_text("completed")
    by_id(page, "newer-orders").click()
    expect(rows).to_have_count(7)
    expect(by_id(page, "newer-orders")).to_have_count(0)


def test_a_phone_shows_the_story(watched: Sandbox, new_context: NewContext) -> None:
    """On a phone, the story of an order is readable, and calls open from it."""
    order = watched.authorized()
    watched.take(order, "captures/amount", {"amount": 99_900})
    watched.settle()
    phone = new_context(viewport={"width": 390, "height": 844}).new_page()
    phone.goto(view_url(watched, f"orders/{order['id']}/"))
    story = by_id(phone, "story")
    expect(story).to_contain_text("captures · €999.00")
    expect(story).to_contain_text("409 · €999.00 is too much: €20.00 are left to capture")
    assert min(story.evaluate(FONT_SIZES)) >= 11, "text is readable"
    story.get_by_text("captures · €999.00").click()
    expect(phone.locator("#dialog")).to_contain_text("captures/amount")
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
