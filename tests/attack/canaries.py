"""Secrets in every part of a request, except in the merchant's own texts, are neither echoed nor stored."""

import random  # noqa: TID251 (seeded: every run is the same)
import socket
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit

from tests.attack import Report
from tests.attack.server_process import Project, ServerProcess, run_server
from tests.support.canaries import CODE, NUMBER, canaries, shown

SEED: Final = 9
RECORDS: Final = (
    "/control/journal/",
    "/control/journal/?summary=1",
    "/control/webhooks/",
    "/control/timeline/",
    "/control/report/",
    "/control/orders/",
    "/control/state/",
    "/control/faults/",
    "/control/scenario/",
    "/control/project/",
)
VIEWS: Final = ("", "requests/", "mistakes/", "simulate/", "settings/")
ORDER: Final = b'{"currency": "EUR", "amount": 1000}'
JSON: Final = (b"Content-Type", b"application/json")
LAST_CHUNK: Final = b"0\r\n\r\n"
LAST_REQUEST: Final = b"GET /health/ HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
ANSWER_SECONDS: Final = 60.0

Header = tuple[bytes, bytes]


class Target(NamedTuple):
    """The host of the requests, and the API key, or None for requests without a key."""

    host: str
    key: str | None


Place = Callable[[Target, bytes], bytes]


def authorization(key: str) -> Header:
    """Return the header that authenticates with a key."""
    return b"Authorization", b"Basic " + b64encode(f"{key}:".encode())


def head(target: Target, start: bytes, *headers: Header) -> bytes:
    """Return a start line and headers, with the final empty line."""
    keys = () if target.key is None else (authorization(target.key),)
    lines = (b"%s: %s" % pair for pair in ((b"Host", target.host.encode()), *keys, *headers))
    return b"\r\n".join([start, *lines, b"", b""])


def get(target: Target, *headers: Header, start: bytes = b"GET /health/ HTTP/1.1") -> bytes:
    """Return a request without a body."""
    return head(target, start, *headers)


def post(target: Target, *headers: Header, body: bytes = ORDER) -> bytes:
    """Return a creation with the length of its body."""
    length = (b"Content-Length", b"%d" % len(body))
    return head(target, b"POST /v1/orders/ HTTP/1.1", JSON, length, *headers) + body


def post_chunked(target: Target) -> bytes:
    """Return the head of a creation with a chunked body."""
    return head(target, b"POST /v1/orders/ HTTP/1.1", JSON, (b"Transfer-Encoding", b"chunked"))


def chunk(data: bytes, extension: bytes = b"") -> bytes:
    """Return one chunk."""
    return b"%x%s\r\n%s\r\n" % (len(data), extension, data)


def _without_line_breaks(secret: bytes) -> bytes:
    """Return the secret without line breaks."""
    return secret.replace(b"\r", b" ").replace(b"\n", b" ")


def _quote(secret: bytes) -> bytes:
    return quote(secret, safe="").encode()


def _in_header(name: bytes) -> Place:
    return lambda target, secret: post(target, (name, _without_line_breaks(secret)))


def _in_body(body: bytes) -> Place:
    return lambda target, secret: post(target, body=body.replace(b"SECRET", _escape(secret)))


def _escape(secret: bytes) -> bytes:
    text = secret.decode().replace("\\", "\\\\").replace('"', '\\"')
    return "".join(each if each >= " " else f"\\u{ord(each):04x}" for each in text).encode()


