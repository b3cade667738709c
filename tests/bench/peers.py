"""Benchmark against localstripe (from the Python package index), which is stateful, too, if it is installed."""

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.bench import report
from tests.bench.bodies import ORDER_WITH_LINE
from tests.bench.load import http_request, per_second
from tests.bench.startup import connect
from tests.support.ports import free_port

ROUNDS = 5
READS = 4000
CREATIONS = 500  # on both sides; localstripe gets slower with each, as it writes its whole state
BASIC = "Authorization: Basic c2FuZGJveC1rZXk6"
JSON = "Content-Type: application/json"
BEARER = "Authorization: Bearer sk_test_123"
FORM = "Content-Type: application/x-www-form-urlencoded"
CREATE = http_request("POST", "/v1/orders/", json.dumps(ORDER_WITH_LINE).encode(), BASIC, JSON)
CREATE_CUSTOMER = http_request("POST", "/v1/customers", b"email=jan@example.com&name=Jan", BEARER, FORM)


@contextmanager
def run_server(*command: str) -> Iterator[tuple[int, int]]:
    """Run a server in a separate process; yield its port, ``PORT`` in the command, and its process ID."""
    port = free_port()
    with subprocess.Popen(
        [part.replace("PORT", str(port)) for part in command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            connect(port, process).close()
            yield port, process.pid
        finally:
            process.terminate()


@contextmanager
def run_sandbox() -> Iterator[tuple[int, int]]:
    """Run the sandbox with ``serve``; yield its port and its process ID."""
    with run_server(sys.executable, "-m", "payment_sandbox", "serve", "--port", "PORT") as running:
        yield running


def create_object(port: int, request: bytes) -> str:
    """Create an object, and return its id."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    identifier: str = json.loads(answer.partition(b"\r\n\r\n")[2])["id"]
    return identifier


def localstripe(command: str) -> None:
    """Report reads, and creations from empty."""
    their_command = (command, "--port", "PORT", "--from-scratch")
    with run_sandbox() as (our_port, _), run_server(*their_command) as (their_port, _):
        read = http_request("GET", f"/v1/orders/{create_object(our_port, CREATE)}/", b"", BASIC)
        read_customer = http_request(
            "GET", f"/v1/customers/{create_object(their_port, CREATE_CUSTOMER)}", b"", BEARER
        )
        reads = [
            per_second(our_port, read, READS) / per_second(their_port, read_customer, READS)
            for _ in range(ROUNDS)
        ]
    report("reads per second / localstripe's", reads, ">= 1.5")
    creations = []
    for _ in range(ROUNDS):
        with run_sandbox() as (our_port, _), run_server(*their_command) as (their_port, _):
            rate = per_second(our_port, CREATE, CREATIONS)
            creations.append(rate / per_second(their_port, CREATE_CUSTOMER, CREATIONS))
    report("creations per second / localstripe's, from empty", creations, ">= 12")


def main() -> None:
    """Report the comparison with localstripe, if it is installed."""
    command = shutil.which("localstripe")
    if command is None:
        print("localstripe is not installed: no comparison with it", flush=True)
    else:
        localstripe(command)
