"""HTTP as clients of all ages speak it."""

import json
import re
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from email.message import Message
from http.client import HTTPConnection, parse_headers
from time import perf_counter
from typing import IO, NamedTuple

import pytest
import requests

from payment_sandbox.projects.registry import FIRST_API_KEY
from payment_sandbox.serving.connection import HEAD_BYTES_MAX
from payment_sandbox.serving.server import Server
from payment_sandbox.web.placing import EVENT_LOOP_BYTES_MAX
from tests.support.servers import make_server

AUTH = b"Authorization: Basic c2FuZGJveC1rZXk6\r\n"  # the user name sandbox-key
ORDER = b'{"currency": "EUR", "amount": 1}'
CREATION = (
    b"POST /v1/orders/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    + AUTH
    + b"Content-Length: %d\r\n\r\n" % len(ORDER)
    + ORDER
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server of its own, with a frozen clock."""
    with make_server(clock="frozen") as started:
        yield started


class Raw(socket.socket):
    """A connection whose answers are read one after the other from one buffer."""

    _file: IO[bytes] | None = None

    def close(self) -> None:
        """Close it with its buffer."""
        if self._file is not None:
            self._file.close()
        super().close()

    def answer(self, method: str = "GET") -> "Answer":
        """The next answer."""
        if self._file is None:
            self._file = self.makefile("rb")
        status = int(self._file.readline().split()[1])
        headers = parse_headers(self._file)
        length = 0 if method == "HEAD" else int(headers["Content-Length"])
        return Answer(status, headers, self._file.read(length))


class Answer(NamedTuple):
    """An answer as it came."""

    status: int
    headers: Message
    body: bytes


@contextmanager
def connected(server: Server) -> Iterator[Raw]:
    """A raw connection."""
    with Raw() as opened:
        opened.settimeout(5)
        opened.connect(("127.0.0.1", server.port))
        yield opened


def head(line: str, *headers: bytes) -> bytes:
    """A request line with headers, and the end of both."""
    return b"\r\n".join([line.encode(), b"Host: 127.0.0.1", *headers, b"", b""])


def orders(server: Server) -> int:
    """How many orders the first project has."""
    url = f"{server.url}/control/state/"
    return len(requests.get(url, auth=(FIRST_API_KEY, ""), timeout=10).json()["orders"])


def test_an_http_1_0_client_gets_its_answer_and_the_end(server: Server) -> None:
    """No chunks, and the connection is closed."""
    with connected(server) as connection:
        connection.sendall(b"GET /health/ HTTP/1.0\r\n\r\n")
        sent = b"".join(iter(lambda: connection.recv(65536), b""))
    assert b" 200 " in sent.splitlines()[0]
    assert b"chunked" not in sent.lower()
    assert json.loads(sent.partition(b"\r\n\r\n")[2])["status"] == "ok"


def test_a_stream_for_http_1_0_has_no_chunks(server: Server) -> None:
    """Proxies speak HTTP/1.0 by default: the lines of the events come as they are."""
    with connected(server) as connection:
        connection.sendall(b"GET /control/events/ HTTP/1.0\r\nHost: 127.0.0.1\r\n" + AUTH + b"\r\n")
        sent = b""
        while b"watching" not in sent:
            piece = connection.recv(4096)
            assert piece, sent
            sent += piece
    _, _, body = sent.partition(b"\r\n\r\n")
    assert b"chunked" not in sent.lower()
    assert body == b": watching\n\n"


def test_a_stream_for_http_1_1_is_chunked(server: Server) -> None:
    """And the connection stays usable for as long as it lasts."""
    url = f"{server.url}/control/events/"
    with requests.get(url, auth=(FIRST_API_KEY, ""), stream=True, timeout=5) as answer:
        assert answer.headers["Transfer-Encoding"] == "chunked"
        assert next(answer.iter_lines(chunk_size=1)) == b": watching"


def test_a_body_in_chunks_is_read_whole(server: Server) -> None:
    """And two requests behind it on the same connection are answered in order."""
    chunked = b"".join(b"%x\r\n%s\r\n" % (1, bytes([byte])) for byte in ORDER) + b"0\r\n\r\n"
    created = head("POST /v1/orders/ HTTP/1.1", AUTH.strip(), b"Content-Type: application/json",
                   b"Transfer-Encoding: chunked")  # fmt: skip
    with connected(server) as connection:
        connection.sendall(created + chunked + head("GET /health/ HTTP/1.1") + head("GET /nowhere HTTP/1.1"))
        statuses = [connection.answer().status for _ in range(3)]
    assert statuses == [201, 200, 404]


@pytest.mark.parametrize("size", [len(ORDER), EVENT_LOOP_BYTES_MAX + 1])
def test_a_client_that_expects_to_be_asked_is_asked(server: Server, size: int) -> None:
    """With Expect: 100-continue, before it sends its body."""
    body = ORDER.ljust(size)
    request = head(
        "POST /v1/orders/ HTTP/1.1",
        AUTH.strip(),
        b"Content-Type: application/json",
        b"Expect: 100-continue",
        b"Content-Length: %d" % size,
    )
    with connected(server) as connection:
        connection.sendall(request)
        assert connection.recv(1000).startswith(b"HTTP/1.1 100 Continue\r\n")
        connection.sendall(body)
        assert connection.answer().status == 201


def test_a_head_answer_has_no_body(server: Server) -> None:
    """But the length that the body would have."""
    with connected(server) as connection:
        connection.sendall(head("HEAD /health/ HTTP/1.1") + head("GET /health/ HTTP/1.1"))
        first, second = connection.answer("HEAD"), connection.answer()
    assert second.status == 200
    assert int(first.headers["Content-Length"]) == len(second.body)


def test_an_offer_of_another_protocol_is_not_taken(server: Server) -> None:
    """Java's client offers HTTP/2 with its first request, bodies included; the connection ends with the answer."""
    offer = [AUTH.strip(), b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAEAAEAA",
             b"Content-Type: application/json"]  # fmt: skip
    length = b"Content-Length: %d" % len(ORDER)
    created = head("POST /v1/orders/ HTTP/1.1", *offer, length) + ORDER
    for request, status in ((created, 201), (head("GET /health/ HTTP/1.1", *offer), 200)):
        with connected(server) as connection:
            connection.sendall(request)
            answer = connection.answer()
            assert (answer.status, answer.headers["Connection"]) == (status, "close")
            assert connection.recv(1) == b""


def test_repeated_headers_are_one_and_lookalikes_are_none(server: Server) -> None:
    """Content_Length is no Content-Length, and two cookies are one header."""
    with connected(server) as connection:
        connection.sendall(
            head("POST /v1/orders/ HTTP/1.1", AUTH.strip(), b"Content-Type: application/json",
                 b"Content_Length: 5", b"Cookie: a=1", b"Cookie: b=2", b"Content-Length: %d" % len(ORDER)) + ORDER
        )  # fmt: skip
        assert connection.answer().status == 201


def test_every_answer_is_dated(server: Server) -> None:
    """By real time, as HTTP has it."""
    answer = requests.get(f"{server.url}/health/", timeout=5)
    assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", answer.headers["Date"])
    assert answer.headers["Server"] == "payment-sandbox"


def test_headers_have_a_limit_in_all(server: Server) -> None:
    """One long one, many short ones, a long path; what is just below is read."""
    long = b"X: " + b"y" * (HEAD_BYTES_MAX - 200)
    many = [b"X-%d: y" % number for number in range(HEAD_BYTES_MAX // 4)]
    cases: list[tuple[int, bytes]] = [
        (200, head("GET /health/ HTTP/1.1", long)),
        (431, head("GET /health/ HTTP/1.1", long, b"Y: " + b"y" * 400)),
        (431, head("GET /health/ HTTP/1.1", *many)),
        (431, head(f"GET /{'x' * HEAD_BYTES_MAX} HTTP/1.1")),
    ]
    for status, request in cases:
        with connected(server) as connection:
            connection.sendall(request)
            answer = connection.answer()
        assert answer.status == status
        assert status == 200 or json.loads(answer.body)["error"]["type"] == "RequestHeaderFieldsTooLarge"


def test_a_head_that_never_ends_is_refused_before_it_fills_the_memory(server: Server) -> None:
    """In small pieces, too."""
    with connected(server) as connection:
        connection.sendall(b"GET /health/ HTTP/1.1\r\nX: ")
        for _ in range(HEAD_BYTES_MAX // 1000 + 2):
            connection.sendall(b"y" * 1000)
        assert connection.answer().status == 431


def test_requests_sent_ahead_are_answered_in_order(server: Server) -> None:
    """However they are cut into segments; a head that a segment cuts in two is not taken for a long one."""
    ahead = 600
    with connected(server) as connection:
        connection.sendall(b"".join(head(f"GET /control/{number} HTTP/1.1") for number in range(ahead)))
        connection.sendall(head("GET /health/ HTTP/1.1")[:-3])
        connection.sendall(head("GET /health/ HTTP/1.1")[-3:])
        assert [connection.answer().status for _ in range(ahead + 1)] == [404] * ahead + [200]


def test_what_was_asked_before_nonsense_is_answered(server: Server) -> None:
    """Then comes the refusal, and nothing after it is read."""
    with connected(server) as connection:
        connection.sendall(CREATION)
        assert connection.answer().status == 201
        connection.sendall(b"nonsense\r\n\r\n" + CREATION)
        assert connection.answer().status == 400
        assert connection.recv(1) == b""


def test_nothing_is_done_that_is_not_answered(server: Server) -> None:
    """Of a segment with nonsense in it, and for a client that closes its sending side at once."""
    for segment in (CREATION + b"nonsense\r\n\r\n" + CREATION, 20 * CREATION):
        before = orders(server)
        with connected(server) as connection:
            connection.sendall(segment)
            connection.shutdown(socket.SHUT_WR)
            sent = b"".join(iter(lambda: connection.recv(65536), b""))
        statuses = re.findall(rb"^HTTP/1\.[01] (\d+)", sent, re.MULTILINE)
        assert statuses in ([b"400"], [b"201", b"400"], 20 * [b"201"]), sent
        assert orders(server) - before == statuses.count(b"201")


def test_a_client_that_closes_in_the_middle_of_a_request_gets_nothing(server: Server) -> None:
    """And nothing is done; neither its head nor its body has come whole."""
    before = orders(server)
    for cut in (10, len(CREATION) - 1):
        with connected(server) as connection:
            connection.sendall(CREATION[:cut])
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""
    assert orders(server) == before


def test_a_method_that_http_does_not_know_is_refused(server: Server) -> None:
    """By the parser, in the usual shape; one that HTTP knows is not allowed, also with a body (SET-05)."""
    length = b"Content-Length: %d" % len(ORDER)
    with connected(server) as connection:
        for method in ("TRACE", "M-SEARCH"):
            connection.sendall(head(f"{method} /v1/orders/ HTTP/1.1", AUTH.strip(), length) + ORDER)
            answer = connection.answer()
            assert (answer.status, json.loads(answer.body)["error"]["type"]) == (405, "MethodNotAllowed")
        connection.sendall(head("GET /health/ HTTP/1.1"))
        assert connection.answer().status == 200
    for method in ("FROB", "get", "M-SEARCH-ALL"):
        for cut in (0, 2):
            request = head(f"{method} /v1/orders/ HTTP/1.1", AUTH.strip(), length) + ORDER
            with connected(server) as connection:
                connection.sendall(request[:cut])
                connection.sendall(request[cut:])
                answer = connection.answer()
            assert (answer.status, json.loads(answer.body)["error"]["type"]) == (400, "BadRequest")


def test_a_whole_address_as_target_is_its_path(server: Server) -> None:
    """As a proxy sends it."""
    with connected(server) as connection:
        for target in ("/health/", "http://127.0.0.1/health/", "http://elsewhere.test/health/?x=1"):
            connection.sendall(head(f"GET {target} HTTP/1.1"))
            assert connection.answer().status == 200
        connection.sendall(head("GET http://127.0.0.1/nowhere HTTP/1.1"))
        assert connection.answer().status == 404


def test_a_trailer_signs_nobody_in(server: Server) -> None:
    """Nor does an endless number of them take long."""
    chunked = head("GET /v1/orders/x/ HTTP/1.1", b"Transfer-Encoding: chunked") + b"0\r\n"
    with connected(server) as connection:
        connection.sendall(chunked + AUTH + b"\r\n")
        assert connection.answer().status == 401
        begun = perf_counter()
        with suppress(OSError):  # it is refused before it has come
            connection.sendall(chunked + b"X: y\r\n" * 1_000_000 + b"\r\n")
        assert connection.answer().status in (400, 401, 431)
    assert perf_counter() - begun < 2


@pytest.mark.parametrize(
    ("version", "length", "is_asked"), [("1.0", 100, False), ("1.1", 2 << 20, False), ("1.1", 100, True)]
)
def test_nobody_is_asked_for_what_will_be_refused(
    server: Server, version: str, length: int, is_asked: bool
) -> None:
    """A client of HTTP/1.0 knows no interim response, and a body over the limit need not be sent."""
    with connected(server) as connection:
        lines = (AUTH.strip(), b"Expect: 100-continue", b"Content-Length: %d" % length)
        connection.sendall(head(f"POST /v1/orders/ HTTP/{version}", *lines))
        if version == "1.0":
            connection.sendall(ORDER.ljust(length))
        status = int(connection.recv(1000).split()[1])
    assert (status == 100) == is_asked
    assert status in (100, 413, 415)


@pytest.mark.parametrize(
    ("request_line", "status"),
    [("GET /health/ HTTP/2.0", 505), ("GET /health/ HTTP/0.9", 505), ("GET /health/ HTTP/1.1", 400)],
)
def test_other_versions_and_a_missing_host_are_refused(
    server: Server, request_line: str, status: int
) -> None:
    """HTTP/1.1 asks for a Host."""
    with connected(server) as connection:
        connection.sendall(f"{request_line}\r\n\r\n".encode())
        assert connection.answer().status == status


def test_slow_half_open_connections_hurt_nobody(server: Server) -> None:
    """Two hundred that have sent a part of a request; others are answered at once."""
    with ExitStack() as kept:
        for number in range(200):
            half = kept.enter_context(connected(server))
            half.sendall(b"POST /v1/orders/ HTTP/1.1\r\nContent-Length: 100\r\n\r\n"[: 10 + number % 50])
        begun = perf_counter()
        for _ in range(20):
            assert requests.get(f"{server.url}/health/", timeout=5).status_code == 200
        assert perf_counter() - begun < 2


def test_a_connection_that_is_reset_by_its_client_is_forgotten(server: Server) -> None:
    """In the middle of a request or of an answer, without a word in the log."""
    for part in (
        b"GET ",
        head("GET /openapi.json HTTP/1.1"),
        head("GET /control/events/ HTTP/1.1", AUTH.strip()),
    ):
        with connected(server) as connection:
            connection.sendall(part)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert requests.get(f"{server.url}/health/", timeout=5).status_code == 200


def test_waiting_calls_leave_room_for_others() -> None:
    """A thousand orders are read while calls wait; and stopping ends them."""
    threads = threading.active_count()
    with make_server(clock="frozen") as server:
        waiting = [HTTPConnection("127.0.0.1", server.port, timeout=10) for _ in range(100)]
        order = requests.post(
            f"{server.url}/v1/orders/",
            json={"currency": "EUR", "amount": 1},
            auth=(FIRST_API_KEY, ""),
            timeout=5,
        ).json()
        for connection in waiting:
            connection.putrequest("GET", f"/control/wait/?order_id={order['id']}&status=completed&timeout=30")
            connection.putheader("Authorization", "Basic c2FuZGJveC1rZXk6")
            connection.endheaders()
        with requests.Session() as session:
            session.auth = (FIRST_API_KEY, "")
            for _ in range(300):
                assert session.get(f"{server.url}/v1/orders/{order['id']}/", timeout=2).status_code == 200
        begun = perf_counter()
    assert perf_counter() - begun < 2
    for connection in waiting:
        connection.close()
    assert threading.active_count() - threads < 100, "the calls that waited have ended"


def test_a_stalled_loop_loses_nothing(server: Server) -> None:
    """Whatever holds up the loop between two requests of a client that has closed its sending side."""
    loop = getattr(server.listener, "_loop")  # noqa: B009 - of the HTTP server, not of every listener
    is_over = threading.Event()

    def hold_up() -> None:
        threading.Event().wait(0.06)
        if not is_over.is_set():
            loop.call_soon(hold_up)

    before = orders(server)
    with connected(server) as connection:
        loop.call_soon_threadsafe(hold_up)
        connection.sendall(5 * CREATION)
        connection.shutdown(socket.SHUT_WR)
        sent = b"".join(iter(lambda: connection.recv(65536), b""))
    is_over.set()
    assert re.findall(rb"^HTTP/1\.[01] (\d+)", sent, re.MULTILINE) == 5 * [b"201"]
    assert orders(server) - before == 5
