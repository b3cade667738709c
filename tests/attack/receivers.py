"""Receivers of webhooks that do what no receiver should: each is given up in time, and leaves nothing behind."""

import gzip
import socket
import struct
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Event, Thread
from time import perf_counter
from typing import Any, Final

from tests.attack import Report
from tests.attack.probe import probing
from tests.attack.served import Served, served
from tests.support.driver import by

GIVEN_UP_SECONDS = 5.0
TOLERANCE_SECONDS = 3.0
GIVEN_BACK_SECONDS = 10.0
SPARE_THREADS = 40
SPARE_FILES = 12
CPU_SHARE_MAX = 0.2
DRIP_SECONDS = 0.3

OK = b"HTTP/1.1 200 OK\r\n"
Talk = Callable[[socket.socket, Event], object]


def says(*pieces: bytes) -> Talk:
    """Reads the request, sends this and closes."""

    def talk(connection: socket.socket, is_over: Event) -> None:
        connection.recv(65536)
        for piece in pieces:
            connection.sendall(piece)

    return talk


def drips(before: bytes, drop: bytes) -> Talk:
    """Sends a little now and then, for ever."""

    def talk(connection: socket.socket, is_over: Event) -> None:
        connection.sendall(before)
        while not is_over.wait(DRIP_SECONDS):
            connection.sendall(drop)

    return talk


def floods(before: bytes, piece: bytes) -> Talk:
    """Sends as much as it can, for ever."""

    def talk(connection: socket.socket, is_over: Event) -> None:
        connection.sendall(before)
        while not is_over.is_set():
            connection.sendall(piece)

    return talk


def resets(connection: socket.socket, is_over: Event) -> None:
    """Breaks the connection."""
    connection.recv(65536)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def waits(connection: socket.socket, is_over: Event) -> None:
    """Reads nothing and answers nothing."""
    is_over.wait()


