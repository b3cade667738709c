"""Webhooks that a request to the shop causes arrive after the shop's response, as in production."""

from threading import Thread, current_thread
from typing import Any

import pytest
import requests
from flask import Flask, request
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from payment_sandbox.testing.project_fixture import PaymentSandbox

PROVIDER = "https://api.provider.example"
TRANSFER = {"currency": "EUR", "amount": 5, "transactions": [{"payment_method": "bank-transfer"}]}


class Shop:
    """A shop that logs its calls, and whether it has stored the order of a webhook."""

    def __init__(self, sandbox: PaymentSandbox) -> None:
        self.sandbox = sandbox
        self.stored_orders: set[str] = set()
        self.log: list[str] = []
        self.webhook_threads: set[Thread] = set()
        self.url = sandbox.base_url
        self.flask = Flask("shop")
        self.flask.testing = True
        self.flask.add_url_rule("/checkout", view_func=self.checkout, methods=["POST"])
        self.flask.add_url_rule("/webhook", view_func=self.webhook, methods=["POST"])

    def checkout(self) -> str:
        for _ in range(int(request.args.get("orders", 1))):
            order = self.call("POST", "/v1/orders/", TRANSFER)
            self.log.append("answered")
            self.stored_orders.add(order["id"])
        if "fail" in request.args:
            raise ZeroDivisionError
        return "thank you"

    def call(self, method: str, path: str, body: Any = None) -> Any:
        client: Any = requests if self.url == PROVIDER else self.sandbox.session
        return client.request(method, self.url + path, json=body, auth=(self.sandbox.api_key, "")).json()

    def webhook(self) -> str:
        order = self.call("GET", f"/v1/orders/{request.get_json()['order_id']}/")
        assert order["status"] == "processing"
        self.log.append("known" if order["id"] in self.stored_orders else "unknown")
        self.webhook_threads.add(current_thread())
        return ""


@pytest.fixture
def shop(payment_sandbox: PaymentSandbox) -> Shop:
    """A shop in this process that receives the project's webhooks."""
    shop = Shop(payment_sandbox)
    payment_sandbox.deliver_to(shop.flask)
    return shop


def test_a_request_that_fails_has_webhooks_too(shop: Shop) -> None:
    """The webhooks of an order arrive even if the request then fails."""
    with pytest.raises(ZeroDivisionError):
        shop.flask.test_client().post("/checkout?fail=1")
    assert shop.log == ["answered", "known"]
    shop.flask.testing = False
    assert shop.flask.test_client().post("/checkout?fail=1").status_code == 500
    assert shop.log == ["answered", "known"] * 2


@pytest.mark.parametrize("is_async", [True, False])
def test_an_asgi_application_gets_webhooks_after_its_response(
    payment_sandbox: PaymentSandbox, is_async: bool
) -> None:
    """Webhooks arrive after the response of views on the loop or on a thread."""
    log: list[str] = []

    def place() -> PlainTextResponse:
        payment_sandbox.session.post(f"{payment_sandbox.base_url}/v1/orders/", json=TRANSFER)
        log.append("answered")
        return PlainTextResponse("thank you")

    async def on_loop(request: Request) -> PlainTextResponse:
        return place()

    def on_thread(request: Request) -> PlainTextResponse:
        return place()

    async def webhook(request: Request) -> PlainTextResponse:
        log.append("webhook")
        return PlainTextResponse("")

    checkout = Route("/checkout", on_loop if is_async else on_thread, methods=["POST"])
    app = Starlette(routes=[checkout, Route("/webhook", webhook, methods=["POST"])])
    payment_sandbox.deliver_to(app)
    assert TestClient(app).post("/checkout").text == "thank you"
    assert log == ["answered", "webhook"]
    payment_sandbox.close()
    assert not hasattr(Starlette.__dict__["__call__"], "__wrapped__")


@pytest.mark.parametrize(
    ("is_intercepted", "timing", "log"),
    [
        (False, "after_response", ["answered"] * 3 + ["known"] * 3),
        (True, "after_response", ["answered"] * 3 + ["known"] * 3),
        (False, "before_response", ["unknown", "answered"] * 3),
    ],
)
def test_the_setting_decides_whether_the_shop_knows_the_order(
    shop: Shop, timing: str, log: list[str], is_intercepted: bool
) -> None:
    """With ``before_response``, webhooks arrive before the shop has stored the order, on the thread of its call."""
    if is_intercepted:
        shop.sandbox.intercept(PROVIDER)
        shop.url = PROVIDER
    shop.sandbox.client.change_settings(webhook_timing=timing)
    shop.flask.test_client().post("/checkout?orders=3")
    assert (shop.log, shop.webhook_threads) == (log, {current_thread()})
    assert [webhook["state"] for webhook in shop.sandbox.webhooks] == ["delivered"] * 3
