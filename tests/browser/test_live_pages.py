"""Live updates of the dashboard do not disturb its users."""

from playwright.sync_api import Page, expect

from tests.browser.pages import by_id, unfold
from tests.browser.test_dashboard import view_url
from tests.support.driver import Sandbox, card
from tests.support.ports import free_port
from tests.support.servers import make_server
from tests.support.shop import Shop


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
