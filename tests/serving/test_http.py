"""HTTP/1.0 and HTTP/1.1 at the level of bytes."""

import json
import re
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.message import Message
from http.client import parse_headers
from io import BytesIO
from typing import IO, NamedTuple

import pytest
import requests

from payment_sandbox.projects.registry import FIRST_API_KEY
from payment_sandbox.serving.config import Limits
from payment_sandbox.serving.front import EVENT_LOOP_BYTES_MAX, HEAD_BYTES_MAX
from payment_sandbox.serving.server import Server
from tests.support.canaries import canaries, shown
from tests.support.servers import make_server

AUTH = b"Authorization: Basic c2FuZGJveC1rZXk6\r\n"  # the user name sandbox-key
ORDER = b'{"currency": "EUR", "amount": 1}'
CREATION = (
    b"POST /v1/orders/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    + AUTH
    + b"Content-Length: %d\r\n\r\n" % len(ORDER)
    + ORDER
)
CHUNKED = b"POST /v1/orders/ HTTP/1.1\r\nHost: 127.0.0.1\r\n" + AUTH + b"Transfer-Encoding: chunked\r\n\r\n"
LAST_REQUEST = b"GET /health/ HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server with a frozen clock."""
    with make_server(clock="frozen") as started:
        yield started


class RawConnection(socket.socket):
    """A connection whose responses are read from one buffer."""

    _file: IO[bytes] | None = None

    def close(self) -> None:
        """Close the connection and its buffer."""
        if self._file is not None:
            self._file.close()
        super().close()

    def answer(self) -> "Answer":
        """Read the next response."""
        if self._file is None:
            self._file = self.makefile("rb")
        status = int(self._file.readline().split()[1])
        headers = parse_headers(self._file)
        return Answer(status, headers, self._file.read(int(headers["Content-Length"])))


class Answer(NamedTuple):
    """A response."""

    status: int
    headers: Message
    body: bytes


@contextmanager
def connect(server: Server) -> Iterator[RawConnection]:
    """Open a raw connection."""
    with RawConnection() as raw:
        raw.settimeout(60)
        raw.connect(("127.0.0.1", server.port))
        yield raw


def head(line: str, *headers: bytes) -> bytes:
    """Return a request line with headers and the empty line after them."""
    return b"\r\n".join([line.encode(), b"Host: 127.0.0.1", *headers, b"", b""])


def orders(server: Server) -> int:
    """Return the number of orders in the first project."""
    url = f"{server.url}/control/state/"
    return len(requests.get(url, auth=(FIRST_API_KEY, ""), timeout=60).json()["orders"])


def test_a_body_in_chunks_is_read_whole(server: Server) -> None:
    """Two pipelined requests after a chunked body are answered in order."""
    chunked = b"".join(b"%x\r\n%s\r\n" % (1, bytes([byte])) for byte in ORDER) + b"0\r\n\r\n"
    created = head("POST /v1/orders/ HTTP/1.1", AUTH.strip(), b"Content-Type: application/json",
                   b"Transfer-Encoding: chunked")  # fmt: skip
    with connect(server) as connection:
        connection.sendall(created + chunked + head("GET /health/ HTTP/1.1") + head("GET /nowhere HTTP/1.1"))
        statuses = [connection.answer().status for _ in range(3)]
    assert statuses == [201, 200, 404]


def test_expect_100_continue_is_answered(server: Server) -> None:
    """With ``Expect: 100-continue``, the client gets 100 before it sends its body, on the event loop and on a thread."""
    lines = (AUTH.strip(), b"Content-Type: application/json", b"Expect: 100-continue")
    for size in (len(ORDER), EVENT_LOOP_BYTES_MAX + 1):
        with connect(server) as connection:
            connection.sendall(head("POST /v1/orders/ HTTP/1.1", *lines, b"Content-Length: %d" % size))
            assert connection.recv(1000).startswith(b"HTTP/1.1 100 Continue\r\n")
            connection.sendall(ORDER.ljust(size))
            assert connection.answer().status == 201


def test_a_head_answer_has_no_body_and_every_answer_is_dated(server: Server) -> None:
    """The response to HEAD has the headers of the GET response, which include the real time in HTTP format."""
    with connect(server) as connection:
        connection.sendall(head("HEAD /health/ HTTP/1.1") + LAST_REQUEST)
        first, second, body = b"".join(iter(lambda: connection.recv(65536), b"")).split(b"\r\n\r\n")
    assert json.loads(body)["status"] == "ok"
    for answer in (first, second):
        headers = parse_headers(BytesIO(answer.partition(b"\r\n")[2] + b"\r\n\r\n"))
        assert (headers["Content-Length"], headers["Server"]) == (str(len(body)), "payment-sandbox")
        assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", headers["Date"])


