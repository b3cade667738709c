"""What is kept of the bodies that clients send."""

import socket
from http.client import HTTPResponse

import requests

from payment_sandbox.serving.connection import Limits
from payment_sandbox.serving.server import Server
from tests.support.driver import Sandbox
from tests.support.servers import make_server

PIECE = b"x" * (1 << 16)
HEAD = (
    "PUT /control/state/ HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic c2FuZGJveC1rZXk6\r\n"
    f"Content-Type: application/json\r\nContent-Length: {2 * len(PIECE)}\r\n\r\n"
).encode()


def begun(server: Server) -> socket.socket:
    """A connection that has sent half of a snapshot."""
    opened = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    opened.sendall(HEAD + PIECE)
    return opened


def ended(opened: socket.socket) -> int:
    """Send the other half; the status of the answer."""
    opened.sendall(PIECE)
    answer = HTTPResponse(opened)
    answer.begin()
    answer.read()
    return answer.status


def test_snapshots_have_a_limit_together() -> None:
    """What is being received counts until it was used, or until its client has gone."""
    with make_server(limits=Limits(snapshots_bytes=3 * len(PIECE))) as server:
        with begun(server) as first:
            assert ended(first) == 400, "it is no snapshot, but it was kept whole"
            with begun(server), begun(server), begun(server) as late:  # and they go
                assert ended(late) in (400, 503)
        for _ in range(3):
            with begun(server) as kept:
                assert ended(kept) == 400, "those before are not counted any more"


def test_a_snapshot_beyond_the_limit_is_refused_for_now() -> None:
    """With a reason, when it was read to its end."""
    with make_server(limits=Limits(snapshots_bytes=len(PIECE))) as server, begun(server) as one:
        assert ended(one) == 503


def test_a_client_that_sends_too_much_reads_why(sandbox: Sandbox) -> None:
    """Although the body is dropped, it is read to its end; the connection can be used again."""
    with requests.Session() as http:
        http.auth = (sandbox.key, "")
        for body in (b"[" * (8 << 20), iter([b"[" * (1 << 20)] * 8)):
            answer = http.post(f"{sandbox.url}/v1/orders/", data=body, timeout=10)
            assert answer.status_code == 413
            assert "over 1048576 bytes" in answer.json()["error"]["value"]
        assert http.get(f"{sandbox.url}/v1/orders/nothing/", timeout=10).status_code == 404


def test_a_large_snapshot_is_restored_with_and_without_the_last_slash(sandbox: Sandbox) -> None:
    """Larger than any other body may be."""
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
            timeout=30,
        )
        assert answer.status_code == 200, answer.text[:200]
