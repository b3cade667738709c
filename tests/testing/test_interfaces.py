"""Applications that ``deliver_to`` accepts, and its messages about other objects."""

import functools
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from flask import Blueprint, Flask, request
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from payment_sandbox.testing.project_fixture import PaymentSandbox
from payment_sandbox.testing.shops.asgi import AsgiShop
from payment_sandbox.testing.shops.receiving import WsgiShop, wrap_application
from tests.support.in_process import place


def wsgi(environ: Any, start_response: Any) -> list[bytes]:
    """A WSGI function."""
    return []


async def asgi(scope: Any, receive: Any, send: Any) -> None:
    """An ASGI function."""


def wrapper(scope: Any, receive: Any, send: Any) -> Any:
    """A plain function that returns a coroutine."""
    return asgi(scope, receive, send)


def pass_on(*arguments: Any) -> Any:
    """A wrapper that forwards all arguments."""
    return wsgi(*arguments)


@pytest.mark.parametrize(
    ("application", "interface"),
    [
        (wsgi, WsgiShop),
        (pass_on, WsgiShop),
        (functools.partial(wsgi), WsgiShop),
        (Flask("shop"), WsgiShop),
        (Flask("shop").wsgi_app, WsgiShop),
        (asgi, AsgiShop),
        (functools.partial(asgi), AsgiShop),
        (Starlette(), AsgiShop),
        (wrapper, AsgiShop),
    ],
)
def test_the_interface_of_an_application_is_recognized(application: Any, interface: type) -> None:
    """Functions, methods, objects, partial calls, wrappers and frameworks are recognized."""
    assert type(wrap_application(application)) is interface


app = Flask("shop")


def create_app() -> Flask:
    """An application factory."""
    return Flask("shop")


INVALID_APPLICATIONS: dict[str, Callable[[], Any]] = {
    "not the address 'http://localhost:3000/webhook'. If a shop listens at this address, set webhook_url=": lambda: (
        "http://localhost:3000/webhook"
    ),
    "not the text 'shop.app:app': import the application": lambda: "shop.app:app",
    "not the function create_app, which takes 0 arguments: call it, if it creates the application": lambda: (
        create_app
    ),
    "not the class Flask": lambda: Flask,
    "not the module tests.testing.test_interfaces: pass its app": lambda: sys.modules[__name__],
    "not a NoneType": lambda: None,
    "not a flask.testing.FlaskClient: pass its application": lambda: Flask("shop").test_client(),
    "app.register_blueprint(blueprint)": lambda: Blueprint("shop", __name__),
    "Tornado answers only behind its own server: serve it on a port and set webhook_url": type(
        "Application", (), {"__module__": "tornado.web", "__call__": lambda self, request: None}
    ),
}


@pytest.mark.parametrize("message", INVALID_APPLICATIONS)
def test_everything_else_is_refused(payment_sandbox: PaymentSandbox, message: str) -> None:
    """Other objects are refused with a helpful message, and the project stays unchanged."""
    with pytest.raises(TypeError) as raised:
        payment_sandbox.deliver_to(INVALID_APPLICATIONS[message]())
    assert "deliver_to takes a WSGI or ASGI application: a Flask, FastAPI" in str(raised.value)
    assert message in str(raised.value)
    assert payment_sandbox.client.project()["settings"]["webhook_url"] is None


Webhook = dict[str, Any]


def by_wsgi(seen: list[Webhook]) -> Any:
    """A Flask shop that records a webhook."""
    shop = Flask("shop")

    @shop.post("/<path:path>")
    def webhook(path: str) -> str:
        address = (request.scheme, request.host, path, request.args.get("x"))
        seen.append({"address": address, "type": request.mimetype, "body": request.get_data()})
        return ""

    return shop


def by_asgi(seen: list[Webhook]) -> Any:
    """A Starlette shop that records a webhook."""

    async def webhook(call: Request) -> Response:
        url = call.url
        address = (url.scheme, call.headers["Host"], call.path_params["path"], call.query_params.get("x"))
        seen.append({"address": address, "type": call.headers["Content-Type"], "body": await call.body()})
        return Response()

    return Starlette(routes=[Route("/{path:path}", webhook, methods=["POST"])])


@pytest.mark.parametrize("interface", [by_wsgi, by_asgi])
def test_a_webhook_arrives_whole(payment_sandbox: PaymentSandbox, interface: Callable[..., Any]) -> None:
    """It has the scheme, host, path, query and body of its address, unless ``host`` overrides the host."""
    seen: list[Webhook] = []

    def visit(**order: Any) -> None:
        payment_sandbox.act(place(payment_sandbox, **order), action="visit")

    def check() -> None:
        payment_sandbox.deliver_to(interface(seen))
        visit()
        payment_sandbox.deliver_to(interface(seen), "https://shop.test:8443/hooks/w%C3%B6b?x=%C3%B6")
        visit()
        visit(webhook_url="https://shop.example/hook")
        payment_sandbox.deliver_to(interface(seen), host="shop.local")
        visit(webhook_url="https://shop.example:8443/hook")

    with ThreadPoolExecutor(1) as thread:  # Playwright leaves a loop on the test thread
        thread.submit(check).result()
    assert [each["address"] for each in seen] == [
        ("http", "testserver", "webhook", None),
        ("https", "shop.test:8443", "hooks/wöb", "ö"),
        ("https", "shop.example", "hook", None),
        ("https", "shop.local", "hook", None),
    ]
    assert {each["type"] for each in seen} == {"application/json"}
    assert all(b"status_changed" in each["body"] for each in seen)
    for host in (5, "", "two words", "a\r\nX: y", "http://shop.example"):
        with pytest.raises(ValueError, match="but must be a host name such as"):
            payment_sandbox.deliver_to(Flask("shop"), host=host)  # type: ignore[arg-type]
    payment_sandbox.deliver_to(Flask("shop"), host="[::1]:8000")