def test_an_upgrade_to_another_protocol_is_ignored(server: Server) -> None:
    """An HTTP/2 upgrade offer (Java's client sends it) is ignored; the response closes the connection."""
    offer = [AUTH.strip(), b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAEAAEAA",
             b"Content-Type: application/json"]  # fmt: skip
    length = b"Content-Length: %d" % len(ORDER)
    created = head("POST /v1/orders/ HTTP/1.1", *offer, length) + ORDER
    for request, status in ((created, 201), (head("GET /health/ HTTP/1.1", *offer), 200)):
        with connect(server) as connection:
            connection.sendall(request)
            answer = connection.answer()
            assert (answer.status, answer.headers["Connection"]) == (status, "close")
            assert connection.recv(1) == b""


def test_repeated_headers_are_one_and_lookalikes_are_none(server: Server) -> None:
    """``Content_Length`` is ignored, and repeated cookies are joined."""
    with connect(server) as connection:
        connection.sendall(
            head("POST /v1/orders/ HTTP/1.1", AUTH.strip(), b"Content-Type: application/json",
                 b"Content_Length: 5", b"Cookie: a=1", b"Cookie: b=2", b"Content-Length: %d" % len(ORDER)) + ORDER
        )  # fmt: skip
        assert connection.answer().status == 201


