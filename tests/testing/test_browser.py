"""A customer's browser in a shop of this process."""

from threading import Barrier
from typing import Any

import pytest
from flask import Flask, make_response, redirect, request
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from payment_sandbox.testing.project import PaymentSandbox

ORDER = {
    "currency": "EUR",
    "amount": 5,
    "return_url": "http://shop.example/thanks?lang=nl",
    "transactions": [{"payment_method": "wallet-web"}],
}


@pytest.fixture
def order(payment_sandbox: PaymentSandbox) -> dict[str, Any]:
    """A new order with a return address."""
    made: dict[str, Any] = payment_sandbox.session.post(
        f"{payment_sandbox.base_url}/v1/orders/", json=ORDER
    ).json()
    return made


def flask_shop(both: Barrier) -> Flask:
    """A WSGI application."""
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
        both.wait()
        return "bought"

    @app.get("/thanks")
    def thanks() -> str:
        return " ".join(request.args[name] for name in ("order_id", "project_id", "lang"))

    return app


def starlette_shop(both: Barrier) -> Starlette:
    """An ASGI application."""

    async def cart(request: Request) -> Response:
        if request.method == "GET":
            return PlainTextResponse(f"{request.cookies['cart']} socks")
        answer = Response(status_code=302, headers={"Location": "/cart"})
        answer.set_cookie("cart", (await request.body()).decode().partition("=")[2])
        return answer

    def buy(request: Request) -> Response:
        both.wait()
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
    """A shop in which two must buy at the same moment."""
    return request.param(Barrier(2, timeout=4))


def test_it_keeps_cookies_and_follows_nothing(payment_sandbox: PaymentSandbox, app: Any) -> None:
    """As a customer's does between two pages."""
    browser = payment_sandbox.browser(app)
    answer = browser.post("/cart", {"socks": 2})
    assert (answer.status_code, answer.location) == (302, "/cart")
    assert browser.get("/cart").text == "2 socks"


def test_it_clicks_twice_at_the_same_moment(payment_sandbox: PaymentSandbox, app: Any) -> None:
    """Neither is answered before the other has come."""
    assert [answer.text for answer in payment_sandbox.browser(app).double_click("/buy")] == ["bought"] * 2


@pytest.mark.parametrize("tabs", [1, 2])
def test_it_comes_back(payment_sandbox: PaymentSandbox, app: Any, order: dict[str, Any], tabs: int) -> None:
    """With the ids that the service adds."""
    answers = payment_sandbox.browser(app).returns(order["id"], tabs=tabs)
    text = f"{order['id']} {payment_sandbox.project_id} nl"
    assert [answer.text for answer in answers] == [text] * tabs
    assert len(payment_sandbox.client.happened()["returns"]) == 1


def test_it_is_seen(payment_sandbox: PaymentSandbox, app: Any, order: dict[str, Any]) -> None:
    """What it asked for is in the timeline."""
    browser = payment_sandbox.browser(app)
    browser.post("/cart", {"socks": 1})
    browser.returns(order["id"])
    told = [timeline_entry["label"] for timeline_entry in payment_sandbox.client.timeline()]
    assert "calls the shop: POST /cart" in told
    assert "returns to the shop" in told


def test_without_an_address_there_is_no_way_back(payment_sandbox: PaymentSandbox, app: Any) -> None:
    """The service would show a page of its own."""
    bare = payment_sandbox.session.post(
        f"{payment_sandbox.base_url}/v1/orders/", json={"currency": "EUR", "amount": 5}
    ).json()
    with pytest.raises(ValueError, match="has no return_url"):
        payment_sandbox.browser(app).returns(bare["id"])


def test_it_takes_applications_only(payment_sandbox: PaymentSandbox) -> None:
    """And says what it got."""
    with pytest.raises(TypeError, match="WSGI or ASGI"):
        payment_sandbox.browser("http://localhost:3000")
