"""Each HTTP client on the machine sends as many requests as the table says, and the sandbox says so."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
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
    """A program that makes one call: the client in the table, how to start it, the switch that stops it, and its version."""

    client: str
    command: Sequence[str]
    switch: str
    version: Sequence[str]
    needs: Path | None = None

    @property
    def row(self) -> HttpClient:
        """The row of the table."""
        return next(each for each in HTTP_CLIENTS if each.name == self.client)


PHP_VERSION = ("php", "-r", "echo PHP_VERSION;")
GUZZLE_VERSION = ("php", "-r", f"require '{GUZZLE}'; echo GuzzleHttp\\ClientInterface::MAJOR_VERSION;")
JAVA_VERSION = ("java", "--version")
RUBY_VERSION = ("ruby", "-e", "print RUBY_VERSION")
PROGRAMS_BY_CLIENT = [
    Program("PHP's curl extension", PHP, "fresh", PHP_VERSION),
    Program("Guzzle", ("php", "guzzle.php"), "fresh", GUZZLE_VERSION, GUZZLE),
    Program("Java's HttpURLConnection", JAVA, "fixed", JAVA_VERSION),
    Program("Ruby's Net::HTTP", ("ruby", "call.rb"), "once", RUBY_VERSION),
    Program(
        "Perl's HTTP::Tiny",
        ("perl", "call.pl"),
        "fixed",
        ("perl", "-MHTTP::Tiny", "-e", "print $HTTP::Tiny::VERSION"),
    ),
    Program(
        "urllib3",
        (PYTHON, "with_urllib3.py"),
        "once",
        (PYTHON, "-c", "import urllib3; print(urllib3.__version__)"),
    ),
]
SINGLE = [
    (
        "requests",
        (PYTHON, "with_requests.py"),
        (PYTHON, "-c", "import requests; print(requests.__version__)"),
    ),
    ("Node's fetch", ("node", "with_fetch.mjs"), ("node", "-p", "process.versions.node")),
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


def version_of(command: Sequence[str]) -> str:
    """Return the version that a program prints."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    match = re.search(r"\d[\d.]*", printed)
    return match.group() if match else ""


@pytest.mark.parametrize("program", PROGRAMS_BY_CLIENT, ids=lambda program: program.client)
def test_a_client_sends_as_often_as_the_table_says(
    counting: CountingServer, program: Program, record_property: Callable[..., None]
) -> None:
    """One call without a response, on a kept connection, is this many requests; the switch makes it one."""
    if program.needs is not None and not program.needs.exists():
        pytest.skip(f"{program.needs.name} is not installed")
    switched = "a POST 1" if program.switch == "fixed" else "1"
    sent = f"requests of a POST {program.row.posts}, of a DELETE {program.row.deletes}; switched, {switched}"
    record_property("tool", ("client", program.client, version_of(program.version), sent))
    for method, expected in (("POST", program.row.posts), ("DELETE", program.row.deletes)):
        counting.counts.clear()
        call(program.command, counting.url, method, "kept")
        assert len(counting.counts) == expected, f"the row {program.client!r} is out of date"
        counting.counts.clear()
        call(program.command, counting.url, method, "kept", program.switch)
        is_for_posts_only = program.switch == "fixed" and method == "DELETE"
        assert len(counting.counts) == (expected if is_for_posts_only else 1), "the switch is out of date"


@pytest.mark.parametrize(("name", "command", "version"), SINGLE, ids=[name for name, *_ in SINGLE])
def test_other_clients_send_once(
    counting: CountingServer,
    name: str,
    command: Sequence[str],
    version: Sequence[str],
    record_property: Callable[..., None],
) -> None:
    """A client that the page names below the table sends one request."""
    record_property("tool", ("client", name, version_of(version), "requests of any call 1"))
    for method in ("POST", "DELETE"):
        call(command, counting.url, method, "kept")
    assert counting.counts == ["POST", "DELETE"], name


@pytest.mark.parametrize("program", PROGRAMS_BY_CLIENT[:3], ids=lambda program: program.client)
def test_the_sandbox_names_the_client(sandbox: Sandbox, program: Program) -> None:
    """A creation whose response is lost is told as sent again by this client, with its setting."""
    lost: dict[str, Any] = {"when": {"method": "POST", "nth": 1}, "then": {"reset": True, "phase": "after"}}
    sandbox.put("/control/faults/", {"faults": [lost]})
    call(program.command, f"{sandbox.url}/v1/orders/", "POST", "kept", key=sandbox.key)
    (finding,) = [each for each in review(SandboxClient(sandbox.url, sandbox.key)) if each.rule == "CTL-23"]
    assert program.client in finding.problem
    assert program.row.remedy in finding.advice
