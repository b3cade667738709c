"""Benchmark of requests over HTTP: the share of their cost that is ours."""

import json
import subprocess
import sys
from base64 import b64encode
from functools import partial
from http.client import HTTPConnection

from tests.bench import report, seconds
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


def main() -> None:
    """Report creations and reads against a constant view of the same server."""
    command = [sys.executable, "-m", "tests.bench.constant_server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        connection = HTTPConnection(process.stdout.readline().strip().partition("://")[2])
        order = json.loads(send(connection, "POST", "/v1/orders/", BODY))
        for label, call, constant, aim in (
            ("creations", ("POST", "/v1/orders/", BODY), ("POST", "/constant/", BODY), ">= 0.50"),
            ("reads", ("GET", f"/v1/orders/{order['id']}/"), ("GET", "/constant/"), ">= 0.85"),
        ):
            work, reference = partial(send_many, connection, *call), partial(send_many, connection, *constant)
            ratios = [seconds(reference) / seconds(work) for _ in range(ROUNDS)]
            report(f"{label} per second / constant view's", ratios, aim)
        connection.close()
        process.communicate("")
