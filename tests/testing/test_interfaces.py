"""What ``deliver_to`` takes, and what it says about everything else."""

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from flask import Flask
from starlette.applications import Starlette

from payment_sandbox.testing.project import PaymentSandbox
from payment_sandbox.testing.shops.asgi import AsgiShop
from payment_sandbox.testing.shops.receiving import WsgiShop, wrap_application


def wsgi(environ: Any, start_response: Any) -> list[bytes]:
    """A function that speaks WSGI."""
    return []


async def asgi(scope: Any, receive: Any, send: Any) -> None:
    """A function that speaks ASGI."""


def wrapper(scope: Any, receive: Any, send: Any) -> Any:
    """A function that is no coroutine function, but returns a coroutine."""
    return asgi(scope, receive, send)


class Wsgi:
    """An object that speaks WSGI."""

    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        """Answer."""
        return []


class Asgi:
    """An object that speaks ASGI."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer."""


class Wrapped:
    """A middleware whose call is not a coroutine function, but returns a coroutine."""

    def __call__(self, scope: Any, receive: Any, send: Any) -> Any:
        """Answer."""
        return asgi(scope, receive, send)


def with_extra(environ: Any, start_response: Any, setting: int = 1) -> list[bytes]:
    """WSGI with an argument that has a default."""
    return []


def passed_on(*given: Any) -> Any:
    """A wrapper that passes everything on."""
    return wsgi(*given)


@pytest.mark.parametrize(
    "application",
    [
        wsgi,
        Wsgi(),
        with_extra,
        passed_on,
        functools.partial(wsgi),
        Flask("shop"),
        Flask("shop").wsgi_app,
        Wsgi().__call__,
    ],
)
def test_applications_that_speak_wsgi(application: Any) -> None:
    """Functions, methods, objects, partial calls and frameworks."""
    for _ in range(2):
        assert type(wrap_application(application)) is WsgiShop


@pytest.mark.parametrize(
    "application",
    [asgi, Asgi(), Wrapped(), functools.partial(asgi), Starlette(), wrapper],
)
def test_applications_that_speak_asgi(application: Any) -> None:
    """Coroutine functions, and what takes three arguments."""
    for _ in range(2):
        assert type(wrap_application(application)) is AsgiShop


app = Flask("shop")


def create_app() -> Flask:
    """A factory."""
    return Flask("shop")


OTHERS: dict[str, Callable[[], Any]] = {
    "not the address 'http://localhost:3000/webhook'. If a shop listens at this address, set webhook_url=": lambda: (
        "http://localhost:3000/webhook"
    ),
    "not the text 'shop.app:app': import the application": lambda: "shop.app:app",
    "not the function create_app, which takes 0 arguments: call it, if it creates the application": lambda: (
        create_app
    ),
    "not the class Flask": lambda: Flask,
    "not the module shop": lambda: ModuleType("shop"),
    "not the module tests.testing.test_interfaces: pass its app": lambda: sys.modules[__name__],
    "not a NoneType": lambda: None,
    "not a flask.testing.FlaskClient: pass its application": lambda: Flask("shop").test_client(),
    "which takes 1 arguments": lambda: len,
}


@pytest.mark.parametrize("told", OTHERS)
def test_everything_else_is_refused(payment_sandbox: PaymentSandbox, told: str) -> None:
    """With what was expected, and without changing the project."""
    with pytest.raises(TypeError) as refused:
        payment_sandbox.deliver_to(OTHERS[told]())
    assert "deliver_to takes a WSGI or ASGI application: a Flask, FastAPI" in str(refused.value)
    assert told in str(refused.value)
    assert payment_sandbox.client.project()["settings"]["webhook_url"] is None


def test_the_host_of_webhooks(payment_sandbox: PaymentSandbox) -> None:
    """That of their address; or the one that is set, for orders with an address of their own, too."""
    hosts: list[str] = []

    def note(environ: Any, start_response: Any) -> list[bytes]:
        hosts.append(environ["HTTP_HOST"])
        start_response("204 No Content", [])
        return []

    def visited(**order: Any) -> None:
        body = {"currency": "EUR", "amount": 5, "transactions": [{"payment_method": "wallet-web"}], **order}
        made = payment_sandbox.session.post(f"{payment_sandbox.base_url}/v1/orders/", json=body).json()
        payment_sandbox.act(made["id"], action="visit")

    payment_sandbox.deliver_to(note)
    visited()
    visited(webhook_url="https://shop.example:8443/hook")
    payment_sandbox.deliver_to(note, host="shop.local")
    visited(webhook_url="https://shop.example:8443/hook")
    assert hosts == ["testserver", "shop.example:8443", "shop.local"]


@pytest.mark.parametrize("host", [5, "", "two words", "a\r\nX: y", "http://shop.example"])
def test_a_host_that_is_none(payment_sandbox: PaymentSandbox, host: Any) -> None:
    """It would break the request, or be refused by every framework."""
    with pytest.raises(ValueError, match="but must be a host name such as"):
        payment_sandbox.deliver_to(Flask("shop"), host=host)
    payment_sandbox.deliver_to(Flask("shop"), host="[::1]:8000")
