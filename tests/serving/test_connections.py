"""Idle connections do not lock out new clients."""

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
def limited_server() -> Iterator[Server]:
    """A server that allows few connections."""
    with make_server(limits=Limits(connections=LIMIT)) as started:
        yield started


@pytest.fixture
def patient_server() -> Iterator[Server]:
    """A server that allows few connections and has long timeouts."""
    with make_server(limits=Limits(connections=LIMIT, half_open_seconds=60.0, head_seconds=60.0)) as started:
        yield started


@pytest.fixture
def impatient_server() -> Iterator[Server]:
    """A server that allows few connections and has short timeouts for clients that do not read."""
    with make_server(limits=Limits(connections=LIMIT, unread_seconds=0.5, send_seconds=0.5)) as started:
        yield started


def connect(server: Server, stack: ExitStack) -> socket.socket:
    """Open a connection, and read one response on it."""
    connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=5))
    connection.sendall(HEALTH + b"\r\n")
    assert read_status(connection) == 200
    return connection


def read_status(connection: socket.socket) -> int:
    """Read a response to its end; return its status."""
    answer = HTTPResponse(connection)
    answer.begin()
    answer.read()
    return answer.status


def test_idle_connections_are_closed_for_new_ones(limited_server: Server) -> None:
    """Three times the limit of connections are opened one after the other, and each gets a response."""
    with ExitStack() as stack:
        for _ in range(3 * LIMIT):
            connect(limited_server, stack)


def test_a_full_server_keeps_no_connection_open() -> None:
    """While clients wait for a connection, responses close theirs with ``Connection: close``."""
    with (
        make_server(limits=Limits(connections=LIMIT, inactive_seconds=60.0)) as started,
        ExitStack() as stack,
    ):
        connections = [connect(started, stack) for _ in range(LIMIT)]
        new_client = stack.enter_context(socket.create_connection(("127.0.0.1", started.port), timeout=10))
        new_client.sendall(HEALTH + b"\r\n")
        last = connections[0]
        while True:
            last.sendall(HEALTH + b"\r\n")
            answer = HTTPResponse(last)
            answer.begin()
            answer.read()
            if answer.getheader("Connection") == "close":
                break  # the server has seen the new client
        assert last.recv(1) == b""
        assert read_status(new_client) == 200


def test_waiting_calls_and_watchers_leave_connections_free() -> None:
    """Two projects use all waits and event streams that they may have; other calls are still answered."""
    with make_server(limits=Limits(connections=2 * LIMIT)) as server, ExitStack() as open_connections:
        client = SandboxClient(server.url, FIRST_API_KEY)
        for project in (client, client.create_project()):
            order = project.call(
                "POST", "/v1/orders/", {"currency": "EUR", "amount": 100, "transactions": [card()]}
            )
            wait = f"/control/wait/?order_id={order['id']}&status=expired&timeout=60"
            for path in ("/control/events/", wait):
                for _ in range(LIMIT):
                    connect(server, open_connections).sendall(request_with_key(path, project.api_key))
        connect(server, open_connections)
        client.close()


def request_with_key(path: str, api_key: str) -> bytes:
    """Return a GET request with an API key."""
    credentials = b64encode(f"{api_key}:".encode()).decode()
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic {credentials}\r\n\r\n".encode()


def test_connections_in_use_are_not_closed(patient_server: Server) -> None:
    """Streams and incomplete requests are not closed in favour of new connections."""
    client = SandboxClient(patient_server.url, FIRST_API_KEY)
    with ExitStack() as stack, requests.Session() as watching:
        stream = stack.enter_context(
            watching.get(
                f"{patient_server.url}/control/events/", auth=(FIRST_API_KEY, ""), stream=True, timeout=5
            )
        )
        half = connect(patient_server, stack)
        half.sendall(HEALTH)
        for _ in range(2 * LIMIT):
            connect(patient_server, stack)
        half.sendall(b"\r\n")
        assert read_status(half) == 200
        client.change_settings(name="Changed")
        client.clock.freeze()
        assert any(b"clock" in line for line in stream.iter_lines(chunk_size=1))
    client.close()


