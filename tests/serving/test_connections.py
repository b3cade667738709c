"""Clients that never close a connection keep nobody else out."""

import resource
import socket
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPResponse
from time import perf_counter

import pytest
import requests

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.projects.registry import FIRST_API_KEY
from payment_sandbox.serving.connection import Limits
from payment_sandbox.serving.server import Server
from tests.support.driver import card
from tests.support.servers import make_server

LIMIT = 20
HEALTH = b"GET /health/ HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture
def narrow() -> Iterator[Server]:
    """A server with room for few connections."""
    with make_server(limits=Limits(connections=LIMIT)) as started:
        yield started


@pytest.fixture
def patient() -> Iterator[Server]:
    """A server with room for few connections, which lets clients take their time."""
    with make_server(limits=Limits(connections=LIMIT, half_open_seconds=60.0, head_seconds=60.0)) as started:
        yield started


@pytest.fixture
def impatient() -> Iterator[Server]:
    """A server with room for few connections, for clients that read."""
    with make_server(limits=Limits(connections=LIMIT, unread_seconds=0.5, send_seconds=0.5)) as started:
        yield started


def connected(to: Server, kept: ExitStack) -> socket.socket:
    """A connection that the server has answered on, and that stays open."""
    opened = kept.enter_context(socket.create_connection(("127.0.0.1", to.port), timeout=5))
    opened.sendall(HEALTH + b"\r\n")
    assert status_from(opened) == 200
    return opened


def status_from(opened: socket.socket) -> int:
    """The status of an answer, which is read to its end."""
    answer = HTTPResponse(opened)
    answer.begin()
    answer.read()
    return answer.status


def test_forgotten_connections_make_room(narrow: Server) -> None:
    """Three times as many as there is room for, one after the other, and each is answered."""
    with ExitStack() as kept:
        for _ in range(3 * LIMIT):
            connected(narrow, kept)


def test_a_full_server_keeps_no_connection_open() -> None:
    """While others wait for room, a connection ends with its response, which says so."""
    with (
        make_server(limits=Limits(connections=LIMIT, inactive_seconds=60.0)) as started,
        ExitStack() as kept,
    ):
        opened = [connected(started, kept) for _ in range(LIMIT)]
        newcomer = kept.enter_context(socket.create_connection(("127.0.0.1", started.port), timeout=10))
        newcomer.sendall(HEALTH + b"\r\n")
        last = opened[0]
        while True:
            last.sendall(HEALTH + b"\r\n")
            answer = HTTPResponse(last)
            answer.begin()
            answer.read()
            if answer.getheader("Connection") == "close":
                break  # the newcomer has been seen
        assert last.recv(1) == b""
        assert status_from(newcomer) == 200


def test_waiting_calls_and_watchers_leave_connections_free() -> None:
    """Two projects use all waits and event streams that they may have; other calls are still answered."""
    with make_server(limits=Limits(connections=4 * LIMIT)) as server, ExitStack() as open_connections:
        client = SandboxClient(server.url, FIRST_API_KEY)
        for project in (client, client.create_project()):
            order = project.call(
                "POST", "/v1/orders/", {"currency": "EUR", "amount": 100, "transactions": [card()]}
            )
            wait = f"/control/wait/?order_id={order['id']}&status=expired&timeout=60"
            for path in ("/control/events/", wait):
                for _ in range(2 * LIMIT):
                    connected(server, open_connections).sendall(request_with_key(path, project.api_key))
        connected(server, open_connections)
        client.close()


def request_with_key(path: str, api_key: str) -> bytes:
    """Return a GET request with an API key."""
    credentials = b64encode(f"{api_key}:".encode()).decode()
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic {credentials}\r\n\r\n".encode()


def test_what_is_under_way_is_not_cut_off(patient: Server) -> None:
    """Neither a stream nor a request of which a part has just come makes room for others."""
    client = SandboxClient(patient.url, FIRST_API_KEY)
    with ExitStack() as kept, requests.Session() as watching:
        stream = kept.enter_context(
            watching.get(f"{patient.url}/control/events/", auth=(FIRST_API_KEY, ""), stream=True, timeout=5)
        )
        half = connected(patient, kept)
        half.sendall(HEALTH)
        for _ in range(2 * LIMIT):
            connected(patient, kept)
        half.sendall(b"\r\n")
        assert status_from(half) == 200
        client.change_settings(name="Changed")
        client.clock.freeze()
        assert any(b"clock" in line for line in stream.iter_lines(chunk_size=1))
    client.close()


