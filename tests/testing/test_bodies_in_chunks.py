"""Chunked requests to the shop, whose bodies have no declared length."""

from collections.abc import Iterable, Iterator
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

BODY = b"socks=2" * 20_000


class Connection(BufferedReader):
    """A connection that stays open: reading past the received bytes would block forever."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Read received bytes."""
        if size is None or not 0 <= size <= len(BODY) - self.tell():
            pytest.fail("the read would block")
        return super().read(size)


def chunked_environ(**overrides: Any) -> dict[str, Any]:
    """Return the WSGI environment of a chunked request."""
    environ = build_environ("POST", "http://shop.example/buy", [], BODY)
    del environ["CONTENT_LENGTH"]
    return {**environ, "HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True, **overrides}


class Shop(Flask):
    """A shop that records request bodies."""

    def __init__(self) -> None:
        super().__init__("shop")
        self.bodies: list[bytes] = []

        @self.post("/buy")
        def buy() -> str:
            self.bodies.append(request.get_data())
            return "bought"


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


@pytest.fixture
def shop() -> Iterator[Shop]:
    """A shop that receives each submitted form twice."""
    shop = Shop()
    watch(shop)
    set_observer(SecondClick())
    yield shop
    set_observer(None)
    unwatch(shop)


@pytest.mark.parametrize("content_length", [None, "", "0"])
def test_the_second_click_sends_the_same_body(shop: Shop, content_length: str | None) -> None:
    """The second submission repeats the body, whatever the header Content-Length is."""
    run_wsgi_app(
        shop, chunked_environ(**({} if content_length is None else {"CONTENT_LENGTH": content_length}))
    )
    assert shop.bodies == [BODY, BODY]


def test_a_body_is_not_read_past_its_end(shop: Shop) -> None:
    """The body is not read past its end, with and without a declared length."""
    environ = build_environ("POST", "http://shop.example/buy", [], BODY)
    run_wsgi_app(shop, {**environ, "wsgi.input": Connection(BytesIO(BODY))})
    del environ["CONTENT_LENGTH"]
    run_wsgi_app(shop, {**environ, "wsgi.input": Connection(BytesIO(BODY))})
    assert shop.bodies == [BODY, BODY, b"", b""]


def test_a_body_without_a_declared_end_is_sent_twice() -> None:
    """A body without a declared end is repeated for a shop that reads to the end of the input."""
    bodies: list[bytes] = []

    class ReadingShop:
        def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            bodies.append(environ["wsgi.input"].read())
            start_response("200 OK", [])
            return [b"bought"]

    shop = ReadingShop()
    watch(shop)
    set_observer(SecondClick())
    with httpx.Client(transport=httpx.WSGITransport(shop)) as client:
        client.post("http://shop.example/buy", content=iter([b"socks", b"=2"]))
    set_observer(None)
    unwatch(shop)
    assert bodies == [b"socks=2", b"socks=2"]


def test_an_asgi_shop_gets_the_whole_body() -> None:
    """An ASGI shop receives a chunked body completely and with its length."""

    async def buy(request: Request) -> JSONResponse:
        return JSONResponse([(await request.body()).decode(), sorted(request.headers)])

    with closing(AsgiBridge(Starlette(routes=[Route("/buy", buy, methods=["POST"])]))) as bridge:
        pieces, status, _ = run_wsgi_app(bridge, chunked_environ())
        answer = b"".join(pieces)
    assert status == "200 OK"
    assert httpx.Response(200, content=answer).json() == [BODY.decode(), ["content-length", "host"]]
