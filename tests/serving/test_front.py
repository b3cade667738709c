"""Where calls run, what the front does when a call fails, and when it closes a response."""

import select
import socket
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import requests
from werkzeug import Response

from payment_sandbox.serving.binding import bind
from payment_sandbox.serving.config import Limits
from payment_sandbox.serving.front import TOO_MANY_WAIT, HttpServer
from tests.support.projects import made_registry

THREADS = 2


class App:
    """A WSGI application that returns the name of its thread, and blocks at a path until it is released."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.client: socket.socket | None = None  # the client that waits for the end of a response
        self.was_sent: list[bool] = []  # for each ended response: whether the client had received it
        self.response_ended = threading.Semaphore(0)
        self.waiting = threading.Semaphore(0)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer a request."""
        return self.respond(environ["PATH_INFO"])(environ, start_response)

    def _end(self) -> None:
        assert self.client is not None, "a client has sent a request"
        readable, _, _ = select.select([self.client], [], [], 0)
        self.was_sent.append(bool(readable))
        self.response_ended.release()

    def respond(self, path: str) -> Response:
        """Answer by path."""
        if path.endswith("/end"):
            response = Response("end")
            response.call_on_close(self._end)
            return response
        if path == "/wait":
            self.waiting.release()
            self.released.wait(60)
        if path == "/crash":
            raise SystemExit("on purpose")
        if path == "/header":
            return Response(headers={"X": "a\0b"})
        return Response(threading.current_thread().name)


@pytest.fixture
def app() -> App:
    """A fresh application."""
    return App()


@pytest.fixture
def url(app: App) -> Iterator[str]:
    """A server with few threads."""
    server = HttpServer(bind("127.0.0.1", 0), limits=Limits(threads=THREADS))
    server.start(app, made_registry())
    yield server.url
    app.released.set()
    server.stop()


def test_calls_beyond_the_number_of_threads_are_refused(app: App, url: str) -> None:
    """While too many calls wait, others on threads are refused with a reason; those on the loop are answered."""
    calls = [threading.Thread(target=requests.get, args=(f"{url}/wait",)) for _ in range(THREADS)]
    for call in calls:
        call.start()
        assert app.waiting.acquire(timeout=60)
    refused = requests.get(f"{url}/other", timeout=60)
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    assert refused.json()["error"]["value"] == TOO_MANY_WAIT
    assert requests.get(f"{url}/health/", timeout=60).text == "server"
    app.released.set()
    for call in calls:
        call.join()
    assert requests.get(f"{url}/other", timeout=60).text == "request"


@pytest.mark.rule("SET-59")
@pytest.mark.parametrize("path", ["/health/end", "/other/end"])
def test_a_response_is_closed_once_it_is_sent(app: App, url: str, path: str) -> None:
    """What an application holds until the response is closed, such as webhooks, comes after the response."""
    host, _, port = url.partition("://")[2].partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as app.client:
        for count in range(1, 6):
            app.client.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert app.response_ended.acquire(timeout=60)
            assert app.was_sent == [True] * count
            assert app.client.recv(4096).endswith(b"end")


@pytest.mark.parametrize(("path", "logged"), [("/crash", "on purpose"), ("/header", "control character")])
def test_an_application_that_fails_is_a_500_in_the_usual_shape(
    url: str, caplog: pytest.LogCaptureFixture, path: str, logged: str
) -> None:
    """The response has the usual error body, the reason is logged, and the server goes on."""
    answer = requests.get(f"{url}{path}", timeout=60)
    assert (answer.status_code, answer.json()["error"]["type"]) == (500, "InternalServerError")
    assert logged in caplog.text
    for _ in range(THREADS + 1):
        assert requests.get(f"{url}/other", timeout=60).text == "request", "its thread goes on"