def test_newcomers_wait_while_all_are_in_use(patient_server: Server) -> None:
    """New connections wait; neither they nor requests in flight are dropped."""
    with ExitStack() as stack:
        halves: list[socket.socket] = []
        while len(halves) < LIMIT:
            halves.append(connect(patient_server, stack))
            halves[-1].sendall(HEALTH)
        new_client = stack.enter_context(
            socket.create_connection(("127.0.0.1", patient_server.port), timeout=10)
        )
        new_client.sendall(HEALTH + b"\r\n")
        new_client.settimeout(0.3)
        with pytest.raises(TimeoutError):
            new_client.recv(1)
        new_client.settimeout(10)
        for half in halves:
            half.sendall(b"\r\n")
            assert read_status(half) == 200
        assert read_status(new_client) == 200


def test_the_limit_is_what_the_system_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of connections follows the system's limit of open files."""
    monkeypatch.setattr(resource, "getrlimit", lambda which: (64 + 2 * LIMIT, 64 + 2 * LIMIT))
    with make_server() as started, ExitStack() as stack:
        for _ in range(2 * LIMIT):
            connect(started, stack)


@pytest.mark.parametrize(
    "sent", [b"", b"GET /health/ HTTP/1.1\r\nHost: ", HEALTH + b"Content-Length: 9\r\n\r\n1234"]
)
def test_half_open_connections_do_not_block_other_clients(limited_server: Server, sent: bytes) -> None:
    """Twice the limit of connections that send no complete request do not block other clients."""
    with ExitStack() as stack:
        for _ in range(2 * LIMIT):
            half = stack.enter_context(
                socket.create_connection(("127.0.0.1", limited_server.port), timeout=5)
            )
            half.sendall(sent)
        assert requests.get(f"{limited_server.url}/health/", timeout=10).status_code == 200


def test_slow_request_heads_do_not_block_other_clients(limited_server: Server) -> None:
    """Clients that send a request line byte by byte do not block other clients."""
    with ExitStack() as stack:
        halves = [
            stack.enter_context(socket.create_connection(("127.0.0.1", limited_server.port), timeout=5))
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
            assert requests.get(f"{limited_server.url}/health/", timeout=10).status_code == 200
        finally:
            answered.set()
            dripping.join()


def test_clients_that_do_not_read_do_not_block_others(impatient_server: Server) -> None:
    """Clients that do not read their responses or streams do not block other clients."""
    client = SandboxClient(impatient_server.url, FIRST_API_KEY)
    with ExitStack() as stack:
        for path in ("/openapi.json", "/control/events/"):
            request = request_with_key(path, FIRST_API_KEY)
            for _ in range(LIMIT // 2):
                client_socket = stack.enter_context(socket.socket())
                client_socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
                client_socket.connect(("127.0.0.1", impatient_server.port))
                client_socket.sendall(request * (40 if "openapi" in path else 1))
        started_at = perf_counter()
        while perf_counter() - started_at < 1:
            client.change_settings(name="x" * 200)
        assert requests.get(f"{impatient_server.url}/health/", timeout=10).status_code == 200
    client.close()


def test_the_limit_of_open_files_is_raised_to_what_the_system_allows() -> None:
    """The limit is raised when the sandbox runs as its own program."""
    limited = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 2048));"
    raised = "from payment_sandbox.serving.http import raise_open_files_limit as r; r();"
    show = "print(resource.getrlimit(resource.RLIMIT_NOFILE))"
    result = subprocess.run(
        [sys.executable, "-c", limited + raised + show], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "(2048, 2048)"


@pytest.mark.parametrize(
    "sent",
    [b"\0\0", b"GET / HTTP/1.1\r\n\r\n", HEALTH + b"a: " + b"x" * 20_000 + b"\r\n\r\n", HEALTH + b"\r\n\0\0"],
    ids=["nul", "without a host", "a long header", "nul after a request"],
)
def test_a_client_that_disconnects_after_nonsense_leaves_nothing_in_the_log(
    sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """The server cannot end its side of a connection that the client has closed."""
    with make_server() as server:
        for _ in range(10):
            with socket.create_connection(("127.0.0.1", server.port), timeout=5) as client:
                client.sendall(sent)
        assert requests.get(f"{server.local_url}/health/", timeout=5).status_code == 200
        server.stop()
    assert caplog.text == ""
