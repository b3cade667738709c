"""The dashboard in a browser: live in every window, readable for everybody, and quick."""

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from payment_sandbox.web.dashboard.frame import VIEW_TITLES as FRAME_VIEWS
from tests.support.browser import NewContext, address, by_id, unfold, violations
from tests.support.driver import Sandbox, by, card
from tests.support.shop import Received, Shop

VIEW_TITLES = (*FRAME_VIEWS, "order", "webhook", "request")
WIDTHS = (390, 1280, 1920, 2560)
WIRE_BYTES_MAX = 100_000


@pytest.fixture
def busy(watched: Sandbox, shop: Shop) -> tuple[Sandbox, dict[str, str]]:
    """A project with a lot in it, and the path of each view."""
    calls = []

    def answer(received: Received) -> int:
        calls.append(received)
        watched.read(received.body["order_id"])
        return 503 if len(calls) == 1 else 204

    shop.answer = answer
    held = watched.authorized(merchant_order_id="shop-1001")
    watched.take(held, "captures/amount", {"amount": 500})
    watched.pay(watched.place(card(payment_method_details={"recurring_type": "first"}), amount=700))
    watched.post("/v1/bankqr/", {"amount": 500, "description": "Coffee"})
    watched.post(f"/v1/orders/{held['id']}/refunds/", {"amount": 99_999})
    watched.settle()
    webhook, entry = watched.webhooks()[0], watched.get("/control/journal/").json()["items"][0]
    paths = {view: f"{view}/" for view in VIEW_TITLES}
    paths["order"] = f"orders/{held['id']}/"
    paths["webhook"] = f"webhooks/{webhook['id']}/"
    paths["request"] = f"requests/{entry['id']}/"
    return watched, paths


def at(sandbox: Sandbox, path: str) -> str:
    """The address of a view."""
    return f"{sandbox.url}/dashboard/{sandbox.project['project_id']}/{path}"


@pytest.mark.parametrize("view", VIEW_TITLES)
def test_every_view_is_accessible_everywhere(
    busy: tuple[Sandbox, dict[str, str]], new_context: NewContext, view: str
) -> None:
    """Nothing for axe-core to find, light and dark, and nothing scrolls sideways at any width."""
    sandbox, paths = busy
    page = new_context(bypass_csp=True).new_page()
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(at(sandbox, paths[view]))
        page.emulate_media(color_scheme="light")
        assert violations(page, only_colours=width == WIDTHS[-1]) == [], width
        page.emulate_media(color_scheme="dark")
        assert violations(page, only_colours=True) == [], width
        wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        assert not wide, width


@pytest.mark.parametrize("view", VIEW_TITLES)
def test_every_view_is_light_and_asks_nobody_else(
    busy: tuple[Sandbox, dict[str, str]], new_context: NewContext, view: str
) -> None:
    """Under 100 KB in all, from the sandbox alone; the console stays empty."""
    sandbox, paths = busy
    page = new_context().new_page()
    hosts: set[str] = set()
    noise: list[str] = []
    sizes: list[int] = []
    page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
    page.on("console", lambda message: noise.append(message.text))
    page.on("pageerror", lambda error: noise.append(str(error)))
    page.on("response", lambda answer: sizes.append(int(answer.headers.get("content-length", 0))))
    page.goto(at(sandbox, paths[view]))
    expect(page.locator("#live")).to_have_text("live")
    assert (hosts, noise) == ({urlsplit(sandbox.url).netloc}, [])
    assert sum(sizes) <= WIRE_BYTES_MAX


@pytest.fixture
def windows(new_context: NewContext) -> tuple[Page, Page]:
    """Two windows of one browser."""
    context: BrowserContext = new_context(viewport={"width": 1500, "height": 1000})
    return context.new_page(), context.new_page()


def test_a_hosted_order_is_seen_live(watched: Sandbox, shop: Shop, windows: tuple[Page, Page]) -> None:
    """While the customer pays in one window, the other one shows each step."""
    paying, watching = windows
    shop.answer = lambda received: 204
    watching.goto(at(watched, "orders/"))
    expect(by_id(watching, "empty")).to_be_visible()
    order = watched.place(merchant_order_id="shop-1", payment_methods=["wallet-web"])
    expect(by_id(watching, f"order-{order['id']}")).to_contain_text("new")
    watching.locator("#rows").get_by_role("link", name="shop-1").click()
    paying.goto(address(order))
    by_id(paying, "method-wallet-web").click()
    expect(by_id(watching, "facts")).to_contain_text("wallet-web")
    picture = watching.locator("#picture")
    expect(picture).to_contain_text("opens the payment page")
    by_id(paying, "pay").click()
    expect(picture).to_contain_text("approved")
    expect(picture).to_contain_text("204")
    expect(by_id(watching, "order-title").locator("..")).to_contain_text("completed")


