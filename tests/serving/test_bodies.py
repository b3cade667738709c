"""Limits of request bodies."""

import socket
from http.client import HTTPResponse

import requests

from payment_sandbox.serving.gateway import Limits
from payment_sandbox.serving.server import Server
from tests.support.driver import Sandbox
from tests.support.servers import make_server

PIECE = b"x" * (1 << 20)
HEAD = (
    "PUT /control/state/ HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic c2FuZGJveC1rZXk6\r\n"
    f"Content-Type: application/json\r\nContent-Length: {2 * len(PIECE)}\r\n\r\n"
).encode()


def begin_snapshot(server: Server) -> socket.socket:
    """Open a connection and send the first half of a snapshot."""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    connection.sendall(HEAD + PIECE)
    return connection


def finish_snapshot(connection: socket.socket) -> int:
    """Send the second half; return the status of the response."""
    connection.sendall(PIECE)
    answer = HTTPResponse(connection)
    answer.begin()
    answer.read()
    return answer.status


def test_snapshots_have_a_limit_together() -> None:
    """Concurrent snapshots share a limit; each counts until it is used or its client disconnects."""
    with make_server(limits=Limits(snapshots_bytes=3 * len(PIECE))) as server:
        with begin_snapshot(server) as first:
            assert finish_snapshot(first) == 400, "the whole body was read, but is not a snapshot"
            with (
                begin_snapshot(server),
                begin_snapshot(server),
                begin_snapshot(server) as last,
            ):  # and all disconnect
                assert finish_snapshot(last) in (400, 503)
        status = 503  # until the server has noticed that the clients are gone
        while status == 503:
            with begin_snapshot(server) as later:
                status = finish_snapshot(later)
        assert status == 400


def test_a_snapshot_beyond_the_limit_is_refused_for_now() -> None:
    """A snapshot beyond the limit is read to its end and answered with 503."""
    with make_server(limits=Limits(snapshots_bytes=len(PIECE))) as server, begin_snapshot(server) as one:
        assert finish_snapshot(one) == 503


def test_a_client_that_sends_too_much_reads_why(sandbox: Sandbox) -> None:
    """An oversized body is read to its end and dropped; the connection stays usable."""
    with requests.Session() as http:
        http.auth = (sandbox.key, "")
        for body in (b"[" * (8 << 20), iter([b"[" * (1 << 20)] * 8)):
            answer = http.post(f"{sandbox.url}/v1/orders/", data=body, timeout=60)
            assert answer.status_code == 413
            assert "over 1048576 bytes" in answer.json()["error"]["value"]
        assert http.get(f"{sandbox.url}/v1/orders/nothing/", timeout=60).status_code == 404


def test_a_large_snapshot_is_restored_with_and_without_a_trailing_slash(sandbox: Sandbox) -> None:
    """Snapshots may be larger than other bodies."""
    for _ in range(3):
        sandbox.create(extra={"note": "x" * 900_000})
    snapshot = sandbox.get("/control/state/").content
    assert len(snapshot) > 2 << 20
    for path in ("/control/state/", "/control/state"):
        answer = requests.put(
            f"{sandbox.url}{path}",
            data=snapshot,
            headers={"Content-Type": "application/json"},
            auth=(sandbox.key, ""),
            timeout=60,
        )
        assert answer.status_code == 200, answer.text[:200]