CHUNKED: Final = OK + b"Transfer-Encoding: chunked\r\n\r\n"
GZIPPED: Final = OK + b"Content-Encoding: gzip\r\n\r\n"
KINDS: Final[Mapping[str, Talk]] = {
    "closes at once": lambda connection, is_over: None,
    "resets": resets,
    "never reads or answers": waits,
    "drips its head": drips(OK, b"X-A: b\r\n"),
    "drips its status line": drips(b"HTTP/1.1 ", b"2"),
    "endless 100 Continue": floods(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "dripped 100 Continue": drips(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "endless 102 Processing": floods(b"", b"HTTP/1.1 102 Processing\r\n\r\n" * 100),
    "endless headers": floods(OK, b"X-A: b\r\n" * 100),
    "one endless header": floods(OK + b"X-A: ", b"b" * 65536),
    "an endless status line": floods(b"HTTP/1.1 200 ", b"K" * 65536),
    "drips its body": drips(OK + b"Content-Length: 100000\r\n\r\n", b"x"),
    "drips chunks": drips(CHUNKED, b"1\r\nx\r\n"),
    "drips a chunk's size": drips(CHUNKED, b"0"),
    "an endless body": floods(OK + b"\r\n", b"x" * 65536),
    "endless blank lines": floods(b"", b"\r\n" * 1000),
    "a gzip bomb": says(GZIPPED + gzip.compress(b"0" * (64 << 20))),
    "gzip that is none": says(GZIPPED + b"never compressed"),
    "no HTTP": says(b"220 mail.example ESMTP\r\n"),
    "HTTP/0.9": says(b"<html>hello</html>"),
    "HTTP/2": says(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" * 3),
    "a status line only": says(b"HTTP/1.1 200 OK"),
    "status 999": says(b"HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n"),
    "status 0": says(b"HTTP/1.1 0 Nothing\r\n\r\n"),
    "a status in words": says(b"HTTP/1.1 fine OK\r\n\r\n"),
    "a negative length": says(OK + b"Content-Length: -5\r\n\r\nhello"),
    "two lengths": says(OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
    "a longer length": says(OK + b"Content-Length: 500\r\n\r\nhello"),
    "chunks with wrong sizes": says(CHUNKED + b"zz\r\nhello\r\n0\r\n\r\n"),
    "a huge chunk": says(CHUNKED + b"ffffffffffffffff\r\nhello"),
    "a redirect to itself": says(b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"),
    "a redirect to a file": says(
        b"HTTP/1.1 307 Go\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"
    ),
    "switching protocols": says(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"),
    "a long header": says(OK + b"X-A: " + b"b" * 100_000 + b"\r\nContent-Length: 0\r\n\r\n"),
    "NUL in a header": says(OK + b"X-A: a\0b\r\nContent-Length: 0\r\n\r\n"),
    "bytes that are no text": says(OK + b"Content-Length: 256\r\n\r\n" + bytes(range(256))),
}
ENCRYPTED: Final[Mapping[str, Talk]] = {
    "TLS that is none": says(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    "a dripped handshake": drips(b"\x16\x03\x03\x40\x00", b"\x02"),
    "a handshake that does not come": waits,
}


def attack(report: Report) -> None:
    """All kinds at once, each with a project of its own."""
    with served() as server, _receivers() as urls:
        _attacked(server, report, urls)
        if report.size.strict:
            _attacked(server, report, urls)


def _attacked(server: Served, report: Report, urls: Mapping[str, str]) -> None:
    before = server.use()
    with probing(server, report, f"{len(urls)} receivers"), ThreadPoolExecutor(len(urls)) as many:
        found = dict(zip(urls, many.map(lambda url: _delivered(server, url), urls.values()), strict=True))
    slowest = max(seconds for seconds, _ in found.values())
    report.limit("longest attempt", slowest, GIVEN_UP_SECONDS + TOLERANCE_SECONDS, "s")
    for kind, (_, attempt) in found.items():
        answer = attempt["response"] or {}
        report.expect(f"{kind} is recorded", bool(answer) or bool(attempt["error"]), attempt)
    begun = perf_counter()
    after = server.use()
    while perf_counter() - begun < GIVEN_BACK_SECONDS and (
        after.threads > before.threads + SPARE_THREADS or after.files > before.files + SPARE_FILES
    ):
        _pass_seconds(server, 0.1)
        after = server.use()
    report.limit("threads left", after.threads, before.threads + SPARE_THREADS)
    report.limit("files left", after.files, before.files + SPARE_FILES)
    begun, used = perf_counter(), server.use().cpu_seconds
    _pass_seconds(server, 1.0)
    share = (server.use().cpu_seconds - used) / (perf_counter() - begun)
    report.limit("processor used afterwards", share, CPU_SHARE_MAX)


def _delivered(server: Served, url: str) -> tuple[float, Any]:
    """How long the first attempt took, and its record."""
    with server.project(webhook_url=url, clock="frozen") as project:
        begun = perf_counter()
        project.order(by("bank-transfer"))
        project.call("GET", f"/control/wait/?idle=1&timeout={3 * GIVEN_UP_SECONDS:g}")
        took_seconds = perf_counter() - begun
        (webhook,) = project.expect("GET", "/control/webhooks/")["items"]
        return took_seconds, next(iter(webhook["attempts"]), {"response": None, "error": None})


def _pass_seconds(server: Served, seconds: float) -> None:
    """Let the server have nothing to do but to wait for what does not come."""
    with server.project(clock="frozen") as project:
        order = project.order()
        answer = project.call("GET", f"/control/wait/?webhook={order['id']}&timeout={seconds:g}")
        assert answer.status_code == 408, answer.text


@contextmanager
def _receivers() -> Iterator[dict[str, str]]:
    """The address of each kind."""
    is_over = Event()
    listening: list[socket.socket] = []

    def listen(scheme: str, talk: Talk) -> str:
        opened = socket.create_server(("127.0.0.1", 0), backlog=64)
        listening.append(opened)
        Thread(target=_accept, args=(opened, talk, is_over), daemon=True).start()
        return f"{scheme}://127.0.0.1:{opened.getsockname()[1]}/"

    try:
        yield {
            **{kind: listen("http", talk) for kind, talk in KINDS.items()},
            **{kind: listen("https", talk) for kind, talk in ENCRYPTED.items()},
        }
    finally:
        is_over.set()
        for opened in listening:
            with suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)
            opened.close()


def _accept(listening: socket.socket, talk: Talk, is_over: Event) -> None:
    while not is_over.is_set():
        try:
            accepted, _ = listening.accept()
        except OSError:
            return
        Thread(target=_talk, args=(accepted, talk, is_over), daemon=True).start()


def _talk(accepted: socket.socket, talk: Talk, is_over: Event) -> None:
    with accepted, suppress(OSError):
        talk(accepted, is_over)
