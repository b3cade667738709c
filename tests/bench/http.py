"""Benchmark of requests over HTTP: the share of their cost that is ours."""

import json
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection

from tests.bench import paired, report
from tests.bench.bodies import BODY

REQUESTS = 300
ROUNDS = 21
HEADERS = {
    "Authorization": f"Basic {b64encode(b'sandbox-key:').decode()}",
    "Content-Type": "application/json",
}


def send(connection: HTTPConnection, method: str, path: str, body: bytes | None = None) -> bytes:
    """Send a request on a connection that stays open; return the body of its response."""
    connection.request(method, path, body, HEADERS)
    return connection.getresponse().read()


def send_many(connection: HTTPConnection, method: str, path: str, body: bytes | None = None) -> None:
    """Send a batch of requests."""
    for _ in range(REQUESTS):
        send(connection, method, path, body)


@contextmanager
def serve(*arguments: str) -> Iterator[HTTPConnection]:
    """Open a connection to a server in a separate process."""
    command = [sys.executable, "-m", "tests.bench.constant_server", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        connection = HTTPConnection(process.stdout.readline().strip().partition("://")[2])
        yield connection
        connection.close()
        process.communicate("")


def main() -> None:
    """Report creations and reads against a constant view of the same server."""
    with serve() as connection:
        order = json.loads(send(connection, "POST", "/v1/orders/", BODY))
        create = partial(send_many, connection, "POST", "/v1/orders/", BODY)
        read = partial(send_many, connection, "GET", f"/v1/orders/{order['id']}/")
        constant_post = partial(send_many, connection, "POST", "/constant/", BODY)
        constant_get = partial(send_many, connection, "GET", "/constant/")
        report("creations per second / constant view's", paired(create, constant_post, ROUNDS), ">= 0.50")
        report("reads per second / constant view's", paired(read, constant_get, ROUNDS), ">= 0.85")
