"""A customer's browser for a shop in this process."""

from threading import Barrier
from typing import Any

import pytest
from flask import Flask, make_response, redirect, request
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from payment_sandbox.testing.project_fixture import PaymentSandbox

ORDER = {
    "currency": "EUR",
    "amount": 5,
    "return_url": "http://shop.example/thanks?lang=nl",
    "transactions": [{"payment_method": "wallet-web"}],
}


@pytest.fixture
def order(payment_sandbox: PaymentSandbox) -> dict[str, Any]:
    """A new order with a return address."""
    order: dict[str, Any] = payment_sandbox.session.post(
        f"{payment_sandbox.base_url}/v1/orders/", json=ORDER
    ).json()
    return order


def flask_shop(barrier: Barrier) -> Flask:
    """A WSGI shop whose purchases wait for each other."""
    app = Flask("shop")

    @app.post("/cart")
    def cart() -> Any:
        answer = make_response(redirect("/cart"))
        answer.set_cookie("cart", request.form["socks"])
        return answer

    @app.get("/cart")
    def show() -> str:
        return f"{request.cookies['cart']} socks"

    @app.post("/buy")
    def buy() -> str:
        barrier.wait()
        return "bought"

    @app.get("/thanks")
    def thanks() -> str:
        return " ".join(request.args[name] for name in ("order_id", "project_id", "lang"))

    return app


def starlette_shop(barrier: Barrier) -> Starlette:
    """An ASGI shop whose purchases wait for each other."""

    async def cart(request: Request) -> Response:
        if request.method == "GET":
            return PlainTextResponse(f"{request.cookies['cart']} socks")
        answer = Response(status_code=302, headers={"Location": "/cart"})
        answer.set_cookie("cart", (await request.body()).decode().partition("=")[2])
        return answer

    def buy(request: Request) -> Response:
        barrier.wait()
        return PlainTextResponse("bought")

    async def thanks(request: Request) -> Response:
        return PlainTextResponse(
            " ".join(request.query_params[name] for name in ("order_id", "project_id", "lang"))
        )

    return Starlette(
        routes=[
            Route("/cart", cart, methods=["GET", "POST"]),
            Route("/buy", buy, methods=["POST"]),
            Route("/thanks", thanks),
        ]
    )


@pytest.fixture(params=[flask_shop, starlette_shop], ids=["wsgi", "asgi"])
def app(request: pytest.FixtureRequest) -> Any:
    """A shop in which two purchases must happen at the same time."""
    return request.param(Barrier(2, timeout=60))


def test_the_browser_keeps_cookies_and_follows_no_redirects(
    payment_sandbox: PaymentSandbox, app: Any
) -> None:
    """The browser keeps cookies between requests, and does not follow redirects."""
    browser = payment_sandbox.browser(app)
    answer = browser.post("/cart", {"socks": 2})
    assert (answer.status_code, answer.location) == (302, "/cart")
    assert browser.get("/cart").text == "2 socks"


def test_a_double_click_sends_concurrent_requests(payment_sandbox: PaymentSandbox, app: Any) -> None:
    """A double click sends two concurrent requests."""
    assert [answer.text for answer in payment_sandbox.browser(app).double_click("/buy")] == ["bought"] * 2


@pytest.mark.parametrize("tabs", [1, 2])
def test_the_browser_returns_to_the_shop(
    payment_sandbox: PaymentSandbox, app: Any, order: dict[str, Any], tabs: int
) -> None:
    """A return opens the return address with the IDs that the service adds, in one or more tabs."""
    answers = payment_sandbox.browser(app).returns(order["id"], tabs=tabs)
    text = f"{order['id']} {payment_sandbox.project_id} nl"
    assert [answer.text for answer in answers] == [text] * tabs
    assert len(payment_sandbox.client.happened()["returns"]) == 1


def test_the_timeline_shows_the_browser(
    payment_sandbox: PaymentSandbox, app: Any, order: dict[str, Any]
) -> None:
    """The timeline shows the browser's requests and returns."""
    browser = payment_sandbox.browser(app)
    browser.post("/cart", {"socks": 1})
    browser.returns(order["id"])
    labels = [timeline_entry["label"] for timeline_entry in payment_sandbox.client.timeline()]
    assert "calls the shop: POST /cart" in labels
    assert "returns to the shop" in labels


def test_a_return_without_a_return_url_is_refused(payment_sandbox: PaymentSandbox, app: Any) -> None:
    """A return of an order without a return_url is refused."""
    order_without_url = payment_sandbox.session.post(
        f"{payment_sandbox.base_url}/v1/orders/", json={"currency": "EUR", "amount": 5}
    ).json()
    with pytest.raises(ValueError, match="has no return_url"):
        payment_sandbox.browser(app).returns(order_without_url["id"])


def test_a_url_is_no_application_for_the_browser(payment_sandbox: PaymentSandbox) -> None:
    """A URL is refused as an application."""
    with pytest.raises(TypeError, match="WSGI or ASGI"):
        payment_sandbox.browser("http://localhost:3000")
