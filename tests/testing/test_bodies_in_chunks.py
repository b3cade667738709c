"""Chunked requests to the shop, whose bodies have no declared length."""

from contextlib import closing
from io import BufferedReader, BytesIO
from typing import Any

import httpx
import pytest
from flask import Flask, request
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from werkzeug.test import run_wsgi_app

from payment_sandbox.testing.environments import build_environ
from payment_sandbox.testing.shops.browser import AsgiBridge
from payment_sandbox.testing.shops.shop_requests import unwatch, watch
from payment_sandbox.testing.shops.submitting import Submission, set_observer

BODY = b"socks=2" * 5_000


class Connection(BufferedReader):
    """A connection that stays open: reading past the received bytes would block forever."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Read received bytes."""
        if size is None or not 0 <= size <= len(BODY) - self.tell():
            pytest.fail("the read would block")
        return super().read(size)


class SecondClick:
    """Submits each form twice."""

    def attach(self, project: Any, lookup: Any = None) -> None:
        """Do nothing."""

    def end(self, failure: BaseException | None) -> None:
        """Do nothing."""

    def visit(self, url: str, cookies: str) -> None:
        """Do nothing."""

    def submit(self, path: str, body: bytes) -> Submission:
        """Submit the form again."""
        return Submission(body, body)


def chunked_environ(**overrides: Any) -> dict[str, Any]:
    """Return the WSGI environment of a chunked request."""
    environ = build_environ("POST", "http://shop.example/buy", [], BODY)
    del environ["CONTENT_LENGTH"]
    return {**environ, "HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True, **overrides}


def test_the_second_click_sends_the_same_body() -> None:
    """It repeats the body whatever Content-Length is, and reads nothing past the end of an open connection."""
    bodies: list[bytes] = []
    shop = Flask("shop")

    @shop.post("/buy")
    def buy() -> str:
        bodies.append(request.get_data())
        return "bought"

    declared = build_environ("POST", "http://shop.example/buy", [], BODY)
    endless = {**declared, "wsgi.input": Connection(BytesIO(BODY))}
    watch(shop)
    set_observer(SecondClick())
    for environ in (chunked_environ(), chunked_environ(CONTENT_LENGTH="0"), endless):
        run_wsgi_app(shop, environ)
    set_observer(None)
    unwatch(shop)
    assert bodies == [BODY] * 6


def test_an_asgi_shop_gets_the_whole_body() -> None:
    """An ASGI shop receives a chunked body completely and with its length."""

    async def buy(request: Request) -> JSONResponse:
        return JSONResponse([(await request.body()).decode(), sorted(request.headers)])

    with closing(AsgiBridge(Starlette(routes=[Route("/buy", buy, methods=["POST"])]))) as bridge:
        pieces, status, _ = run_wsgi_app(bridge, chunked_environ())
        answer = b"".join(pieces)
    assert status == "200 OK"
    assert httpx.Response(200, content=answer).json() == [BODY.decode(), ["content-length", "host"]]
