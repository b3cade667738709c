"""Applications that ``deliver_to`` accepts, and its messages about other objects."""

import functools
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs

import aiohttp.web
import pytest
from flask import Blueprint, Flask, request
from starlette.applications import Starlette

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


class Wsgi:
    """A WSGI object."""

    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        """Answer."""
        return []


class Asgi:
    """An ASGI object."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer."""


class Wrapped:
    """An ASGI middleware whose plain call returns a coroutine."""

    def __call__(self, scope: Any, receive: Any, send: Any) -> Any:
        """Answer."""
        return asgi(scope, receive, send)


def wsgi_with_default(environ: Any, start_response: Any, setting: int = 1) -> list[bytes]:
    """A WSGI function with an optional third argument."""
    return []


def pass_on(*arguments: Any) -> Any:
    """A wrapper that forwards all arguments."""
    return wsgi(*arguments)


@pytest.mark.parametrize(
    "application",
    [
        wsgi,
        Wsgi(),
        wsgi_with_default,
        pass_on,
        functools.partial(wsgi),
        Flask("shop"),
        Flask("shop").wsgi_app,
        Wsgi().__call__,
    ],
)
def test_applications_that_speak_wsgi(application: Any) -> None:
    """Functions, methods, objects, partial calls and frameworks are recognized as WSGI."""
    for _ in range(2):
        assert type(wrap_application(application)) is WsgiShop


@pytest.mark.parametrize(
    "application",
    [asgi, Asgi(), Wrapped(), functools.partial(asgi), Starlette(), wrapper],
)
def test_applications_that_speak_asgi(application: Any) -> None:
    """Coroutine functions and callables with three arguments are recognized as ASGI."""
    for _ in range(2):
        assert type(wrap_application(application)) is AsgiShop


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
    "not the module shop": lambda: ModuleType("shop"),
    "not the module tests.testing.test_interfaces: pass its app": lambda: sys.modules[__name__],
    "not a NoneType": lambda: None,
    "not a flask.testing.FlaskClient: pass its application": lambda: Flask("shop").test_client(),
    "which takes 1 arguments": lambda: len,
    "not a aiohttp.web_app.Application: aiohttp answers only behind its own server: serve it on a port": (
        aiohttp.web.Application
    ),
    "Tornado answers only behind its own server: serve it on a port and set webhook_url": lambda: (
        of_framework("tornado.web", "Application", called_with=1)
    ),
    "Robyn answers only behind": lambda: of_framework("robyn", "Robyn"),
    "Sanic answers only behind": lambda: of_framework("sanic.app", "Sanic", called_with=3),
    "app.wsgifunc()": lambda: of_framework("web.application", "application"),
    "config.make_wsgi_app()": lambda: of_framework("pyramid.config", "Configurator"),
    "app.include_router(router)": lambda: of_framework("fastapi.routing", "APIRouter", called_with=3),
    "app.register_blueprint(blueprint)": lambda: Blueprint("shop", __name__),
}


def of_framework(module: str, name: str, called_with: int | None = None) -> Any:
    """Create an object of a class with this name, as a merchant's own subclass of a framework's class."""
    calls = {
        1: lambda self, request: None,
        3: lambda self, scope, receive, send: None,
    }
    members = {"__module__": module} | ({"__call__": calls[called_with]} if called_with is not None else {})
    return type("Shop", (type(name, (), members),), {})()


def test_a_root_of_cherrypy_is_refused_by_name(
    payment_sandbox: PaymentSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A root has exposed methods, and no base class of the framework."""

    class Root:
        def index(self) -> str:
            return ""

        index.exposed = True  # type: ignore[attr-defined]

    monkeypatch.setitem(sys.modules, "cherrypy", ModuleType("cherrypy"))
    for root in (Root(), Root):
        with pytest.raises(
            TypeError, match=r"pass the application of CherryPy, cherrypy\.Application\(root\)"
        ):
            payment_sandbox.deliver_to(root)


def test_an_application_that_shares_its_router_gets_a_warning(
    payment_sandbox: PaymentSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BlackSheep answers with the handlers of the application that came first; another router is its own."""
    first, second, third = Asgi(), Asgi(), Asgi()
    for application, router in ((first, "shared"), (second, "shared"), (third, "own")):
        application.router = router  # type: ignore[attr-defined]
    routing = ModuleType("blacksheep.server.routing")
    routing._apps_by_router_id = {id("shared"): {"app": first}, id("own"): {"app": third}}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, routing.__name__, routing)
    payment_sandbox.deliver_to(first)
    payment_sandbox.deliver_to(third)
    with pytest.warns(UserWarning, match="shares its router with another application"):
        payment_sandbox.deliver_to(second)


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
    """An ASGI shop that records a webhook."""

    async def shop(scope: Any, receive: Any, send: Any) -> None:
        headers, query = dict(scope["headers"]), parse_qs(scope["query_string"].decode())
        host, path = headers[b"host"].decode(), scope["path"].removeprefix("/")
        address = (scope["scheme"], host, path, query.get("x", [None])[0])
        seen.append(
            {"address": address, "type": headers[b"content-type"].decode(), "body": (await receive())["body"]}
        )
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    return shop


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


@pytest.mark.parametrize("host", [5, "", "two words", "a\r\nX: y", "http://shop.example"])
def test_an_invalid_host_is_refused(payment_sandbox: PaymentSandbox, host: Any) -> None:
    """An invalid host is refused, and an IPv6 address with a port is accepted."""
    with pytest.raises(ValueError, match="but must be a host name such as"):
        payment_sandbox.deliver_to(Flask("shop"), host=host)
    payment_sandbox.deliver_to(Flask("shop"), host="[::1]:8000")
