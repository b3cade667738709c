"""Limits of request bodies."""

import socket
from urllib.parse import urlsplit

import requests

from payment_sandbox.web.bodies import STATE_BYTES_MAX
from payment_sandbox.web.snapshot_bodies import STATE_VALUES_MAX
from tests.support.driver import Sandbox

AUTHORIZATION = b"Authorization: Basic c2FuZGJveC1rZXk6\r\n"
PIECE = b"x" * (1 << 20)
HEAD = (
    "PUT /control/state/ HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic c2FuZGJveC1rZXk6\r\n"
    f"Content-Type: application/json\r\nContent-Length: {2 * len(PIECE)}\r\n\r\n"
).encode()


def test_a_large_body_takes_the_key_of_a_project(sandbox: Sandbox) -> None:
    """A large snapshot without a known key is refused before it is read."""
    head = HEAD.replace(str(2 * len(PIECE)).encode(), str(STATE_BYTES_MAX).encode())
    for authorization in (b"", b"Authorization: Basic eDp4\r\n"):
        with socket.create_connection(("127.0.0.1", urlsplit(sandbox.url).port), timeout=60) as connection:
            connection.sendall(head.replace(AUTHORIZATION, authorization) + PIECE)
            assert connection.recv(12) == b"HTTP/1.1 401"


def test_the_values_of_a_snapshot_are_counted_before_they_are_parsed(sandbox: Sandbox) -> None:
    """A snapshot with too many values is refused, without a look at its end."""
    body = b'{"orders": [' + b"[]," * (STATE_VALUES_MAX // 2) + b"[]]}no JSON"
    headers = {"Content-Type": "application/json"}
    answer = requests.put(
        f"{sandbox.url}/control/state/", body, headers=headers, auth=(sandbox.key, ""), timeout=60
    )
    assert (answer.status_code, f"{STATE_VALUES_MAX:,}" in answer.text) == (413, True)


def test_no_snapshot_is_taken_that_cannot_be_restored(sandbox: Sandbox) -> None:
    """A project that is too large for a snapshot gets no snapshot."""
    for _ in range(20):
        sandbox.create(extra={"note": "x" * 900_000})
    answer = sandbox.get("/control/state/")
    assert (answer.status_code, "too large for a snapshot" in answer.text) == (413, True)


def test_a_client_that_sends_too_much_reads_why(sandbox: Sandbox) -> None:
    """An oversized body is read to its end and dropped; the connection stays usable."""
    with requests.Session() as http:
        http.auth = (sandbox.key, "")
        for body in (b"[" * (8 << 20), iter([b"[" * (1 << 20)] * 8)):
            answer = http.post(f"{sandbox.url}/v1/orders/", data=body, timeout=60)
            assert answer.status_code == 413
            assert "over 1048576 bytes" in answer.json()["error"]["value"]
        assert http.get(f"{sandbox.url}/v1/orders/nothing/", timeout=60).status_code == 404
