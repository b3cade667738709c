"""Pages of the dashboard that people look at while things happen: nothing changes under their hands."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_dashboard import at
from tests.support.browser import NewContext, by_id, unfold, violations
from tests.support.driver import Sandbox, card
from tests.support.ports import free_port
from tests.support.servers import make_server

LONG = "shop-number-of-thirty-six-characters"


def test_what_is_typed_and_opened_stays_while_the_facts_change(sandbox: Sandbox, page: Page) -> None:
    """The shop captures while somebody types another amount: the money is up to date, the field is theirs."""
    order = sandbox.authorized()
    page.goto(at(sandbox, f"orders/{order['id']}/"))
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


def test_the_verdict_leads_to_a_test(watched: Sandbox, page: Page) -> None:
    """Its link opens what is to be copied."""
    order = watched.acted(watched.place(card()), "customer pay")
    watched.settle()
    page.goto(at(watched, f"orders/{order['id']}/"))
    expect(page.locator("#test-code")).to_be_hidden()
    by_id(page, "make-a-test").click()
    expect(page.locator("#test-code")).to_be_visible()


def test_a_refused_amount_is_told_beside_its_field(sandbox: Sandbox, page: Page) -> None:
    """In euros, with what was typed; the right one is taken after it."""
    order = sandbox.authorized()
    page.goto(at(sandbox, f"orders/{order['id']}/"))
    unfold(page, "menu-capture")
    page.locator("#amount-capture").fill("1.234,50")
    by_id(page, "act-merchant-capture").click()
    expect(by_id(page, "why-refused")).to_contain_text("€1,234.50 is too much: €20.00 are left to capture")
    expect(page.locator("#amount-capture")).to_have_value("1.234,50")
    expect(by_id(page, "nav-orders")).to_be_visible()
    page.locator("#amount-capture").fill("5")
    by_id(page, "act-merchant-capture").click()
    expect(by_id(page, "money")).to_contain_text("€5.00 captured")
    expect(by_id(page, "notice")).to_have_count(0)


def test_a_server_that_goes_takes_nothing_along(page: Page) -> None:
    """A banner says so; what is typed stays, and is sent once the server is back; then the page is up to date."""
    port = free_port()
    with make_server(port=port, seed=1) as server:
        sandbox = Sandbox(server)
        order = sandbox.authorized()
        page.goto(at(sandbox, f"orders/{order['id']}/"))
        expect(page.locator("#live")).to_have_text("live")
        snapshot = sandbox.get("/control/state/").json()
    expect(page.locator("#lost")).to_contain_text("The server is not responding")
    unfold(page, "menu-capture")
    page.locator("#amount-capture").fill("4.00")
    by_id(page, "act-merchant-capture").click()
    expect(page.locator("#lost")).to_contain_text("nothing was sent")
    expect(page.locator("#amount-capture")).to_have_value("4.00")
    with make_server(port=port, seed=1) as server:
        again = Sandbox(server)
        assert again.project["project_id"] == sandbox.project["project_id"]
        again.put("/control/state/", snapshot)
        expect(page.locator("#lost")).to_be_hidden()
        expect(page.locator("#live")).to_have_text("live")


def test_an_order_that_is_gone_is_told(page: Page) -> None:
    """The server was started again without it: the page says so, and stays."""
    port = free_port()
    with make_server(port=port, seed=1) as server:
        sandbox = Sandbox(server)
        order = sandbox.place(card())
        page.goto(at(sandbox, f"orders/{order['id']}/"))
        expect(page.locator("#live")).to_have_text("live")
    expect(page.locator("#lost")).to_contain_text("is not responding")
    with make_server(port=port, seed=1) as server:
        Sandbox(server)
        expect(page.locator("#lost")).to_contain_text("This page no longer exists")
        expect(by_id(page, "order-title")).to_be_visible()


@pytest.mark.parametrize("width", [390, 1280, 2560])
def test_long_numbers_push_nothing_out(sandbox: Sandbox, new_context: NewContext, width: int) -> None:
    """Amount, status and webhooks stay in sight; the whole number is at hand."""
    order = sandbox.place(card(), merchant_order_id=LONG)
    page = new_context(viewport={"width": width, "height": 900}).new_page()
    for path in ("orders/", f"orders/{order['id']}/"):
        page.goto(at(sandbox, path))
        table = by_id(page, "orders")
        box, card_box = table.bounding_box(), page.locator(".list").bounding_box()
        assert box is not None
        assert card_box is not None
        assert box["x"] + box["width"] <= card_box["x"] + card_box["width"]
        for column in (2, 3, 4):
            cell = table.locator(f"tbody td:nth-child({column})").bounding_box()
            assert cell is not None
            assert cell["x"] + cell["width"] <= card_box["x"] + card_box["width"], (path, column)
        assert table.locator(".order-link").get_attribute("title") == LONG
    page.goto(at(sandbox, "orders/"))
    list_box = page.locator(".list").bounding_box()
    assert list_box is not None
    assert width < 960 or list_box["width"] > 0.6 * width


def test_a_move_of_the_clock_says_what_it_did(sandbox: Sandbox, page: Page) -> None:
    """With links to the orders; the address can be loaded again, and other pages say nothing."""
    order = sandbox.place(card())
    page.goto(at(sandbox, "journal/"))
    unfold(page, "clock-menu")
    by_id(page, "clock-half-hour").click()
    notice = by_id(page, "notice")
    expect(notice).to_contain_text("Moved to 12:30:00: 1 expiry.")
    expect(notice).to_have_attribute("role", "status")
    notice.get_by_role("link").click()
    expect(by_id(page, "order-title")).to_have_text(order["id"][:8])
    expect(by_id(page, "notice")).to_have_count(0)


def test_keys_lead_through_the_list(sandbox: Sandbox, page: Page) -> None:
    """Down and up, into an order, to the search; and not while somebody types."""
    orders = [sandbox.place(card(), merchant_order_id=f"jk-{number}") for number in range(3)]
    page.goto(at(sandbox, "orders/"))
    for key in "jjk":
        page.keyboard.press(key)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(by_id(page, "order-title")).to_have_text("jk-1")
    page.keyboard.press("/")
    page.keyboard.type("jk-2")
    expect(by_id(page, "search")).to_have_value("jk-2")
    page.keyboard.press("Enter")
    expect(by_id(page, f"order-{orders[2]['id']}")).to_be_visible()
    expect(by_id(page, f"order-{orders[0]['id']}")).to_have_count(0)


def test_a_filter_acts_at_once(sandbox: Sandbox, page: Page) -> None:
    """And stands in the address."""
    sandbox.pay(sandbox.place(card()))
    still_new = sandbox.place(card())
    page.goto(at(sandbox, "orders/"))
    unfold(page, "filter")
    by_id(page, "filter-status").select_option("new")
    page.wait_for_url("**status=new**")
    expect(page.get_by_test_id("orders").locator("tbody tr")).to_have_count(1)
    expect(by_id(page, f"order-{still_new['id']}")).to_be_visible()


def test_a_phone_shows_the_story_as_a_list(watched: Sandbox, new_context: NewContext) -> None:
    """With the words of the picture, in euros; its calls open beside it, and nothing is wider than the phone."""
    order = watched.authorized()
    watched.take(order, "captures/amount", {"amount": 99_900})
    watched.settle()
    phone = new_context(viewport={"width": 390, "height": 844}).new_page()
    phone.goto(at(watched, f"orders/{order['id']}/"))
    expect(phone.locator(".sequence")).to_be_hidden()
    story = by_id(phone, "story")
    expect(story).to_contain_text("captures · €999.00")
    expect(story).to_contain_text("409 · €999.00 is too much: €20.00 are left to capture")
    story.get_by_text("captures · €999.00").click()
    expect(phone.locator("#dialog")).to_contain_text("captures/amount")
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    wide = new_context(viewport={"width": 1280, "height": 844}).new_page()
    wide.goto(at(watched, f"orders/{order['id']}/"))
    expect(wide.locator(".sequence")).to_be_visible()
    expect(by_id(wide, "story")).to_be_hidden()


def test_a_slider_leads_through_the_story(sandbox: Sandbox, new_context: NewContext) -> None:
    """The order as it was; the slider stays in hand while others go on, and works without scripts."""
    order = sandbox.authorized(expiration_period="P7D")
    sandbox.take(order, "captures/amount", {"amount": 500})
    address = f"{sandbox.url}/dashboard/{sandbox.project['project_id']}/orders/{order['id']}/"
    page = new_context(bypass_csp=True).new_page()
    page.goto(address)
    slider = page.get_by_label("Look back")
    slider.focus()
    page.keyboard.press("Home")
    expect(by_id(page, "moment")).to_contain_text("After 1 of")
    expect(by_id(page, "moment").locator(".pill").first).to_have_text("new")
    expect(page.locator(".sequence .later").first).to_be_hidden()
    assert "at=1" in page.url
    sandbox.take(order, "captures/amount", {"amount": 300})
    expect(by_id(page, "money")).to_contain_text("€8.00")
    expect(by_id(page, "moment")).to_contain_text("After 1 of")
    expect(slider).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(by_id(page, "moment")).to_contain_text("After 2 of")
    assert violations(page) == []
    by_id(page, "back-to-now").click()
    expect(by_id(page, "moment")).to_have_count(0)
    plain = new_context(java_script_enabled=False).new_page()
    plain.goto(address)
    plain.get_by_label("Look back").fill("3")
    by_id(plain, "look-back").get_by_role("button", name="Show").click()
    expect(by_id(plain, "moment")).to_contain_text("After 3 of")
