"""What runs on the event loop, what on threads, and what a server says for an application that fails."""

import logging
import select
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from http.client import HTTPConnection
from typing import Any

import pytest
import requests
from werkzeug import Request
from werkzeug.wsgi import ClosingIterator

from payment_sandbox.serving.binding import bind
from payment_sandbox.serving.connection import Limits
from payment_sandbox.serving.http import HttpServer
from payment_sandbox.serving.threads import Threads
from payment_sandbox.web.call import Call, ClientConnection
from payment_sandbox.web.placing import EVENT_LOOP_BYTES_MAX

Start = Callable[..., Any]
WAITING = 2


class App:
    """An application that says where it runs, and waits at some paths until it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.client: socket.socket | None = None  # that asks for what has an end
        self.was_sent: list[bool] = []  # when a response has ended: whether the client had it
        self.ended = threading.Semaphore(0)
        self.waiting = threading.Semaphore(0)

    def place(self, environ: dict[str, Any], length: int, line: ClientConnection) -> Call:
        """By path, and by project."""
        site: Any = None
        call = Call(site, Request(environ), line)
        takes_long = environ["PATH_INFO"] in ("/thread", "/wait", "/stream", "/thread/end")
        call.on_thread = takes_long or length > EVENT_LOOP_BYTES_MAX
        call.share = environ.get("HTTP_PROJECT", "")
        return call

    def _end(self) -> None:
        assert self.client is not None, "somebody has asked"
        readable, _, _ = select.select([self.client], [], [], 0)
        self.was_sent.append(bool(readable))
        self.ended.release()

    def answer(self, call: Call, start_response: Start) -> Iterable[bytes]:
        """Answer by path."""
        path = call.request.path
        if path.endswith("/end"):
            start_response("200 OK", [("Content-Length", "3")])
            return ClosingIterator([b"end"], self._end)
        if path in ("/thread", "/wait", "/stream"):
            assert call.connection.may_wait
            if path == "/wait":
                if not call.connection.begin_waiting():
                    start_response("503 Service Unavailable", [("Content-Length", "0")])
                    return []
                self.waiting.release()
                self.let_go.wait(10)
        if path == "/crash":
            raise ValueError("nobody expected this")
        if path == "/header":
            start_response("200 OK", [("Content-Length", "0"), ("X", "a\nb")])
            return []
        if path == "/stream":
            start_response("200 OK", [])
            return [b"one ", b"two ", b"three"]
        body = threading.current_thread().name.encode()
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]


@pytest.fixture
def app() -> App:
    """A fresh one."""
    return App()


@pytest.fixture
def url(app: App) -> Iterator[str]:
    """A server with room for few calls that wait."""
    server = HttpServer(bind("127.0.0.1", 0), limits=Limits(waiting=2 * WAITING))
    server.start(app)
    yield server.url
    app.let_go.set()
    server.stop()


def test_what_may_wait_runs_on_a_thread_and_the_rest_on_the_loop(url: str) -> None:
    """And a large body, which takes long to read, on a thread, too."""
    assert requests.get(f"{url}/", timeout=5).text == "server"
    assert requests.get(f"{url}/thread", timeout=5).text == "request"
    assert requests.post(f"{url}/", data=b"x" * (EVENT_LOOP_BYTES_MAX + 1), timeout=5).text == "request"


def test_calls_beyond_the_number_that_may_wait_are_refused_with_a_reason(app: App, url: str) -> None:
    """And those that do not wait are answered all the same."""
    calls = [threading.Thread(target=requests.get, args=(f"{url}/wait",)) for _ in range(WAITING)]
    for call in calls:
        call.start()
        assert app.waiting.acquire(timeout=5)
    assert requests.get(f"{url}/wait", timeout=5).status_code == 503
    other = threading.Thread(target=requests.get, args=(f"{url}/wait",), kwargs={"headers": {"Project": "B"}})
    other.start()
    assert app.waiting.acquire(timeout=5), "each project has its share"
    assert requests.get(f"{url}/", timeout=5).text == "server"
    assert requests.get(f"{url}/thread", timeout=5).text == "request"
    app.let_go.set()
    for call in (*calls, other):
        call.join(5)
    assert requests.get(f"{url}/thread", timeout=5).status_code == 200


@pytest.mark.rule("SET-59")
@pytest.mark.parametrize("path", ["/end", "/thread/end"])
def test_what_waits_for_a_response_happens_once_it_was_sent(app: App, url: str, path: str) -> None:
    """The client has it by then: webhooks are held back until the response is sent."""
    host, _, port = url.partition("://")[2].partition(":")
    with socket.create_connection((host, int(port)), timeout=5) as app.client:
        for count in range(1, 6):
            app.client.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert app.ended.acquire(timeout=5)
            assert app.was_sent == [True] * count
            assert app.client.recv(4096).endswith(b"end")


def test_a_connection_goes_on_after_a_stream(url: str) -> None:
    """Whose end was marked; a client that sends its next request at once is answered."""
    connection = HTTPConnection(url.partition("://")[2], timeout=5)
    connection.connect()
    kept = connection.sock
    for _ in range(20):
        connection.request("GET", "/stream")
        assert connection.getresponse().read() == b"one two three"
        connection.request("GET", "/")
        assert connection.getresponse().read() == b"server"
        assert connection.sock is kept
    connection.close()


def test_an_application_that_fails_is_a_500_in_the_usual_shape(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """With the reason in the log."""
    answer = requests.get(f"{url}/crash", timeout=5)
    assert (answer.status_code, answer.json()["error"]["type"]) == (500, "InternalServerError")
    assert "nobody expected this" in caplog.text


def test_a_header_that_http_does_not_allow_is_in_the_log(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """The client gets an error, and the server goes on."""
    assert requests.get(f"{url}/header", timeout=5).json()["error"]["status"] == 500
    assert "Forbidden control character" in caplog.text
    assert requests.get(f"{url}/", timeout=5).status_code == 200


class Telling(logging.Handler):
    """Tells a test that something was logged."""

    def __init__(self, told: threading.Semaphore) -> None:
        super().__init__()
        self._told = told

    def emit(self, record: logging.LogRecord) -> None:
        self._told.release()


def test_a_thread_whose_job_failed_takes_the_next_one(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever was raised."""
    threads, done, told = Threads("worker"), threading.Event(), threading.Semaphore(0)
    listening = Telling(told)
    logging.getLogger().addHandler(listening)  # after the one of caplog
    for failure in (ValueError("no"), SystemExit(3)):

        def fail(failure: BaseException = failure) -> None:
            raise failure

        assert threads.run(fail)
    assert threads.run(done.set)
    assert done.wait(5)
    assert told.acquire(timeout=5)
    assert told.acquire(timeout=5)
    logging.getLogger().removeHandler(listening)
    assert caplog.text.count("a job on a worker thread failed") == 2
    threads.stop()
