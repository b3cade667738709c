"""A merchant's shop in several web frameworks, with the answers of ``Shop``."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, Final

import uvicorn
from flask import Flask, request
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from werkzeug.serving import make_server

from tests.support.ports import free_port
from tests.support.shop import Received, Shop

WAIT_SECONDS: Final = 10


def _status(shop: Shop, received: Received) -> int:
    shop.received.append(received)
    answer = shop.answer(received)
    return answer if isinstance(answer, int) else answer[0]


@contextmanager
def in_flask(shop: Shop) -> Iterator[str]:
    """Serve the shop with Flask; yield the address of its webhooks."""
    app = Flask("shop")

    @app.post("/webhook")
    def webhook() -> Any:
        received = Received(request.path, dict(request.headers), request.get_data())
        return "noted", _status(shop, received)

    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/webhook"
    server.shutdown()
    thread.join(WAIT_SECONDS)
    server.server_close()


@contextmanager
def in_starlette(shop: Shop) -> Iterator[str]:
    """Serve the shop with Starlette, the base of FastAPI; yield the address of its webhooks."""
    has_started = Event()

    async def webhook(request_: Request) -> Response:
        received = Received(request_.url.path, dict(request_.headers), await request_.body())
        return Response("noted", await run_in_threadpool(_status, shop, received))

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            has_started.set()

    port = free_port()
    app = Starlette(routes=[Route("/webhook", webhook, methods=["POST"])])
    server = Server(uvicorn.Config(app, port=port, log_level="error", lifespan="off"))
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    assert has_started.wait(WAIT_SECONDS)
    yield f"http://127.0.0.1:{port}/webhook"
    server.should_exit = True
    thread.join(WAIT_SECONDS)


@contextmanager
def by_the_standard_library(shop: Shop) -> Iterator[str]:
    """Yield the address of the shop's own server."""
    yield shop.url


FRAMEWORKS: Final[dict[str, Callable[[Shop], Any]]] = {
    "flask": in_flask,
    "starlette": in_starlette,
    "http.server": by_the_standard_library,
}