def test_headers_have_a_limit_in_all(server: Server) -> None:
    """Headers and path share a limit; a head just below the limit is accepted."""
    long = b"X: " + b"y" * (HEAD_BYTES_MAX - 200)
    many = [b"X-%d: y" % number for number in range(HEAD_BYTES_MAX // 4)]
    cases: list[tuple[int, bytes]] = [
        (200, head("GET /health/ HTTP/1.1", long)),
        (431, head("GET /health/ HTTP/1.1", long, b"Y: " + b"y" * 400)),
        (400, head("GET /health/ HTTP/1.1", *many)),
        (400, head(f"GET /{'x' * HEAD_BYTES_MAX} HTTP/1.1")),
    ]
    for status, request in cases:
        with connect(server) as connection:
            connection.sendall(request)
            answer = connection.answer()
        assert answer.status == status
        assert status != 431 or json.loads(answer.body)["error"]["type"] == "RequestHeaderFieldsTooLarge"


def test_every_created_order_has_a_response(server: Server) -> None:
    """Every order that is created has a response, also before invalid bytes."""
    for last in (b"nonsense\r\n\r\n" + CREATION, head("GET /health/ HTTP/1.1", b"Connection: close")):
        before = orders(server)
        with connect(server) as connection:
            connection.sendall(20 * CREATION + last)
            sent = b"".join(iter(lambda: connection.recv(65536), b""))
        statuses = re.findall(rb"^HTTP/1\.[01] (\d+)", sent, re.MULTILINE)
        assert statuses in ([b"400"], 20 * [b"201"] + [b"400"], 20 * [b"201"] + [b"200"]), sent
        assert orders(server) - before == statuses.count(b"201")


def test_a_client_that_closes_in_the_middle_of_a_request_gets_nothing(server: Server) -> None:
    """An incomplete request has no effect."""
    before = orders(server)
    for cut in (10, len(CREATION) - 1):
        with connect(server) as connection:
            connection.sendall(CREATION[:cut])
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""
    assert orders(server) == before


def test_the_end_of_a_response_in_pieces_to_an_old_client_is_that_of_its_connection(server: Server) -> None:
    """HTTP/1.0 has no chunks, so the connection is closed even if the client would keep it."""
    order = {"currency": "EUR", "amount": 1, "extra": {"note": "x" * 300_000}}
    url, auth = f"{server.url}/v1/orders/", (FIRST_API_KEY, "")
    assert requests.post(url, json=order, auth=auth, timeout=60).status_code == 201
    with connect(server) as connection:
        connection.sendall(head("GET /control/state/ HTTP/1.0", AUTH.strip(), b"Connection: keep-alive"))
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    headers, _, body = answer.partition(b"\r\n\r\n")
    assert b"Content-Length" not in headers
    assert order["extra"] in [each["sent"].get("extra") for each in json.loads(body)["orders"]]


def test_a_method_that_http_does_not_know_is_refused(server: Server) -> None:
    """Unknown methods get 400; known ones that a path does not allow get 405 (SET-05)."""
    length = b"Content-Length: %d" % len(ORDER)
    with connect(server) as connection:
        for method in ("TRACE", "M-SEARCH"):
            connection.sendall(head(f"{method} /v1/orders/ HTTP/1.1", AUTH.strip(), length) + ORDER)
            answer = connection.answer()
            assert (answer.status, json.loads(answer.body)["error"]["type"]) == (405, "MethodNotAllowed")
        connection.sendall(head("GET /health/ HTTP/1.1"))
        assert connection.answer().status == 200
    for method in ("FROB", "get", "M-SEARCH-ALL"):
        for cut in (0, 2):
            request = head(f"{method} /v1/orders/ HTTP/1.1", AUTH.strip(), length) + ORDER
            with connect(server) as connection:
                connection.sendall(request[:cut])
                connection.sendall(request[cut:])
                answer = connection.answer()
            assert answer.status == 400


def test_a_trailer_does_not_authenticate(server: Server) -> None:
    """Trailers do not authenticate, and many of them do not block the server."""
    chunked = head("GET /v1/orders/x/ HTTP/1.1", b"Transfer-Encoding: chunked") + b"0\r\n"
    with connect(server) as connection:
        connection.sendall(chunked + AUTH + b"\r\n")
        assert connection.answer().status == 401
        with suppress(ConnectionError):  # the server refuses it before the last byte
            connection.sendall(chunked + b"X: y\r\n" * 1_000_000 + b"\r\n")
            assert connection.answer().status in (400, 401, 431)
    assert requests.get(f"{server.url}/health/", timeout=60).status_code == 200


def test_a_connection_that_is_reset_by_its_client_is_forgotten(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """A reset in the middle of a request, of a response or of a stream is not logged."""
    for part in (
        b"GET ",
        head("GET /openapi.json HTTP/1.1"),
        head("GET /control/events/ HTTP/1.1", AUTH.strip()),
    ):
        with connect(server) as connection:
            connection.sendall(part)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert requests.get(f"{server.url}/health/", timeout=60).status_code == 200
    assert caplog.text == ""


MALFORMED = {
    "a broken header": b"GET /health/ HTTP/1.1\r\nHost: 127.0.0.1\r\nX ySECRET\r\n\r\n",
    "the name of a header": b"GET /health/ HTTP/1.1\r\nHost: 127.0.0.1\r\nSECRET: y\r\n\r\n",
    "a host": b"GET /health/ HTTP/1.1\r\nHost: SECRET\r\n\r\n",
    "a raw target": b"GET /v1/SECRET HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "a method": b"SECRET /health/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "a version": b"GET /health/ SECRET\r\nHost: 127.0.0.1\r\n\r\n",
    "an expectation": CREATION.replace(b"\r\n\r\n", b"\r\nExpect: SECRET\r\n\r\n"),
    "an upgrade": CREATION.replace(b"\r\n\r\n", b"\r\nUpgrade: SECRET\r\n\r\n"),
    "a length": b"POST /v1/orders/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: SECRET\r\n\r\n",
    "the size of a chunk": CHUNKED + b"SECRET\r\n",
    "the extension of a chunk": CHUNKED + b"1;a=SECRET\r\n1\r\n0\r\n\r\n",
    "a trailer": CHUNKED + b"0\r\nX: SECRET\r\n\r\n",
    "what follows a request": CREATION + b"SECRET",
}


@pytest.fixture(scope="module")
def impatient_server() -> Iterator[Server]:
    """A server that does not wait for the rest of a chunk whose size is a card number."""
    with make_server(limits=Limits(silent_seconds=2)) as started:
        yield started


@pytest.mark.parametrize("place", MALFORMED)
def test_a_secret_in_a_malformed_request_is_not_logged(
    impatient_server: Server, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    """No line of the log has a card number, a code or a key; test_canaries tries valid requests."""
    _, key = impatient_server.registry.create({})
    for secret in canaries(key).values():
        with (
            connect(impatient_server) as connection,
            suppress(ConnectionError),
        ):  # closed without reading the rest
            connection.sendall(MALFORMED[place].replace(b"SECRET", secret.encode()) + LAST_REQUEST)
            assert connection.recv(7) == b"HTTP/1."
    assert shown(caplog.text, key) == []
