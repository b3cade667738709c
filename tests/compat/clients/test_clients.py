"""Each HTTP client on the machine sends as many requests as the table says, and the sandbox says so."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import Any, NamedTuple

import pytest

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.project_review import review
from payment_sandbox.projects.http_clients import HTTP_CLIENTS, HttpClient
from tests.support.driver import Sandbox

pytestmark = pytest.mark.compat
PROGRAMS = Path(__file__).parent / "programs"
GUZZLE = Path("/usr/share/php/GuzzleHttp/autoload.php")
BODY = b'{"currency": "EUR", "amount": 2450, "transactions": [{"payment_method": "credit-card"}]}'
PHP, JAVA, PYTHON = ("php", "curl.php"), ("java", "Call.java"), sys.executable


class Program(NamedTuple):
    """A program that makes one call: the client in the table, how to start it, and the switch that stops it."""

    client: str
    command: Sequence[str]
    switch: str
    needs: Path | None = None

    @property
    def row(self) -> HttpClient:
        """The row of the table."""
        return next(each for each in HTTP_CLIENTS if each.name == self.client)


PROGRAMS_BY_CLIENT = [
    Program("PHP's curl extension", PHP, "fresh"),
    Program("Guzzle", ("php", "guzzle.php"), "fresh", GUZZLE),
    Program("Java's HttpURLConnection", JAVA, "fixed"),
    Program("Ruby's Net::HTTP", ("ruby", "call.rb"), "once"),
    Program("urllib3", (PYTHON, "with_urllib3.py"), "once"),
]
SINGLE = [
    ("requests", (PYTHON, "with_requests.py")),
    ("Node's fetch", ("node", "with_fetch.mjs")),
]


class CountingServer:
    """Answers reads, and cuts the connection of every other request without a response."""

    def __init__(self) -> None:
        self.counts: list[str] = []
        counts = self.counts

        class Handler(StreamRequestHandler):
            def handle(self) -> None:
                while line := self.rfile.readline().split():
                    length = 0
                    while header := self.rfile.readline().strip():
                        name, _, value = header.partition(b":")
                        length = int(value) if name.lower() == b"content-length" else length
                    self.rfile.read(length)
                    if line[0] != b"GET":
                        counts.append(line[0].decode())
                        return
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

        self.server = ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1/orders/"
        Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def counting() -> Iterator[CountingServer]:
    """A server that counts requests."""
    server = CountingServer()
    yield server
    server.server.shutdown()
    server.server.server_close()


def call(command: Sequence[str], url: str, method: str, *options: str, key: str = "key") -> None:
    """Make a call with a program; skip the test on a machine without it."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    program, body = [command[0], str(PROGRAMS / command[1])], BODY if method == "POST" else b""
    environment = {**os.environ, "API_KEY": key}
    subprocess.run(
        [*program, url, method, *options],
        check=False,
        input=body,
        env=environment,
        capture_output=True,
        timeout=60,
    )


@pytest.mark.parametrize("method", ["POST", "DELETE"])
@pytest.mark.parametrize("program", PROGRAMS_BY_CLIENT, ids=lambda program: program.client)
def test_a_client_sends_as_often_as_the_table_says(
    counting: CountingServer, program: Program, method: str
) -> None:
    """One call without a response, on a kept connection, is this many requests; the switch makes it one."""
    if program.needs is not None and not program.needs.exists():
        pytest.skip(f"{program.needs.name} is not installed")
    call(program.command, counting.url, method, "kept")
    expected = program.row.posts if method == "POST" else program.row.deletes
    assert len(counting.counts) == expected, f"the row {program.client!r} is out of date"
    counting.counts.clear()
    call(program.command, counting.url, method, "kept", program.switch)
    is_for_posts_only = program.switch == "fixed" and method == "DELETE"
    assert len(counting.counts) == (expected if is_for_posts_only else 1), "the switch is out of date"


@pytest.mark.parametrize("method", ["POST", "DELETE"])
@pytest.mark.parametrize(
    ("name", "command"), SINGLE, ids=lambda value: value if isinstance(value, str) else ""
)
def test_other_clients_send_once(
    counting: CountingServer, name: str, command: Sequence[str], method: str
) -> None:
    """A client that the page names below the table sends one request."""
    call(command, counting.url, method, "kept")
    assert counting.counts == [method], name


@pytest.mark.parametrize("program", PROGRAMS_BY_CLIENT[:3], ids=lambda program: program.client)
def test_the_sandbox_names_the_client(sandbox: Sandbox, program: Program) -> None:
    """A creation whose response is lost is told as sent again by this client, with its setting."""
    lost: dict[str, Any] = {"when": {"method": "POST", "nth": 1}, "then": {"reset": True, "phase": "after"}}
    sandbox.put("/control/faults/", {"faults": [lost]})
    call(program.command, f"{sandbox.url}/v1/orders/", "POST", "kept", key=sandbox.key)
    (finding,) = [each for each in review(SandboxClient(sandbox.url, sandbox.key)) if each.rule == "CTL-23"]
    assert program.client in finding.problem
    assert program.row.remedy in finding.advice
