"""How much of an answer to a webhook is taken, with and without TLS."""

import socket
import ssl
from contextlib import closing, suppress
from pathlib import Path
from threading import Thread

import pytest

from payment_sandbox.orders.webhooks import Undelivered, WebhookRequest
from payment_sandbox.serving.posting import ANSWER_BYTES_MAX, post_over_network
from payment_sandbox.serving.sessions import Trust
from tests.serving.test_tls import certificate_files

PIECE = 1 << 14
ON_THE_WAY_BYTES_MAX = 1 << 20  # what the operating system's buffers take beyond what is read
ENOUGH_BYTES = 1 << 23
OK = b"HTTP/1.1 200 OK\r\n"
CUT = f"exceeds {ANSWER_BYTES_MAX} bytes|size line exceeded"  # a newer urllib3 has a limit of its own
ENDLESS = {
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * (PIECE // 25)),
    "headers": (OK, b"X-A: ".ljust(PIECE - 2, b"b") + b"\r\n"),
    "a chunk's size": (OK + b"Transfer-Encoding: chunked\r\n\r\n5;a=", b"0" * PIECE),
}


class Flooding:
    """A receiver whose answer is far too long; it counts what it gets rid of."""

    def __init__(self, begun: bytes, piece: bytes, tls: ssl.SSLContext | None) -> None:
        self._answer = (begun, piece)
        self._tls = tls
        self.sent_bytes = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PIECE)
        self.port = self._listening.getsockname()[1]
        self._thread = Thread(target=self._talk)
        self._thread.start()

    def _talk(self) -> None:
        opened, _ = self._listening.accept()
        if self._tls is not None:
            opened = self._tls.wrap_socket(opened, server_side=True)
        begun, piece = self._answer
        with closing(opened), suppress(OSError):
            opened.recv(PIECE)
            opened.sendall(begun)
            while self.sent_bytes < ENOUGH_BYTES:
                opened.sendall(piece)
                self.sent_bytes += len(piece)

    def close(self) -> None:
        """Return when the sender has hung up."""
        self._thread.join()
        self._listening.close()


@pytest.fixture(params=["http", "https"])
def scheme(request: pytest.FixtureRequest) -> str:
    """With and without TLS."""
    return str(request.param)


@pytest.mark.parametrize("kind", ENDLESS)
def test_an_answer_without_end_is_cut(kind: str, scheme: str, tmp_path: Path) -> None:
    """Whichever part of it goes on, and whether it is encrypted or not."""
    certificate, key, issuer = certificate_files(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    flooding = Flooding(*ENDLESS[kind], tls if scheme == "https" else None)
    request = WebhookRequest(f"{scheme}://localhost:{flooding.port}/", {}, b"{}")
    with closing(flooding), pytest.raises(Undelivered, match=CUT):
        post_over_network(request, lambda status: None, Trust.of(issuer))
    assert flooding.sent_bytes < ANSWER_BYTES_MAX + ON_THE_WAY_BYTES_MAX
