"""The proxies on the security page limit slow requests and connections, and let everything else through."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter

import pytest
import requests

from payment_sandbox.projects.registry import FIRST_API_KEY
from payment_sandbox.ui.docs.library import read_source
from tests.support.blocks import blocks
from tests.support.ports import free_port
from tests.support.servers import make_server
from tests.support.tools import require

CONNECTIONS_MAX = 5  # instead of a hundred
OWN_FILES = "access_log off;" + "".join(
    f"{name}_temp_path {name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
)  # because only root may use those of the system
COMMANDS = {
    "proxy.cfg": ["haproxy", "-db", "-f"],
    "proxy.conf": [
        *["nginx", "-e", "stderr", "-p", ".", "-g"],
        "daemon off; master_process off; pid nginx.pid;",
        "-c",
    ],
}


@pytest.fixture(params=COMMANDS)
def port(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[int]:
    """The port of a proxy in front of a server, configured as on the page."""
    file = request.param
    command = COMMANDS[file]
    require({"nginx": "nginx-light"}.get(command[0], command[0]))
    (text,) = (block.text for block in blocks(read_source("security")) if block.file == file)
    front = free_port()
    with make_server(clock="frozen") as server:
        text = text.replace("bind :80", f"bind 127.0.0.1:{front}").replace("listen 80", f"listen {front}")
        text = text.replace("127.0.0.1:8080", f"127.0.0.1:{server.port}").replace(" 5s", " 1s")
        text = text.replace("gt 100", f"gt {CONNECTIONS_MAX}").replace("s 100;", f"s {CONNECTIONS_MAX};")
        (tmp_path / file).write_text(text.replace("http {", f"http {{ {OWN_FILES}"))
        with subprocess.Popen([*command, str(tmp_path / file)], cwd=tmp_path) as proxy:
            try:
                wait_until_ready(front, proxy)
                yield front
            finally:
                proxy.terminate()


def wait_until_ready(port: int, proxy: "subprocess.Popen[bytes]") -> None:
    """Wait until a proxy passes calls on."""
    while proxy.poll() is None:
        try:
            if requests.get(f"http://127.0.0.1:{port}/health/", timeout=60).status_code == 200:
                return
        except requests.ConnectionError:
            continue
    pytest.fail("the proxy has ended")


@pytest.mark.prove
def test_a_proxy_passes_calls_and_streams_on(port: int) -> None:
    """Calls, uploads and the events of a stream pass the proxy at once."""
    url, auth = f"http://127.0.0.1:{port}", (FIRST_API_KEY, "")
    stream = requests.get(f"{url}/control/events/", auth=auth, stream=True, timeout=60)
    lines = stream.iter_lines(chunk_size=1)
    assert next(lines) == b": watching"
    order = {"currency": "EUR", "amount": 1, "extra": {"long": "x" * 100_000}}
    assert requests.post(f"{url}/v1/orders/", json=order, auth=auth, timeout=60).status_code == 201
    assert any(line.startswith(b"event:") for line in lines)
    stream.close()


@pytest.mark.prove
def test_a_proxy_ends_slow_requests(port: int) -> None:
    """A request that does not arrive is refused with 408, or its connection is closed."""
    for part in (
        b"GET /health/ HTTP/1.1\r\nHost: ",
        b"POST /v1/orders/ HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1",
    ):
        started_at = perf_counter()
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            client.sendall(part)
            answer = client.recv(1000)
        assert answer == b"" or b" 408 " in answer.splitlines()[0]
        assert perf_counter() - started_at < 30


@pytest.mark.prove
def test_a_proxy_limits_the_connections_of_a_client(port: int) -> None:
    """A client with too many connections gets no further one."""
    request = (
        b"GET /control/events/ HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic c2FuZGJveC1rZXk6\r\n\r\n"
    )
    with ExitStack() as stack:
        answers = []
        for _ in range(CONNECTIONS_MAX + 2):
            try:
                client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
                client.sendall(request)
                answers.append(client.recv(12))
            except ConnectionResetError:
                answers.append(b"")
    assert answers.count(b"HTTP/1.1 200") in (CONNECTIONS_MAX - 1, CONNECTIONS_MAX)
    assert set(answers) <= {b"HTTP/1.1 200", b"HTTP/1.1 503", b""}
