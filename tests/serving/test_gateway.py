"""Work of the event loop and of threads, and responses for applications that fail."""

import asyncio
import gc
import os
import select
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack
from functools import partial
from http.client import HTTPResponse
from types import SimpleNamespace
from typing import Any, cast

import pytest
import requests
from werkzeug import Request, Response

from payment_sandbox.serving.binding import bind
from payment_sandbox.serving.connection import LEAVING_MAX, ConnectionPlaces
from payment_sandbox.serving.gateway import TOO_MANY_WAIT, Gateway, Limits
from payment_sandbox.serving.http import HttpServer
from payment_sandbox.serving.threads import Threads
from payment_sandbox.web.call import Call, ClientConnection
from payment_sandbox.web.routes import Facts, ResolvedRoute

WAITING = 2


class App:
    """An application that returns the name of its thread, and blocks at some paths until it is released."""

    def __init__(self) -> None:
        self.site: Any = SimpleNamespace()
        self.released = threading.Event()
        self.client: socket.socket | None = None  # the client that waits for the end of a response
        self.was_sent: list[bool] = []  # for each ended response: whether the client had received it
        self.response_ended = threading.Semaphore(0)
        self.waiting = threading.Semaphore(0)

    def route(self, environ: dict[str, Any], line: ClientConnection) -> Call:
        """Decide by path and project where a call runs."""
        call = Call(self.site, Request(environ), line)
        first = environ["PATH_INFO"].split("/")[1]
        facts = Facts(waits=first == "wait", slow=first == "slow")
        call.route = ResolvedRoute(self.respond, lambda call: None, self.respond, facts)
        call.group = environ.get("HTTP_PROJECT", "")
        return call

    def _end(self) -> None:
        assert self.client is not None, "a client has sent a request"
        readable, _, _ = select.select([self.client], [], [], 0)
        self.was_sent.append(bool(readable))
        self.response_ended.release()

    def respond(self, call: Call) -> Response:
        """Answer by path."""
        path = call.request.path
        if path.endswith("/end"):
            response = Response("end")
            response.call_on_close(self._end)
            return response
        if path in ("/wait", "/slow/work"):
            self.waiting.release()
            self.released.wait(60)
        if path == "/crash":
            raise ValueError("an unexpected error")
        if path == "/header":
            return Response(headers={"X": "a\0b"})
        if path == "/files":
            return Response(str(len(os.listdir("/proc/self/fd"))))
        if path == "/slow/stream":
            return Response(iter([b"one ", b"two ", b"three"]))
        return Response(threading.current_thread().name)


@pytest.fixture
def app() -> App:
    """A fresh application."""
    return App()


@pytest.fixture
def url(app: App) -> Iterator[str]:
    """A server that allows few blocking calls."""
    server = HttpServer(bind("127.0.0.1", 0), limits=Limits(waiting=2 * WAITING))
    server.start(cast(Any, app))
    yield server.url
    app.released.set()
    server.stop()


def test_blocking_calls_run_on_threads(url: str) -> None:
    """Slow calls run on threads, other calls on the event loop."""
    assert requests.get(f"{url}/", timeout=60).text == "server"
    assert requests.get(f"{url}/slow", timeout=60).text == "request"


def call_at_once(url: str, count: int, project: str = "") -> list[threading.Thread]:
    """Make several calls of a project at once, which block."""
    calls = [
        threading.Thread(target=requests.get, args=(url,), kwargs={"headers": {"Project": project}})
        for _ in range(count)
    ]
    for call in calls:
        call.start()
    return calls


def test_a_crowd_that_connects_does_not_delay_the_clients_before_it(app: App) -> None:
    """The first client is answered before all others are connected."""
    server = HttpServer(bind("127.0.0.1", 0))
    with ExitStack() as stack:
        crowd = [
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port))) for _ in range(400)
        ]
        crowd[0].sendall(b"GET /files HTTP/1.1\r\nHost: x\r\n\r\n")
        before = len(os.listdir("/proc/self/fd"))
        server.start(cast(Any, app))
        stack.callback(server.stop)
        answer = HTTPResponse(crowd[0])
        answer.begin()
        assert int(answer.read()) < before + len(crowd)
    gc.collect()  # a socket that the server left open is an error


