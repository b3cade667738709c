"""Over HTTP: how much of a request's cost is ours."""

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
    """One request on a connection that stays open."""
    connection.request(method, path, body, HEADERS)
    return connection.getresponse().read()


def many(connection: HTTPConnection, method: str, path: str, body: bytes | None = None) -> None:
    """A batch of requests."""
    for _ in range(REQUESTS):
        send(connection, method, path, body)


@contextmanager
def served(*arguments: str) -> Iterator[HTTPConnection]:
    """A connection to a server in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.served", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        connection = HTTPConnection(process.stdout.readline().strip().partition("://")[2])
        yield connection
        connection.close()
        process.communicate("")


def main() -> None:
    """Creation and read against a constant view of the same server."""
    with served() as connection:
        order = json.loads(send(connection, "POST", "/v1/orders/", BODY))
        create = partial(many, connection, "POST", "/v1/orders/", BODY)
        read = partial(many, connection, "GET", f"/v1/orders/{order['id']}/")
        constant_post = partial(many, connection, "POST", "/constant/", BODY)
        constant_get = partial(many, connection, "GET", "/constant/")
        report("creations per second / constant view's", paired(create, constant_post, ROUNDS), ">= 0.50")
        report("reads per second / constant view's", paired(read, constant_get, ROUNDS), ">= 0.85")
