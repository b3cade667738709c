"""The limit of connections, and clients that do not read."""

import socket
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPResponse
from time import perf_counter

import pytest
import requests

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.projects.registry import FIRST_API_KEY
from payment_sandbox.serving.config import Limits
from payment_sandbox.serving.server import Server
from tests.support.commands import run_python
from tests.support.servers import make_server

LIMIT = 20
HEALTH = b"GET /health/ HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture
def own_http_server() -> Iterator[Server]:
    """A server with its own connections."""
    with make_server() as started:
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


def request_with_key(path: str, api_key: str) -> bytes:
    """Return a GET request with an API key."""
    credentials = b64encode(f"{api_key}:".encode()).decode()
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic {credentials}\r\n\r\n".encode()


def send_slowly(client: socket.socket) -> None:
    """Send a byte now and then, until the server closes the connection."""
    while True:
        client.sendall(b" ")
        with suppress(TimeoutError):
            client.recv(1)


@pytest.mark.parametrize(
    ("line", "limits"),
    [
        ("POST /v1/orders/", Limits(body_seconds=0.5, silent_seconds=60, snapshot_seconds=60)),
        ("PUT /control/state/", Limits(body_seconds=60, silent_seconds=60, snapshot_seconds=0.5)),
    ],
    ids=["without a key", "a snapshot"],
)
def test_a_body_has_a_total_time(line: str, limits: Limits) -> None:
    """A client that sends a byte now and then is given up, however often it sends one."""
    with make_server(limits=limits) as server, ExitStack() as stack:
        client = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=0.05))
        credentials = b64encode(f"{FIRST_API_KEY}:".encode()).decode() if "state" in line else "none"
        client.sendall(
            f"{line} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic {credentials}\r\n"
            f"Content-Length: {2 << 20 if 'state' in line else 100_000}\r\n\r\n".encode()
        )
        with pytest.raises(ConnectionError):
            send_slowly(client)


def test_clients_that_do_not_read_do_not_block_others(own_http_server: Server) -> None:
    """Clients that do not read their responses or streams do not block other clients."""
    client = SandboxClient(own_http_server.url, FIRST_API_KEY)
    with ExitStack() as stack:
        for path in ("/openapi.json", "/control/events/"):
            request = request_with_key(path, FIRST_API_KEY)
            for _ in range(LIMIT // 2):
                client_socket = stack.enter_context(socket.socket())
                client_socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
                client_socket.connect(("127.0.0.1", own_http_server.port))
                client_socket.sendall(request * (40 if "openapi" in path else 1))
        started_at = perf_counter()
        while perf_counter() - started_at < 1:
            client.change_settings(name="x" * 200)
        assert requests.get(f"{own_http_server.url}/health/", timeout=60).status_code == 200
    client.close()


def test_the_limit_of_open_files_is_raised_to_what_the_system_allows() -> None:
    """The limit is raised when the sandbox runs as its own program."""
    limited = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 2048));"
    raised = "from payment_sandbox.cli.server_process import raise_open_files_limit as r; r();"
    show = "print(resource.getrlimit(resource.RLIMIT_NOFILE))"
    assert run_python(limited + raised + show).stdout.strip() == "(2048, 2048)"


NONSENSE = (
    b"\0\0",
    b"GET / HTTP/1.1\r\n\r\n",
    HEALTH + b"a: " + b"x" * 20_000 + b"\r\n\r\n",
    HEALTH + b"\r\n\0\0",
)


def test_a_client_that_disconnects_after_nonsense_leaves_nothing_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The server cannot end its side of a connection that the client has closed."""
    with make_server() as server:
        for sent in NONSENSE * 10:
            with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
                client.sendall(sent)
        assert requests.get(f"{server.local_url}/health/", timeout=60).status_code == 200
        server.stop()
    assert caplog.text == ""
