"""The shop of the how-to, watched on the dashboard while customers buy in another window."""

from collections.abc import Iterator
from threading import Thread

import pytest
import requests
from flask import Flask
from playwright.sync_api import Page, expect
from werkzeug.serving import make_server

from tests.howto.sock_shop.payments import Payments
from tests.howto.sock_shop.shop import make_shop
from tests.support.browser import NewContext, by_id
from tests.support.driver import Sandbox


@pytest.fixture
def sock_shop(sandbox: Sandbox) -> Iterator[str]:
    """The address of the shop, which sells socks for real HTTP requests."""
    server = make_server("127.0.0.1", 0, Flask("to be replaced"), threaded=True)
    address = f"http://127.0.0.1:{server.server_port}"
    server.app = make_shop(Payments(sandbox.url, sandbox.key), address)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield address
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def windows(new_context: NewContext) -> tuple[Page, Page]:
    """One window to buy in, one to watch."""
    context = new_context(viewport={"width": 1500, "height": 1000})
    return context.new_page(), context.new_page()


def checked_out(sock_shop: str) -> str:
    """The payment page to which the shop sends a customer who buys a hat."""
    answer = requests.post(f"{sock_shop}/checkout", data={"hat": 1}, allow_redirects=False, timeout=10)
    assert answer.status_code == 303
    return answer.headers["Location"]


def test_the_whole_life_of_a_sale_is_seen(
    sandbox: Sandbox, sock_shop: str, windows: tuple[Page, Page]
) -> None:
    """A lost webhook, its retry two minutes later, the shipping with its capture, and a refund."""
    buying, watching = windows
    watching.goto(f"{sandbox.url}/dashboard/{sandbox.project['project_id']}/orders/")
    by_id(watching, "switch-unreachable").click()
    expect(by_id(watching, "switch-unreachable")).to_have_text("on")
    buying.goto(checked_out(sock_shop))
    watching.locator("#rows").get_by_role("link", name="S-1001-1").click()
    picture = watching.locator("#picture")
    expect(picture).to_contain_text("creates the order")
    by_id(buying, "pay").click()
    expect(buying.locator("body")).to_contain_text("Sale S-1001: thank you!")
    expect(picture).to_contain_text("returns to the shop")
    expect(watching.locator("#picture .lost").first).to_contain_text("webhook, attempt 1")
    by_id(watching, "switch-unreachable").click()
    retry = watching.locator("#more li").filter(has_text="ebhook attempt 2")
    retry.get_by_test_id("run-to-here").first.click()
    expect(picture).to_contain_text("webhook, attempt 2")
    expect(picture).to_contain_text("204")
    assert requests.post(f"{sock_shop}/sales/S-1001/ship", timeout=10).status_code == 200
    expect(picture).to_contain_text("captures")
    back = requests.post(f"{sock_shop}/sales/S-1001/return", data={"hat": 1, "slip": "R-1"}, timeout=10)
    assert back.status_code == 200
    expect(picture).to_contain_text("refunds")
    expect(by_id(watching, "refund")).to_contain_text("completed")
    assert {webhook["state"] for webhook in sandbox.webhooks()} == {"delivered"}


def test_a_declined_card_is_seen_and_another_one_tried(
    sandbox: Sandbox, sock_shop: str, windows: tuple[Page, Page]
) -> None:
    """Each try is an order of its own in this shop; the first one shows the reason."""
    buying, watching = windows
    buying.goto(checked_out(sock_shop))
    watching.goto(f"{sandbox.url}/dashboard/{sandbox.project['project_id']}/orders/")
    watching.locator("#rows").get_by_role("link", name="S-1001-1").click()
    by_id(buying, "card-declined").check()
    by_id(buying, "pay").click()
    expect(buying.locator("body")).to_contain_text("that did not work")
    expect(by_id(watching, "reason")).to_have_text("Reason: Do not honour")
    expect(watching.locator("#picture")).to_contain_text("declined")
    again = requests.post(f"{sock_shop}/sales/S-1001/pay", allow_redirects=False, timeout=10)
    expect(watching.locator("#rows")).to_contain_text("S-1001-2")
    buying.goto(again.headers["Location"])
    by_id(buying, "pay").click()
    expect(buying.locator("body")).to_contain_text("thank you!")
    expect(watching.locator("#rows")).to_contain_text("authorized")
    told = sandbox.get("/control/review/").json()["items"]
    assert told == [], "the shop makes no mistakes"
