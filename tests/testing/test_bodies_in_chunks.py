"""A request to the shop whose body has no length, because it came in chunks."""

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
from payment_sandbox.testing.shops.submitting import Submission, set_submission_chooser
from payment_sandbox.testing.shops.watching import unwatch, watch

BODY = b"socks=2" * 20_000


class Connection(BufferedReader):
    """One that stays open: reading more than what has come would take for ever."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Read what has come."""
        if size is None or not 0 <= size <= len(BODY) - self.tell():
            pytest.fail("it waits for more")
        return super().read(size)


def in_chunks(**more: Any) -> dict[str, Any]:
    """The environment of such a request, as servers make it."""
    environ = build_environ("POST", "http://shop.example/buy", [], BODY)
    del environ["CONTENT_LENGTH"]
    return {**environ, "HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True, **more}


class Shop(Flask):
    """A shop that notes what it is sent."""

    def __init__(self) -> None:
        super().__init__("shop")
        self.bodies: list[bytes] = []

        @self.post("/buy")
        def buy() -> str:
            self.bodies.append(request.get_data())
            return "bought"


@pytest.fixture(params=[True, False])
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    """It is asked twice whatever it is asked."""
    made = Shop()
    watch(made)
    set_submission_chooser(lambda path, form: Submission(bool(request.param)))
    yield made
    set_submission_chooser(None)
    unwatch(made)


@pytest.mark.parametrize("told", [None, "", "0"])
def test_the_second_click_sends_the_same_body(shop: Shop, told: str | None) -> None:
    """Whatever is told of its length."""
    run_wsgi_app(shop, in_chunks(**({} if told is None else {"CONTENT_LENGTH": told})))
    assert shop.bodies == [BODY, BODY]


def test_nothing_is_read_after_the_end(shop: Shop) -> None:
    """Of a connection that a server lends to the shop, with and without a length."""
    environ = build_environ("POST", "http://shop.example/buy", [], BODY)
    run_wsgi_app(shop, {**environ, "wsgi.input": Connection(BytesIO(BODY))})
    del environ["CONTENT_LENGTH"]
    run_wsgi_app(shop, {**environ, "wsgi.input": Connection(BytesIO(BODY))})
    assert shop.bodies == [BODY, BODY, b"", b""]


def test_a_client_that_says_nothing_of_the_end_sends_the_same_body_twice() -> None:
    """To a shop that reads what is there, from memory."""
    bodies: list[bytes] = []

    class Reading:
        def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            bodies.append(environ["wsgi.input"].read())
            start_response("200 OK", [])
            return [b"bought"]

    shop = Reading()
    watch(shop)
    set_submission_chooser(lambda path, form: Submission())
    with httpx.Client(transport=httpx.WSGITransport(shop)) as client:
        client.post("http://shop.example/buy", content=iter([b"socks", b"=2"]))
    set_submission_chooser(None)
    unwatch(shop)
    assert bodies == [b"socks=2", b"socks=2"]


def test_an_asgi_shop_gets_the_whole_body() -> None:
    """With its length, as if it had come in one piece."""

    async def buy(request: Request) -> JSONResponse:
        return JSONResponse([(await request.body()).decode(), sorted(request.headers)])

    with closing(AsgiBridge(Starlette(routes=[Route("/buy", buy, methods=["POST"])]))) as bridge:
        pieces, status, _ = run_wsgi_app(bridge, in_chunks())
        told = b"".join(pieces)
    assert status == "200 OK"
    assert httpx.Response(200, content=told).json() == [BODY.decode(), ["content-length", "host"]]
