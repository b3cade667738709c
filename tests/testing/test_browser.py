"""A customer's browser for a shop in this process."""

from threading import Barrier

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from payment_sandbox.testing.project_fixture import PaymentSandbox
from tests.support.in_process import place


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


def test_a_customer_buys_with_two_clicks_and_returns_in_two_tabs(payment_sandbox: PaymentSandbox) -> None:
    """Cookies last, redirects are not followed, two clicks are concurrent, and a return has the service's ids."""
    browser = payment_sandbox.browser(starlette_shop(Barrier(2, timeout=60)))
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
        payment_sandbox.browser(Starlette()).returns(place(payment_sandbox))