def test_newcomers_wait_while_all_are_in_use(patient: Server) -> None:
    """Nobody is turned away, and nobody's request is cut off."""
    with ExitStack() as kept:
        halves: list[socket.socket] = []
        while len(halves) < LIMIT:
            halves.append(connected(patient, kept))
            halves[-1].sendall(HEALTH)
        newcomer = kept.enter_context(socket.create_connection(("127.0.0.1", patient.port), timeout=10))
        newcomer.sendall(HEALTH + b"\r\n")
        newcomer.settimeout(0.3)
        with pytest.raises(TimeoutError):
            newcomer.recv(1)
        newcomer.settimeout(10)
        for half in halves:
            half.sendall(b"\r\n")
            assert status_from(half) == 200
        assert status_from(newcomer) == 200


def test_the_limit_is_what_the_system_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some systems grant 256 open files: connections take no half of them, whoever holds the other ends."""
    monkeypatch.setattr(resource, "getrlimit", lambda which: (64 + 2 * LIMIT, 64 + 2 * LIMIT))
    with make_server() as started, ExitStack() as kept:
        for _ in range(2 * LIMIT):
            connected(started, kept)


@pytest.mark.parametrize(
    "sent", [b"", b"GET /health/ HTTP/1.1\r\nHost: ", HEALTH + b"Content-Length: 9\r\n\r\n1234"]
)
def test_half_open_connections_starve_nobody(narrow: Server, sent: bytes) -> None:
    """Twice as many as there is room for, which send nothing more, and never close."""
    with ExitStack() as kept:
        for _ in range(2 * LIMIT):
            half = kept.enter_context(socket.create_connection(("127.0.0.1", narrow.port), timeout=5))
            half.sendall(sent)
        assert requests.get(f"{narrow.url}/health/", timeout=10).status_code == 200


def test_a_head_in_drops_starves_nobody(narrow: Server) -> None:
    """Neither do clients that send a byte of a request line now and then."""
    with ExitStack() as kept:
        halves = [
            kept.enter_context(socket.create_connection(("127.0.0.1", narrow.port), timeout=5))
            for _ in range(LIMIT)
        ]
        for half in halves:
            half.sendall(b"GET /")
        answered = threading.Event()

        def drip() -> None:
            while not answered.wait(0.2):
                for half in halves:
                    with suppress(OSError):
                        half.sendall(b"X")

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            assert requests.get(f"{narrow.url}/health/", timeout=10).status_code == 200
        finally:
            answered.set()
            dripping.join()


def test_who_does_not_read_starves_nobody(impatient: Server) -> None:
    """A response that is not read makes room after a while, and so does an event stream."""
    client = SandboxClient(impatient.url, FIRST_API_KEY)
    with ExitStack() as kept:
        for path in ("/openapi.json", "/control/events/"):
            request = request_with_key(path, FIRST_API_KEY)
            for _ in range(LIMIT // 2):
                deaf = kept.enter_context(socket.socket())
                deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
                deaf.connect(("127.0.0.1", impatient.port))
                deaf.sendall(request * (40 if "openapi" in path else 1))
        begun = perf_counter()
        while perf_counter() - begun < 1:
            client.change_settings(name="x" * 200)
        assert requests.get(f"{impatient.url}/health/", timeout=10).status_code == 200
    client.close()


def test_the_limit_of_open_files_is_raised_to_what_the_system_allows() -> None:
    """When the sandbox is served as a program of its own, not in somebody's process."""
    limited = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 2048));"
    raised = "from payment_sandbox.serving.http import raise_open_files_limit as r; r();"
    show = "print(resource.getrlimit(resource.RLIMIT_NOFILE))"
    made = subprocess.run(
        [sys.executable, "-c", limited + raised + show], capture_output=True, text=True, check=True
    )
    assert made.stdout.strip() == "(2048, 2048)"