def test_a_declined_card_is_red(watched: Sandbox, windows: tuple[Page, Page]) -> None:
    """With the reason."""
    paying, watching = windows
    order = watched.place(card())
    watching.goto(at(watched, f"orders/{order['id']}/"))
    paying.goto(address(order))
    by_id(paying, "card-declined").check()
    by_id(paying, "pay").click()
    expect(by_id(watching, "reason")).to_contain_text("Do not honour")
    expect(watching.locator("#picture .failed")).not_to_have_count(0)


def test_a_lost_webhook_is_seen_and_retried(watched: Sandbox, shop: Shop, page: Page) -> None:
    """Red at first; two minutes later, at the press of a button, it arrives."""
    shop.answer = lambda received: 204 if len(shop.received) > 1 else 503
    order = watched.acted(watched.place(card()), "customer visit")
    page.goto(at(watched, f"orders/{order['id']}/"))
    expect(page.locator("#picture .failed").first).to_contain_text("webhook, attempt 1")
    retry = page.locator("#more li").filter(has_text="ebhook attempt 2")
    retry.get_by_test_id("run-to-here").click()  # the expiry is the first entry until the attempt has ended
    expect(page.locator("#picture")).to_contain_text("webhook, attempt 2")
    assert watched.webhooks()[0]["state"] == "delivered"
    by_id(page, "redeliver").click()
    expect(page.locator("#picture")).to_contain_text("webhook, attempt 3")


def test_a_delayed_capture_comes_seven_days_later(watched: Sandbox, windows: tuple[Page, Page]) -> None:
    """At the press of a button; the other window sees the clock move."""
    moving, watching = windows
    order = watched.pay(watched.place(card(capture_mode="delayed", expiration_period="P7D")))
    watching.goto(at(watched, f"orders/{order['id']}/"))
    expect(watching.locator("#picture")).to_contain_text("delayed capture · due")
    moving.goto(at(watched, "webhooks/"))
    by_id(moving, "clock-week").click()
    expect(by_id(moving, "now")).to_have_text("Sun 08 Mar 2026 12:00:00")
    expect(by_id(watching, "now")).to_have_text("Sun 08 Mar 2026 12:00:00")
    expect(watching.locator("#picture")).not_to_contain_text("due")
    expect(watching.locator("#picture")).to_contain_text("delayed capture")


def test_the_picture_says_what_the_timeline_says(watched: Sandbox, page: Page) -> None:
    """The same entries in the same order, as the pytest report has them; calls are in words."""
    order = watched.pay(watched.place(card()))
    watched.settle()
    page.goto(at(watched, f"orders/{order['id']}/"))
    told = watched.get("/control/timeline/", params={"order_id": order["id"]}).json()["items"]
    rows = page.locator("#picture .row:not(.missing)")
    expect(rows).to_have_count(len(told))
    for number, item in enumerate(told):
        words = {"request": "creates the order · €10.00"}.get(item["kind"], item["label"])
        expect(rows.nth(number)).to_contain_text(words)


def test_a_click_opens_headers_and_bodies(watched: Sandbox, page: Page) -> None:
    """In a dialog that the keyboard closes; with the address of a page for other windows."""
    order = watched.place(card(), merchant_order_id="shop-7")
    page.goto(at(watched, f"orders/{order['id']}/"))
    page.locator(".sequence a").first.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Content-Type")
    expect(dialog).to_contain_text('"merchant_order_id": "shop-7"')
    page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()


def test_what_somebody_types_stays(watched: Sandbox, page: Page) -> None:
    """While everything around it is renewed."""
    order = watched.authorized()
    page.goto(at(watched, f"orders/{order['id']}/"))
    expect(page.locator("#live")).to_have_text("live")
    unfold(page, "menu-capture")
    page.locator("#amount-capture").fill("3.33")
    watched.place(by("wallet-web"), merchant_order_id="another")
    expect(page.locator("#rows")).to_contain_text("another")
    expect(page.locator("#amount-capture")).to_have_value("3.33")


def test_it_works_without_scripts(watched: Sandbox, new_context: NewContext) -> None:
    """For reading and acting."""
    page = new_context(java_script_enabled=False).new_page()
    page.goto(at(watched, "orders/"))
    by_id(page, "create-test-order").click()
    unfold(page, "act-as")
    by_id(page, "act-customer-choose").click()
    by_id(page, "act-customer-pay").click()
    expect(page.locator("#facts")).to_contain_text("completed")
    page.locator("#picture a").first.click()
    expect(page.locator("h1")).to_contain_text("Webhook")


def test_a_newcomer_pays_within_few_clicks(watched: Sandbox, page: Page) -> None:
    """Test order, payment page, method, pay."""
    page.goto(at(watched, "orders/"))
    by_id(page, "create-test-order").click()
    with page.expect_popup() as opened:
        by_id(page, "open-page").click()
    paying = opened.value
    by_id(paying, "method-credit-card").click()
    by_id(paying, "pay").click()
    expect(page.locator("#facts")).to_contain_text("completed")
