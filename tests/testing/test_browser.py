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
from tests.support.in_process import place


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
        names = ("order_id", "project_id", "lang")
        return PlainTextResponse(" ".join(request.query_params[name] for name in names))

    routes = [Route("/cart", cart, methods=["GET", "POST"]), Route("/buy", buy, methods=["POST"])]
    return Starlette(routes=[*routes, Route("/thanks", thanks)])


@pytest.fixture(params=[flask_shop, starlette_shop], ids=["wsgi", "asgi"])
def app(request: pytest.FixtureRequest) -> Any:
    """A shop in which two purchases must happen at the same time."""
    return request.param(Barrier(2, timeout=60))


def test_a_customer_buys_with_two_clicks_and_returns_in_two_tabs(
    payment_sandbox: PaymentSandbox, app: Any
) -> None:
    """Cookies last, redirects are not followed, two clicks are concurrent, and a return has the service's ids."""
    browser = payment_sandbox.browser(app)
    answer = browser.post("/cart", {"socks": 2})
    assert (answer.status_code, answer.location) == (302, "/cart")
    assert browser.get("/cart").text == "2 socks"
    assert [answer.text for answer in browser.double_click("/buy")] == ["bought"] * 2
    order_id = place(payment_sandbox, return_url="http://shop.example/thanks?lang=nl")
    thanks = f"{order_id} {payment_sandbox.project_id} nl"
    for tabs in (1, 2):
        assert [answer.text for answer in browser.returns(order_id, tabs=tabs)] == [thanks] * tabs
    assert len(payment_sandbox.client.happened()["returns"]) == 2
    labels = [each["label"] for each in payment_sandbox.client.timeline()]
    assert {"calls the shop: POST /cart", "returns to the shop"} <= {*labels}


def test_what_is_no_application_or_has_no_return_address_is_refused(payment_sandbox: PaymentSandbox) -> None:
    """The errors say what is expected."""
    with pytest.raises(TypeError, match="WSGI or ASGI"):
        payment_sandbox.browser("http://localhost:3000")
    with pytest.raises(ValueError, match="has no return_url"):
        payment_sandbox.browser(flask_shop(Barrier(1))).returns(place(payment_sandbox))
