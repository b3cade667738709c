"""Hostile receivers of webhooks: each attempt ends in time, and releases its thread and files."""

import gzip
import socket
import struct
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Event, Thread
from time import perf_counter
from typing import Any, Final

import pytest

from tests.attack import FULL, limit, limit_time
from tests.attack.server_process import ServerProcess, run_server
from tests.support.driver import by

ATTEMPT_SECONDS_MAX = 5.0
TOLERANCE_SECONDS = 3.0
RELEASE_SECONDS = 60.0
SPARE_THREADS = 40
SPARE_FILES = 12
DRIP_SECONDS = 0.3

OK = b"HTTP/1.1 200 OK\r\n"
Behaviour = Callable[[socket.socket, Event], object]


def sends(*pieces: bytes) -> Behaviour:
    """Return a behaviour that reads the request, sends the pieces and closes."""

    def behaviour(connection: socket.socket, is_over: Event) -> None:
        connection.recv(65536)
        for piece in pieces:
            connection.sendall(piece)

    return behaviour


def drips(before: bytes, drop: bytes) -> Behaviour:
    """Return a behaviour that endlessly sends a few bytes now and then."""

    def behaviour(connection: socket.socket, is_over: Event) -> None:
        connection.sendall(before)
        while not is_over.wait(DRIP_SECONDS):
            connection.sendall(drop)

    return behaviour


def floods(before: bytes, piece: bytes) -> Behaviour:
    """Return a behaviour that endlessly sends as much as possible."""

    def behaviour(connection: socket.socket, is_over: Event) -> None:
        connection.sendall(before)
        while not is_over.is_set():
            connection.sendall(piece)

    return behaviour


def resets(connection: socket.socket, is_over: Event) -> None:
    """Read the request and reset the connection."""
    connection.recv(65536)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def waits(connection: socket.socket, is_over: Event) -> None:
    """Neither read nor answer."""
    is_over.wait()


CHUNKED: Final = OK + b"Transfer-Encoding: chunked\r\n\r\n"
GZIPPED: Final = OK + b"Content-Encoding: gzip\r\n\r\n"
KINDS: Final[Mapping[str, Behaviour]] = {
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
    "a gzip bomb": sends(GZIPPED + gzip.compress(b"0" * (64 << 20))),
    "gzip that is none": sends(GZIPPED + b"never compressed"),
    "no HTTP": sends(b"220 mail.example ESMTP\r\n"),
    "HTTP/0.9": sends(b"<html>hello</html>"),
    "HTTP/2": sends(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" * 3),
    "a status line only": sends(b"HTTP/1.1 200 OK"),
    "status 999": sends(b"HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n"),
    "status 0": sends(b"HTTP/1.1 0 Nothing\r\n\r\n"),
    "a status in words": sends(b"HTTP/1.1 fine OK\r\n\r\n"),
    "a negative length": sends(OK + b"Content-Length: -5\r\n\r\nhello"),
    "two lengths": sends(OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
    "a longer length": sends(OK + b"Content-Length: 500\r\n\r\nhello"),
    "chunks with wrong sizes": sends(CHUNKED + b"zz\r\nhello\r\n0\r\n\r\n"),
    "a huge chunk": sends(CHUNKED + b"ffffffffffffffff\r\nhello"),
    "a redirect to itself": sends(b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"),
    "a redirect to a file": sends(
        b"HTTP/1.1 307 Go\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"
    ),
    "switching protocols": sends(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"),
    "a long header": sends(OK + b"X-A: " + b"b" * 100_000 + b"\r\nContent-Length: 0\r\n\r\n"),
    "NUL in a header": sends(OK + b"X-A: a\0b\r\nContent-Length: 0\r\n\r\n"),
    "bytes that are no text": sends(OK + b"Content-Length: 256\r\n\r\n" + bytes(range(256))),
}
ENCRYPTED: Final[Mapping[str, Behaviour]] = {
    "TLS that is none": sends(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    "a dripped handshake": drips(b"\x16\x03\x03\x40\x00", b"\x02"),
    "a handshake that does not come": waits,
}


@pytest.mark.timeout(1200)
def test_hostile_receivers_hold_nothing() -> None:
    """All kinds at once, each with its own project, hold up neither threads nor files; at full size, twice."""
    with run_server() as server, _receivers() as urls:
        for _ in range(2 if FULL else 1):
            _attack_with(server, urls)


def _attack_with(server: ServerProcess, urls: Mapping[str, str]) -> None:
    before = server.usage()
    with ThreadPoolExecutor(len(urls)) as pool:
        results = dict(zip(urls, pool.map(lambda url: _deliver(server, url), urls.values()), strict=True))
    slowest = max(seconds for seconds, _ in results.values())
    limit_time("longest attempt", slowest, ATTEMPT_SECONDS_MAX + TOLERANCE_SECONDS, "s")
    for kind, (_, attempt) in results.items():
        answer = attempt["response"] or {}
        assert answer or attempt["error"], f"{kind} is not recorded: {attempt}"
    start = perf_counter()
    after = server.usage()
    while perf_counter() - start < RELEASE_SECONDS and (
        after.threads > before.threads + SPARE_THREADS or after.files > before.files + SPARE_FILES
    ):
        _pass_seconds(server, 0.1)
        after = server.usage()
    limit("remaining threads", after.threads, before.threads + SPARE_THREADS)
    limit("remaining files", after.files, before.files + SPARE_FILES)


def _deliver(server: ServerProcess, url: str) -> tuple[float, Any]:
    """Return the duration of the first attempt, and its record."""
    with server.project(webhook_url=url, clock="frozen") as project:
        start = perf_counter()
        project.order(by("bank-transfer"))
        project.call("GET", "/control/wait/?idle=1&timeout=60")
        took_seconds = perf_counter() - start
        (webhook,) = project.expect("GET", "/control/webhooks/")["items"]
        return took_seconds, next(iter(webhook["attempts"]), {"response": None, "error": None})


def _pass_seconds(server: ServerProcess, seconds: float) -> None:
    """Let the server idle in a wait that times out."""
    with server.project(clock="frozen") as project:
        order = project.order()
        answer = project.call("GET", f"/control/wait/?webhook={order['id']}&timeout={seconds:g}")
        assert answer.status_code == 408, answer.text


@contextmanager
def _receivers() -> Iterator[dict[str, str]]:
    """Yield the URL of a receiver of each kind."""
    is_over = Event()
    listeners: list[socket.socket] = []

    def listen(scheme: str, behaviour: Behaviour) -> str:
        listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        listeners.append(listener)
        Thread(target=_accept, args=(listener, behaviour, is_over), daemon=True).start()
        return f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/"

    try:
        yield {
            **{kind: listen("http", behaviour) for kind, behaviour in KINDS.items()},
            **{kind: listen("https", behaviour) for kind, behaviour in ENCRYPTED.items()},
        }
    finally:
        is_over.set()
        for listener in listeners:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()


def _accept(listener: socket.socket, behaviour: Behaviour, is_over: Event) -> None:
    while not is_over.is_set():
        try:
            accepted, _ = listener.accept()
        except OSError:
            return
        Thread(target=_run_behaviour, args=(accepted, behaviour, is_over), daemon=True).start()


def _run_behaviour(accepted: socket.socket, behaviour: Behaviour, is_over: Event) -> None:
    with accepted, suppress(OSError):
        behaviour(accepted, is_over)
