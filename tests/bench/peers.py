"""Against servers of the same kind, side by side: those that are installed take part.

localstripe (from the Python package index) keeps state, as the sandbox does; prism (@stoplight/prism-cli, from
the Node package index) answers from an OpenAPI document and keeps none.
"""

import json
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from tests.bench import report
from tests.bench.load import http_request, per_second
from tests.bench.startup import free_port

ROUNDS = 5
READS = 4000
CREATIONS = 500  # as many on both sides; localstripe gets slower with each, as it writes all of its state
MANY = 2000
START_SECONDS = 30
BASIC = "Authorization: Basic c2FuZGJveC1rZXk6"
JSON = "Content-Type: application/json"
BEARER = "Authorization: Bearer sk_test_123"
FORM = "Content-Type: application/x-www-form-urlencoded"
ORDER = json.dumps(
    {
        "currency": "EUR",
        "amount": 1295,
        "description": "Two pairs of socks",
        "customer": {"email_address": "jan@example.com", "country": "NL", "locale": "nl"},
        "order_lines": [{"merchant_order_line_id": "line-1", "name": "Socks", "amount": 1295, "quantity": 1}],
        "transactions": [{"payment_method": "credit-card"}],
    }
).encode()
CREATE = http_request("POST", "/v1/orders/", ORDER, BASIC, JSON)
CREATE_CUSTOMER = http_request("POST", "/v1/customers", b"email=jan@example.com&name=Jan", BEARER, FORM)


@contextmanager
def running(*command: str) -> Iterator[int]:
    """A server in a process of its own; ``PORT`` in the command stands for its port."""
    port = free_port()
    with subprocess.Popen(
        [part.replace("PORT", str(port)) for part in command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            until = perf_counter() + START_SECONDS
            while not _answers(port):
                assert perf_counter() < until, f"{command[0]} does not answer"
            yield port
        finally:
            process.terminate()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@contextmanager
def sandbox() -> Iterator[int]:
    """The sandbox, as it is served."""
    with running(sys.executable, "-m", "payment_sandbox", "serve", "--port", "PORT") as port:
        yield port


def made(port: int, request: bytes) -> str:
    """The id of a new object."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    identifier: str = json.loads(answer.partition(b"\r\n\r\n")[2])["id"]
    return identifier


def localstripe(command: str) -> None:
    """Reads, creations from empty, and creations beside two thousand others."""
    with sandbox() as ours, running(command, "--port", "PORT", "--from-scratch") as theirs:
        read = http_request("GET", f"/v1/orders/{made(ours, CREATE)}/", b"", BASIC)
        read_customer = http_request("GET", f"/v1/customers/{made(theirs, CREATE_CUSTOMER)}", b"", BEARER)
        reads = [
            per_second(ours, read, READS) / per_second(theirs, read_customer, READS) for _ in range(ROUNDS)
        ]
    report("reads per second / localstripe's", reads, ">= 1.5")
    creations = []
    for _ in range(ROUNDS):
        with sandbox() as ours, running(command, "--port", "PORT", "--from-scratch") as theirs:
            rate = per_second(ours, CREATE, CREATIONS)
            creations.append(rate / per_second(theirs, CREATE_CUSTOMER, CREATIONS))
    report("creations per second / localstripe's, from empty", creations, ">= 12")
    with sandbox() as ours, running(command, "--port", "PORT", "--from-scratch") as theirs:
        per_second(ours, CREATE, MANY)
        per_second(theirs, CREATE_CUSTOMER, MANY)
        beside = [
            per_second(ours, CREATE, CREATIONS) / per_second(theirs, CREATE_CUSTOMER, CREATIONS // 10)
            for _ in range(ROUNDS)
        ]
    report(f"creations per second / localstripe's, beside {MANY} others", beside, ">= 250")


def prism(command: str) -> None:
    """Creations, against one that only checks the body and answers an example."""
    described = subprocess.run(
        [sys.executable, "-m", "payment_sandbox", "openapi"], check=True, capture_output=True
    ).stdout
    with tempfile.TemporaryDirectory() as folder:
        document = Path(folder, "openapi.json")
        document.write_bytes(described)
        with sandbox() as ours, running(command, "mock", "-p", "PORT", str(document)) as theirs:
            per_second(theirs, CREATE, CREATIONS)  # it compiles what it runs often
            ratios = [
                per_second(ours, CREATE, CREATIONS) / per_second(theirs, CREATE, CREATIONS)
                for _ in range(ROUNDS)
            ]
    report("creations per second / prism's", ratios, ">= 0.7")


def main() -> None:
    """Those that are installed."""
    for name, compare in (("localstripe", localstripe), ("prism", prism)):
        command = shutil.which(name)
        if command is None:
            print(f"{name} is not installed: no comparison with it", flush=True)
        else:
            compare(command)
