"""A shop in each framework whose applications the sandbox calls: it answers a webhook with its order's status."""

import json
import re
from collections.abc import Callable

PLAIN = ("/slash/", "/bare")
GUARDED = "/protected/"
SECRET = "a secret of more than 32 characters"
SHOPS: dict[str, Callable] = {}


class Payments:
    """The shops' client of the payment service."""

    def __init__(self, api) -> None:
        import httpx2

        self.api, self.key = api, (api.api_key, "")
        self.client = httpx2.AsyncClient(transport=api.httpx_transport)

    def address(self, body) -> str:
        """Return the address of the order that a webhook names."""
        return f"{self.api.base_url}/v1/orders/{json.loads(body)['order_id']}/"

    def read(self, body) -> str:
        """Return the status of the order that a webhook names."""
        return self.api.session.get(self.address(body)).json()["status"]

    async def aread(self, body) -> str:
        """Return the status of the order that a webhook names."""
        return (await self.client.get(self.address(body), auth=self.key)).json()["status"]


def shop(package: str) -> Callable[[Callable], Callable]:
    """Declare the shop that uses a package."""
    return lambda make: SHOPS.setdefault(package, make)


@shop("flask")
def flask_shop(payments):
    """Return a shop in Flask, with Flask-WTF."""
    from flask import Flask, request
    from flask_wtf import CSRFProtect

    app = Flask("shop")
    app.secret_key = SECRET
    csrf = CSRFProtect(app)

    @csrf.exempt
    def webhook():
        return payments.read(request.get_data())

    for path in PLAIN:
        app.add_url_rule(path, path, webhook, methods=["POST"])
    app.add_url_rule(GUARDED, view_func=lambda: payments.read(request.get_data()), methods=["POST"])
    return app


@shop("django")
def django_shop(payments):
    """Return a shop in Django."""
    from django.conf import settings
    from django.core.wsgi import get_wsgi_application
    from django.http import HttpResponse
    from django.urls import path as route
    from django.views.decorators.csrf import csrf_exempt

    def webhook(request):
        return HttpResponse(payments.read(request.body))

    class Urls:
        urlpatterns = [
            *(route(path[1:], csrf_exempt(webhook)) for path in PLAIN),
            route(GUARDED[1:], webhook),
        ]

    middleware = ("common.CommonMiddleware", "csrf.CsrfViewMiddleware")
    settings.configure(
        ROOT_URLCONF=Urls,
        SECRET_KEY=SECRET,
        ALLOWED_HOSTS=["testserver"],
        MIDDLEWARE=[f"django.middleware.{name}" for name in middleware],
    )
    return get_wsgi_application()


def starlette_webhook(payments):
    """Return the view of a shop in Starlette, and the arguments of starlette-csrf."""
    from starlette.responses import PlainTextResponse
    from starlette_csrf import CSRFMiddleware

    async def webhook(request):
        return PlainTextResponse(await payments.aread(await request.body()))

    exempt = [re.compile(path.rstrip("/")) for path in PLAIN]
    return webhook, {"middleware_class": CSRFMiddleware, "secret": SECRET, "exempt_urls": exempt}


@shop("fastapi")
def fastapi_shop(payments):
    """Return a shop in FastAPI."""
    from fastapi import FastAPI, Request

    app, (webhook, csrf) = FastAPI(), starlette_webhook(payments)
    webhook.__annotations__["request"] = Request
    for path in (*PLAIN, GUARDED):
        app.post(path)(webhook)
    app.add_middleware(**csrf)
    return app


@shop("starlette")
def starlette_shop(payments):
    """Return a shop in Starlette."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    webhook, csrf = starlette_webhook(payments)
    app = Starlette(routes=[Route(path, webhook, methods=["POST"]) for path in (*PLAIN, GUARDED)])
    app.add_middleware(**csrf)
    return app


@shop("litestar")
def litestar_shop(payments):
    """Return a shop in Litestar."""
    from litestar import Litestar, MediaType, Request, post
    from litestar.config.csrf import CSRFConfig

    async def webhook(request: Request) -> str:
        return await payments.aread(await request.body())

    declare = {"status_code": 200, "media_type": MediaType.TEXT}
    views = [
        post(list(PLAIN), exclude_from_csrf=True, **declare)(webhook),
        post(GUARDED, **declare)(webhook),
    ]
    return Litestar(views, csrf_config=CSRFConfig(secret=SECRET))


@shop("quart")
def quart_shop(payments):
    """Return a shop in Quart."""
    from quart import Quart, request

    app = Quart("shop")

    async def webhook():
        return await payments.aread(await request.get_data())

    for path in PLAIN:
        app.add_url_rule(path, path, webhook, methods=["POST"])
    return app
