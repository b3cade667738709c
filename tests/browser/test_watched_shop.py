"""The dashboard shows a shop's sale while its customer buys in another window."""

from collections.abc import Iterator
from threading import Thread

import pytest
import requests
from flask import Flask, redirect
from playwright.sync_api import Page, expect
from werkzeug.serving import make_server
from werkzeug.wrappers import Response

from tests.support.browser import by_id
from tests.support.driver import Sandbox, card


class HatShop(Flask):
    """A shop that sells one hat: each of its requests makes one call of the merchant API."""

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__("shop")
        self.sandbox, self.url, self.order_id, self.transaction_id = sandbox, "", "", ""
        self.add_url_rule("/checkout", view_func=self.checkout, methods=["POST"])
        self.add_url_rule("/webhook", view_func=self.webhook, methods=["POST"])
        self.add_url_rule("/thanks", view_func=self.read)
        self.add_url_rule("/ship", view_func=self.ship, methods=["POST"])
        self.add_url_rule("/return", view_func=self.take_back, methods=["POST"])

    def checkout(self) -> Response:
        """Send the customer to the payment page."""
        addresses = {"return_url": f"{self.url}/thanks", "webhook_url": f"{self.url}/webhook"}
        attempt = card(capture_mode="manual", expiration_period="P14D")
        order = self.sandbox.place(attempt, merchant_order_id="S-1001-1", **addresses)
        self.order_id, self.transaction_id = order["id"], order["transactions"][0]["id"]
        return redirect(f"http://{order['transactions'][0]['payment_url']}", 303)

    def read(self) -> str:
        """Read the order."""
        status = self.sandbox.get(f"/v1/orders/{self.order_id}/").json()["status"]
        return "thank you!" if status == "completed" else "we are waiting"

    def webhook(self) -> tuple[str, int]:
        """Read the order, and acknowledge the webhook."""
        self.read()
        return "", 204

    def ship(self) -> str:
        """Capture the amount."""
        path = f"/v1/orders/{self.order_id}/transactions/{self.transaction_id}/captures/"
        return self.sandbox.post(path, {}).text

    def take_back(self) -> str:
        """Refund the amount."""
        return self.sandbox.post(f"/v1/orders/{self.order_id}/refunds/", {}).text


@pytest.fixture
def hat_shop(sandbox: Sandbox) -> Iterator[str]:
    """The URL of a shop on a real HTTP server."""
    shop = HatShop(sandbox)
    server = make_server("127.0.0.1", 0, shop, threaded=True)
    shop.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield shop.url
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_dashboard_shows_a_whole_sale(
    sandbox: Sandbox, hat_shop: str, windows: tuple[Page, Page]
) -> None:
    """The dashboard shows a lost webhook, its retry, the capture at shipping, and a refund."""
    buying, watching = windows
    base = f"{sandbox.url}/dashboard/{sandbox.project['project_id']}"
    watching.goto(f"{base}/simulate/")
    by_id(watching, "switch-unreachable").click()
    expect(by_id(watching, "switch-unreachable")).to_have_text("on")
    checkout = requests.post(f"{hat_shop}/checkout", allow_redirects=False)
    buying.goto(checkout.headers["Location"])
    watching.goto(f"{base}/orders/")
    watching.locator("#rows").get_by_role("link", name="S-1001-1").click()
    picture = watching.locator("#picture")
    expect(picture).to_contain_text("creates the order")
    by_id(buying, "pay").click()
    expect(buying.locator("body")).to_contain_text("thank you!")
    expect(picture).to_contain_text("returns to the shop")
    expect(watching.locator("#picture .lost").first).to_contain_text("webhook, attempt 1")
    by_id(watching, "faults-on").click()
    retry = watching.locator("#more li").filter(has_text="ebhook attempt 2")
    retry.get_by_test_id("run-to-here").first.click()
    expect(picture).to_contain_text("webhook, attempt 2")
    expect(picture).to_contain_text("204")
    assert requests.post(f"{hat_shop}/ship").status_code == 200
    expect(picture).to_contain_text("captures")
    returned = requests.post(f"{hat_shop}/return")
    assert returned.status_code == 200
    expect(picture).to_contain_text("refunds")
    expect(by_id(watching, "refund")).to_contain_text("completed")
    assert {webhook["state"] for webhook in sandbox.webhooks()} == {"delivered"}
