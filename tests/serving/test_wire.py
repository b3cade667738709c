"""Limits of a receiver's response to a webhook, with and without TLS."""

import socket
import ssl
from contextlib import closing, suppress
from pathlib import Path
from threading import Thread

import pytest

from payment_sandbox.orders.webhooks import Undelivered, WebhookRequest
from payment_sandbox.serving.courier import ANSWER_BYTES_MAX, post_over_network
from payment_sandbox.serving.sessions import trusting_context
from tests.serving.test_tls import certificate_files

PIECE = 1 << 14
BUFFERED_BYTES_MAX = 1 << 20  # what the operating system's buffers take beyond what is read
ENOUGH_BYTES = 1 << 23
OK = b"HTTP/1.1 200 OK\r\n"
CUT = f"exceeds {ANSWER_BYTES_MAX} bytes|reading chunk size"  # http.client has limits of its own, too
ENDLESS = {
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * (PIECE // 25)),
    "headers": (OK, b"X-A: ".ljust(PIECE - 2, b"b") + b"\r\n"),
    "a chunk's size": (OK + b"Transfer-Encoding: chunked\r\n\r\n5;a=", b"0" * PIECE),
}


class FloodingReceiver:
    """A receiver that sends an endless response and counts the bytes that it could send."""

    def __init__(self, beginning: bytes, piece: bytes, tls: ssl.SSLContext | None) -> None:
        self._answer = (beginning, piece)
        self._tls = tls
        self.sent_bytes = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PIECE)
        self.port = self._socket.getsockname()[1]
        self._thread = Thread(target=self._respond)
        self._thread.start()

    def _respond(self) -> None:
        connection, _ = self._socket.accept()
        if self._tls is not None:
            connection = self._tls.wrap_socket(connection, server_side=True)
        beginning, piece = self._answer
        with closing(connection), suppress(OSError):
            connection.recv(PIECE)
            connection.sendall(beginning)
            while self.sent_bytes < ENOUGH_BYTES:
                connection.sendall(piece)
                self.sent_bytes += len(piece)

    def close(self) -> None:
        """Wait until the sender has closed the connection."""
        self._thread.join()
        self._socket.close()


@pytest.fixture(params=["http", "https"])
def scheme(request: pytest.FixtureRequest) -> str:
    """A scheme with or without TLS."""
    return str(request.param)


@pytest.mark.parametrize("kind", ENDLESS)
def test_an_answer_without_end_is_cut(kind: str, scheme: str, tmp_path: Path) -> None:
    """An endless response is cut in any of its parts, encrypted or not."""
    certificate, key, issuer = certificate_files(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    receiver = FloodingReceiver(*ENDLESS[kind], tls if scheme == "https" else None)
    request = WebhookRequest(f"{scheme}://localhost:{receiver.port}/", {}, b"{}")
    with closing(receiver), pytest.raises(Undelivered, match=CUT):
        post_over_network(request, lambda status: None, 5.0, trusting_context(issuer))
    assert receiver.sent_bytes < ANSWER_BYTES_MAX + BUFFERED_BYTES_MAX


def test_port_0_is_not_port_80() -> None:
    """Nothing listens on port 0, and no other port takes its place."""
    with pytest.raises(Undelivered, match="port 0"):
        post_over_network(WebhookRequest("http://127.0.0.1:0/", {}, b"{}"), lambda status: None, 5.0)
