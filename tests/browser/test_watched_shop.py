"""The dashboard shows the sales of the how-to's shop while customers buy in another window."""

from collections.abc import Iterator
from threading import Thread

import pytest
import requests
from flask import Flask
from playwright.sync_api import Page, expect
from werkzeug.serving import make_server

from tests.howto.sock_shop.payments import Payments
from tests.howto.sock_shop.shop import make_shop
from tests.support.browser import by_id
from tests.support.driver import Sandbox


@pytest.fixture
def sock_shop(sandbox: Sandbox) -> Iterator[str]:
    """The URL of the how-to's shop, on a real HTTP server."""
    server = make_server("127.0.0.1", 0, Flask("to be replaced"), threaded=True)
    address = f"http://127.0.0.1:{server.server_port}"
    server.app = make_shop(Payments(sandbox.url, sandbox.key), address)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield address
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_dashboard_shows_a_whole_sale(
    sandbox: Sandbox, sock_shop: str, windows: tuple[Page, Page]
) -> None:
    """The dashboard shows a lost webhook, its retry, the capture at shipping, and a refund."""
    buying, watching = windows
    base = f"{sandbox.url}/dashboard/{sandbox.project['project_id']}"
    watching.goto(f"{base}/simulate/")
    by_id(watching, "switch-unreachable").click()
    expect(by_id(watching, "switch-unreachable")).to_have_text("on")
    checkout = requests.post(f"{sock_shop}/checkout", data={"hat": 1}, allow_redirects=False)
    buying.goto(checkout.headers["Location"])
    watching.goto(f"{base}/orders/")
    watching.locator("#rows").get_by_role("link", name="S-1001-1").click()
    picture = watching.locator("#picture")
    expect(picture).to_contain_text("creates the order")
    by_id(buying, "pay").click()
    expect(buying.locator("body")).to_contain_text("Sale S-1001: thank you!")
    expect(picture).to_contain_text("returns to the shop")
    expect(watching.locator("#picture .lost").first).to_contain_text("webhook, attempt 1")
    by_id(watching, "faults-on").click()
    retry = watching.locator("#more li").filter(has_text="ebhook attempt 2")
    retry.get_by_test_id("run-to-here").first.click()
    expect(picture).to_contain_text("webhook, attempt 2")
    expect(picture).to_contain_text("204")
    assert requests.post(f"{sock_shop}/sales/S-1001/ship").status_code == 200
    expect(picture).to_contain_text("captures")
    returned = requests.post(f"{sock_shop}/sales/S-1001/return", data={"hat": 1, "slip": "R-1"})
    assert returned.status_code == 200
    expect(picture).to_contain_text("refunds")
    expect(by_id(watching, "refund")).to_contain_text("completed")
    assert {webhook["state"] for webhook in sandbox.webhooks()} == {"delivered"}
