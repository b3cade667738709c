"""Where calls run, what the front does when a call fails, and when it closes a response."""

import select
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import requests
from werkzeug import Response
from werkzeug.test import EnvironBuilder

from payment_sandbox.projects.registry import FIRST_API_KEY
from payment_sandbox.serving.binding import bind
from payment_sandbox.serving.config import Limits
from payment_sandbox.serving.front import EVENT_LOOP_BYTES_MAX, TOO_MANY_WAIT, HttpServer, Placement, place
from payment_sandbox.serving.server import Server
from payment_sandbox.serving.threads import Threads
from tests.support.projects import made_registry
from tests.support.servers import make_server

THREADS = 2
AUTH = (FIRST_API_KEY, "")
LATE = {"when": {"method": "POST", "nth": 1000}, "then": {"latency": 1.0}}


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
    assert requests.get(f"{url}/health/", timeout=60).status_code == 200


def test_a_thread_survives_a_failed_job(caplog: pytest.LogCaptureFixture) -> None:
    """A worker thread survives any exception of a job."""
    threads, finished = Threads("worker"), threading.Event()
    for failure in (ValueError("no"), SystemExit(3)):

        def fail(failure: BaseException = failure) -> None:
            raise failure

        assert threads.run(fail)
    assert threads.run(finished.set)
    assert finished.wait(60)
    workers = [thread for thread in threading.enumerate() if thread.name == "worker"]
    threads.stop()
    for worker in workers:
        worker.join(60)
    assert caplog.text.count("a job on a worker thread failed") == 2


@pytest.fixture
def server() -> Iterator[Server]:
    """A server with a frozen clock and a seed."""
    with make_server(clock="frozen@2027-01-01T00:00:00Z", seed=1) as started:
        yield started


def placed(server: Server, path: str = "/v1/orders/", length: int = 0, key: str = FIRST_API_KEY) -> Placement:
    """Return where a call runs."""
    environ = EnvironBuilder(path, method="POST", auth=(key, "")).get_environ()
    return place(environ, length, server.registry)


def placed_with_key(server: Server) -> Placement:
    """Return where a call with an ``Idempotency-Key`` runs."""
    environ = EnvironBuilder("/v1/orders/", method="POST", auth=AUTH, headers=[("Idempotency-Key", "x")])
    return place(environ.get_environ(), 0, server.registry)


def test_a_call_that_may_wait_runs_on_a_thread(server: Server) -> None:
    """By default, only short calls to the merchant API and the health run on the event loop."""
    assert placed(server) is placed(server, "/health/") is Placement.EVENT_LOOP
    for path in ("/control/clock/", "/", "/docs/", "/pay/x/y/", "//v1/orders/"):
        assert placed(server, path) is Placement.THREAD
    assert placed(server, key="unknown") is Placement.THREAD
    assert placed(server, length=EVENT_LOOP_BYTES_MAX + 1) is Placement.THREAD
    assert placed_with_key(server) is Placement.THREAD


def _delay_calls(server: Server) -> None:
    requests.put(f"{server.url}/control/faults/", json={"faults": [LATE]}, auth=AUTH, timeout=60)


def _send_webhooks_first(server: Server) -> None:
    server.registry.all()[0].change_settings({"webhook_timing": "before_response"})


@pytest.mark.parametrize("change", [_delay_calls, _send_webhooks_first])
def test_the_calls_of_a_project_that_makes_calls_wait_run_on_threads(
    server: Server, change: Callable[[Server], None]
) -> None:
    """Faults delay calls, and webhooks before the response wait for their receiver."""
    change(server)
    assert placed(server) is Placement.THREAD


def test_the_calls_of_a_stored_project_share_threads(state_server: Server) -> None:
    """Each of them waits for the disk; one that may wait for other calls too gets a thread at once."""
    assert placed(state_server) is Placement.STORING_THREAD
    assert placed_with_key(state_server) is Placement.THREAD


@pytest.fixture
def state_server(tmp_path: Any) -> Iterator[Server]:
    """A server with a state file."""
    with make_server(state=tmp_path / "state.db") as started:
        yield started


def test_records_have_the_same_ids_as_without_a_connection(server: Server) -> None:
    """With a fault, too, each request is counted once, over HTTP or in this process."""
    with make_server(clock="frozen@2027-01-01T00:00:00Z", seed=1) as other:
        app: Any = other.app.test_client()
        for url, put, post in ((server.url, requests.put, requests.post), ("", app.put, app.post)):
            put(f"{url}/control/faults/", json={"faults": [LATE], "webhooks": []}, auth=AUTH)
            for amount in (1, -1, 2):
                post(f"{url}/v1/orders/", json={"currency": "EUR", "amount": amount}, auth=AUTH)
        first, second = (
            [entry.id for entry in one.registry.all()[0].epoch.journal.entries()] for one in (server, other)
        )
    assert len(first) == 3
    assert first == second
