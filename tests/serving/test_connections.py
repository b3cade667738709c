"""The limit of connections, and clients that do not read."""

import resource
import socket
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPResponse
from time import perf_counter

import pytest
import requests

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.projects.registry import FIRST_API_KEY
from payment_sandbox.serving.gateway import Limits
from payment_sandbox.serving.server import Server
from tests.support.commands import run_python
from tests.support.driver import card
from tests.support.servers import make_server

LIMIT = 20
HEALTH = b"GET /health/ HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture
def impatient_server() -> Iterator[Server]:
    """A server that allows few connections and has a short timeout for clients that do not read."""
    with make_server(limits=Limits(connections=LIMIT, send_seconds=0.5)) as started:
        yield started


def connect(server: Server, stack: ExitStack) -> socket.socket:
    """Open a connection, and read one response on it."""
    connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=60))
    connection.sendall(HEALTH + b"\r\n")
    assert read_status(connection) == 200
    return connection


def read_status(connection: socket.socket) -> int:
    """Read a response to its end; return its status."""
    answer = HTTPResponse(connection)
    answer.begin()
    answer.read()
    return answer.status


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


def test_new_connections_wait_while_all_are_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of connections follows the system's limit of open files; more connections wait."""
    monkeypatch.setattr(resource, "getrlimit", lambda which: (64 + 2 * LIMIT, 64 + 2 * LIMIT))
    with make_server() as server, ExitStack() as stack:
        connections = [connect(server, stack) for _ in range(LIMIT)]
        new_client = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=60))
        new_client.sendall(HEALTH + b"\r\n")
        new_client.settimeout(0.3)
        with pytest.raises(TimeoutError):
            new_client.recv(1)
        new_client.settimeout(60)
        for connection in connections:
            connection.sendall(HEALTH + b"\r\n")
            assert read_status(connection) == 200, "connections in use stay open"
        connections[0].close()
        assert read_status(new_client) == 200


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
        assert requests.get(f"{impatient_server.url}/health/", timeout=60).status_code == 200
    client.close()


def test_the_limit_of_open_files_is_raised_to_what_the_system_allows() -> None:
    """The limit is raised when the sandbox runs as its own program."""
    limited = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 2048));"
    raised = "from payment_sandbox.serving.http import raise_open_files_limit as r; r();"
    show = "print(resource.getrlimit(resource.RLIMIT_NOFILE))"
    assert run_python(limited + raised + show).stdout.strip() == "(2048, 2048)"


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
            with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
                client.sendall(sent)
        assert requests.get(f"{server.local_url}/health/", timeout=60).status_code == 200
        server.stop()
    assert caplog.text == ""