PLACES: Final[Mapping[str, Place]] = {
    **{
        f"header {name.decode()}": _in_header(name)
        for name in (
            b"User-Agent",
            b"Referer",
            b"Cookie",
            b"X-Debug",
            b"Accept",
            b"Host",
            b"Expect",
            b"Upgrade",
        )
    },
    "a broken header": lambda target, secret: (
        get(target)[:-2] + b"X y" + _without_line_breaks(secret) + b"\r\n\r\n"
    ),
    "a header's name": lambda target, secret: get(target)[:-2] + _quote(secret) + b": y\r\n\r\n",
    "another's key": lambda target, secret: post(target._replace(key=None), authorization(secret.decode())),
    "a bearer": lambda target, secret: get(
        target._replace(key=None),
        (b"Authorization", b"Bearer " + _without_line_breaks(secret)),
        start=b"GET /control/projects/ HTTP/1.1",
    ),
    "a query": lambda target, secret: get(target, start=b"GET /v1/orders/x/?a=%s HTTP/1.1" % _quote(secret)),
    "a path": lambda target, secret: get(target, start=b"GET /v1/orders/%s/ HTTP/1.1" % _quote(secret)),
    "a raw target": lambda target, secret: get(
        target, start=b"GET /v1/%s HTTP/1.1" % _without_line_breaks(secret)
    ),
    "a method": lambda target, secret: get(target, start=b"%s /health/ HTTP/1.1" % _quote(secret)),
    "a version": lambda target, secret: get(target, start=b"GET /health/ %s" % _without_line_breaks(secret)),
    "an unknown field": _in_body(ORDER[:-1] + b', "x_secret": "SECRET"}'),
    "a field's name": _in_body(ORDER[:-1] + b', "SECRET": 1}'),
    "an amount": _in_body(b'{"currency": "EUR", "amount": "SECRET"}'),
    "a currency": _in_body(b'{"currency": "SECRET", "amount": 1}'),
    "a method of payment": _in_body(ORDER[:-1] + b', "transactions": [{"payment_method": "SECRET"}]}'),
    "broken JSON": _in_body(b'{"SECRET'),
    "an extension": lambda target, secret: (
        post_chunked(target) + chunk(ORDER, b";a=" + _without_line_breaks(secret)) + LAST_CHUNK
    ),
    "a size": lambda target, secret: post_chunked(target) + _without_line_breaks(secret) + b"\r\n",
    "a trailer": lambda target, secret: (
        post_chunked(target) + chunk(ORDER) + b"0\r\nX: " + _without_line_breaks(secret) + b"\r\n\r\n"
    ),
    "what follows": lambda target, secret: post(target) + secret,
}


def attack(report: Report) -> None:
    """Send secrets in each place in turn, then search all records, files and logs for them."""
    source = random.Random(SEED)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "state.db"
        with run_server("--quiet", "--state", str(file)) as server, server.project(clock="frozen") as project:
            server.keys.extend((NUMBER, CODE))  # must not appear in the log
            count = report.size.count(4000, 4 * len(PLACES))
            for name, leak in leaks(server, project, source, count):
                report.expect(f"no answer to {name} has a secret", False, leak)
            for name, leak in records(project):
                report.expect(f"{name} has no secret", False, leak)
        for name, leak in files(Path(folder), project.key):
            report.expect(f"{name} has no secret", False, leak)
    report.note("requests with secrets", count)


def leaks(
    server: ServerProcess, project: Project, source: random.Random, count: int
) -> Iterator[tuple[str, str]]:
    """Send secrets, and yield the answers that echo one."""
    parts = urlsplit(server.url)
    target = Target(parts.netloc, project.key)
    secrets = [each.encode() for each in canaries(project.key).values()]
    places = list(PLACES)
    for number in range(count):
        name = places[number % len(places)]
        raw = PLACES[name](target, source.choice(secrets))
        answers = exchange((str(parts.hostname), int(parts.port or 0)), raw + LAST_REQUEST)
        secret = shown(answers.decode("utf-8", "replace"), project.key)
        if secret:
            yield name, f"{secret}: {answers[:500]!r}"


def exchange(address: tuple[str, int], raw: bytes) -> bytes:
    """Send bytes on a new connection, and return everything that comes back until it is closed."""
    received = b""
    with (
        socket.create_connection(address, timeout=ANSWER_SECONDS) as connection,
        suppress(ConnectionError),  # the server closes without reading the rest
    ):
        connection.sendall(raw)
        while piece := connection.recv(1 << 16):
            received += piece
    return received


def records(project: Project) -> Iterator[tuple[str, str]]:
    """Yield the records and views that show a secret."""
    project_id = project.expect("GET", "/control/project/")["project_id"]
    views = [f"/dashboard/{project_id}/{view}" for view in VIEWS]
    for path in (*RECORDS, *views):
        secret = shown(project.call("GET", path).text, project.key)
        if secret:
            yield path, str(secret)


def files(folder: Path, key: str) -> Iterator[tuple[str, str]]:
    """Yield the files that contain a secret other than the project's own key, which is stored with it."""
    for file in folder.iterdir():
        secrets = [name for name in shown(file.read_bytes().decode(errors="replace"), key) if name != "key"]
        if secrets:
            yield file.name, str(secrets)