def iterations_of(*works: Callable[[], Coroutine[Any, Any, None]]) -> list[int]:
    """Start works in one iteration of an event loop; return the iterations in which they end, in that order."""
    ended: list[int] = []

    async def main() -> None:
        number = 0

        def count() -> None:
            nonlocal number
            number += 1
            asyncio.get_running_loop().call_soon(count)

        async def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
            await work()
            ended.append(number)

        count()
        await asyncio.gather(*map(run, works))

    asyncio.run(main())
    return ended


def test_one_paused_call_of_a_project_goes_on_in_each_iteration_of_the_loop() -> None:
    """The calls that a fault has delayed do not all go on at once; those of another project are not behind."""

    def pausing(group: str) -> Callable[[], Coroutine[Any, Any, None]]:
        return lambda: gateway().pause(group, 0.0)

    def gateway() -> Gateway:
        loop = asyncio.get_running_loop()
        if not gateways:
            gateways.append(Gateway(cast(Any, None), loop, Limits()))
        return gateways[0]

    gateways: list[Gateway] = []
    crowd = iterations_of(*[pausing("crowd")] * 5)
    assert len(set(crowd)) == 5
    gateways.clear()
    assert len(set(iterations_of(pausing("one"), pausing("other")))) == 1


def test_a_crowd_that_leaves_does_not_delay_others() -> None:
    """The calls of many clients that disconnect at once end in several iterations of the loop."""
    ended: list[object] = []

    async def leave() -> None:
        places = ConnectionPlaces(1)
        for number in range(4 * LEAVING_MAX):
            places.leaving.add(partial(ended.append, number))
        await asyncio.sleep(0)
        assert len(ended) == LEAVING_MAX
        while len(ended) < 4 * LEAVING_MAX:
            await asyncio.sleep(0)

    asyncio.run(leave())
    assert ended == list(range(4 * LEAVING_MAX))


def test_calls_beyond_the_number_that_may_wait_are_refused_with_a_reason(app: App, url: str) -> None:
    """A project may have two thirds of all waiting calls; other calls are unaffected."""
    calls = call_at_once(f"{url}/wait", WAITING)
    for _ in calls:
        assert app.waiting.acquire(timeout=60)
    refused = requests.get(f"{url}/wait", timeout=60)
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    assert refused.json()["error"]["value"] == TOO_MANY_WAIT
    calls += call_at_once(f"{url}/wait", 1, "B")
    assert app.waiting.acquire(timeout=60), "another project may wait"
    assert requests.get(f"{url}/", timeout=60).text == "server"
    assert requests.get(f"{url}/slow", timeout=60).text == "request"
    app.released.set()
    for call in calls:
        call.join()
    assert requests.get(f"{url}/slow", timeout=60).status_code == 200


def test_the_slow_calls_of_a_project_leave_threads_for_others(app: App, url: str) -> None:
    """A project has three slow calls at once; the next ones wait, and keep none of another project waiting."""
    calls = call_at_once(f"{url}/slow/work", 10)
    for _ in range(3):
        assert app.waiting.acquire(timeout=60)
    calls += call_at_once(f"{url}/slow/work", 10, "B")
    for _ in range(3):
        assert app.waiting.acquire(timeout=60)
    assert requests.get(f"{url}/slow", headers={"Project": "C"}, timeout=60).text == "request"
    assert not app.waiting.acquire(timeout=0.2), "no other call has started"
    app.released.set()
    for call in calls:
        call.join()


@pytest.mark.rule("SET-59")
@pytest.mark.parametrize("path", ["/end", "/slow/end"])
def test_webhooks_wait_until_the_response_is_sent(app: App, url: str, path: str) -> None:
    """Webhooks are held until the client has the response."""
    host, _, port = url.partition("://")[2].partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as app.client:
        for count in range(1, 6):
            app.client.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert app.response_ended.acquire(timeout=60)
            assert app.was_sent == [True] * count
            assert app.client.recv(4096).endswith(b"end")


def test_an_application_that_fails_is_a_500_in_the_usual_shape(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The response has the usual error body, and the reason is logged."""
    answer = requests.get(f"{url}/crash", timeout=60)
    assert (answer.status_code, answer.json()["error"]["type"]) == (500, "InternalServerError")
    assert "an unexpected error" in caplog.text


def test_a_header_that_http_does_not_allow_is_in_the_log(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """The client gets a 500, and the server keeps working."""
    assert requests.get(f"{url}/header", timeout=60).json()["error"]["status"] == 500
    assert "Forbidden control character" in caplog.text
    assert requests.get(f"{url}/", timeout=60).status_code == 200


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
