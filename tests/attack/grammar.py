"""Productions of HTTP requests that could break a promise, and their permitted answers.

aiohttp parses HTTP, so these cases test what the server promises around it: one answer or a closed connection
for each request, and limits of memory and time, however long a part of a request is. Each production yields
cases for one target, with the API key of a project or without a key. Lengths and counts of the short form stay
below a tenth of a megabyte.
"""

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from payment_sandbox.serving.gateway import SILENT_SECONDS
from tests.attack import Size
from tests.attack.answers import ExpectedResponse
from tests.attack.client import Case, Ending, Pause, Pieces

ACCEPTED_BYTES: Final = 4096  # a length of a line or head that every server must accept
ACCEPTED_HEADERS: Final = 60
REFUSABLE_BYTES: Final = 1 << 16  # a length that no server needs to accept
BODY_BYTES_MAX: Final = 1 << 20  # limit of this server (SET-09)
SENT_BYTES: Final = 1 << 18  # a size that a server may read at once
ORDER: Final = b'{"currency": "EUR", "amount": 1000}'
JSON: Final = (b"Content-Type", b"application/json")
CHUNKED: Final = (b"Transfer-Encoding", b"chunked")
GZIPPED: Final = (b"Transfer-Encoding", b"gzip, chunked")
EXPECT_CONTINUE: Final = (b"Expect", b"100-continue")
CONNECTION_CLOSE: Final = (b"Connection", b"close")
HEALTH: Final = b"/health/"
ORDERS: Final = b"/v1/orders/"
SNAPSHOT: Final = b"/control/state/"
LAST_CHUNK: Final = b"0\r\n\r\n"
REFUSALS: Final = frozenset({400, 403, 404, 405, 408, 411, 413, 414, 417, 421, 426, 431, 501, 505})
OFFER: Final = ((b"Upgrade", b"websocket"), (b"Connection", b"Upgrade"))

Header = tuple[bytes, bytes]


class Target(NamedTuple):
    """The host of the requests, and the API key."""

    host: str
    size: Size
    key: str | None

    @property
    def headers(self) -> list[Header]:
        """The headers of each request: Host, and the key if there is one."""
        host = (b"Host", self.host.encode())
        return [host] if self.key is None else [host, self.authorization]

    @property
    def authorization(self) -> Header:
        """The header with the key, or with an unknown key."""
        return authorization(self.key or "nobody")

    def if_authorized(self, *statuses: int) -> frozenset[int]:
        """Return these statuses with a key, or 401 without a key."""
        return frozenset(statuses if self.key is not None else (401,))

    def lengths(self, *maximum: int) -> Iterator[int]:
        """Yield lengths around usual limits, and the given ones in the full size."""
        usual = (1, 255, ACCEPTED_BYTES - 500, 8190, 16 << 10, REFUSABLE_BYTES + 1)
        yield from usual
        yield from (self.size.count(length, REFUSABLE_BYTES + 2) for length in (1 << 20, *maximum))


def authorization(key: str) -> Header:
    """Return the header that authenticates with a key."""
    return b"Authorization", b"Basic " + b64encode(f"{key}:".encode())


def head(start: bytes, headers: Iterable[Header]) -> bytes:
    """Return a start line and headers, with the final empty line."""
    return b"\r\n".join([start, *(b"%s: %s" % pair for pair in headers), b"", b""])


def get(target: Target, *headers: Header, start: bytes = b"GET /health/ HTTP/1.1") -> bytes:
    """Return a request without a body."""
    return head(start, [*target.headers, *headers])


def post(target: Target, *headers: Header, body: bytes = ORDER, start: bytes = b"") -> bytes:
    """Return a creation with the length of its body."""
    length = (b"Content-Length", b"%d" % len(body))
    start = start or b"POST /v1/orders/ HTTP/1.1"
    return head(start, [*target.headers, JSON, length, *headers]) + body


def post_chunked(target: Target, *headers: Header, path: bytes = ORDERS, method: bytes = b"POST") -> bytes:
    """Return the head of a request with a chunked body."""
    return head(b"%s %s HTTP/1.1" % (method, path), [*target.headers, JSON, CHUNKED, *headers])


def chunk(data: bytes, extension: bytes = b"") -> bytes:
    """Return one chunk."""
    return b"%x%s\r\n%s\r\n" % (len(data), extension, data)


def sends(*pieces: bytes | Pause) -> Callable[[], Pieces]:
    """Return a function that yields these pieces."""
    return lambda: iter(pieces)


def response(statuses: Iterable[int], **more: object) -> ExpectedResponse:
    """Return an expected response with any of these statuses."""
    return ExpectedResponse(frozenset(statuses), **more)  # type: ignore[arg-type]


def must_answer(name: str, raw: bytes, statuses: Iterable[int], **more: object) -> Case:
    """Return a case with one request that must be answered."""
    return Case(name, sends(raw), (response(statuses, **more),))


def must_refuse(name: str, raw: bytes, statuses: Iterable[int] = REFUSALS) -> Case:
    """Return a case whose bytes must get a refusal or a closed connection."""
    return Case(name, sends(raw), (response(statuses),), is_certain=False)


def may_refuse(name: str, raw: bytes, statuses: Iterable[int]) -> Case:
    """Return a case whose bytes a server may accept or refuse."""
    return must_refuse(name, raw, {*statuses, *REFUSALS})


def by_length(name: str, length: int, raw: bytes, statuses: Iterable[int]) -> Case:
    """Return a case that must be answered if it is short, and refused if it is far too long."""
    if len(raw) <= ACCEPTED_BYTES:
        return must_answer(f"{name} of {length}", raw, statuses)
    return (must_refuse if length > REFUSABLE_BYTES else may_refuse)(
        f"{name} of {length}", raw, REFUSALS if length > REFUSABLE_BYTES else statuses
    )


def blocks(piece: bytes, count: int) -> Pieces:
    """Yield ``count`` repetitions of a piece in larger blocks."""
    at_once = max(1, SENT_BYTES // max(1, len(piece)))
    block = piece * at_once
    for _ in range(count // at_once):
        yield block
    yield piece * (count % at_once)


def segments(raw: bytes, *places: int) -> Pieces:
    """Yield the bytes in segments, with pauses so that the server reads them one by one."""
    before = 0
    for place in (*places, len(raw)):
        yield raw[before:place]
        if place < len(raw):
            yield Pause()
        before = place


def pipelined(
    name: str, raw: bytes, count: int, each: ExpectedResponse, ending: Ending = Ending.WAITS
) -> Case:
    """Return a case that pipelines the same request many times."""
    return Case(name, lambda: blocks(raw, count), (each,) * count, ending)


def long(
    name: str, target: Target, prefix: bytes, piece: bytes, end: bytes, *, statuses: Iterable[int] = REFUSALS
) -> Case:
    """Return a case with many repetitions of a piece, stopped far above every limit."""
    count = target.size.count(64 << 20, 1 << 18) // len(piece)

    def pieces() -> Pieces:
        yield prefix
        yield from blocks(piece, count)
        yield end

    return Case(name, pieces, (response(statuses),), is_certain=False)


def heads(target: Target) -> Iterator[Case]:
    """Yield start lines and headers of many lengths and counts, and heads without an end."""
    for length in target.lengths(10 << 20):
        yield must_refuse(f"a method of {length}", get(target, start=b"X" * length + b" /health/ HTTP/1.1"))
        yield by_length("a path", length, get(target, start=b"GET /%s HTTP/1.1" % (b"x" * length)), {404})
        yield by_length("a header's name", length, get(target, (b"X" * length, b"y")), {200})
        yield by_length("a header's value", length, get(target, (b"X", b"y" * length)), {200})
        yield may_refuse(f"{length} empty lines before it", b"\r\n" * length + get(target), {200})
    for count in (1, ACCEPTED_HEADERS, 500, target.size.count(1_000_000, 10_000)):
        raw = get(target, *((b"X", b"y") for _ in range(count)))
        if count <= ACCEPTED_HEADERS:
            yield must_answer(f"{count} headers", raw, {200})
        else:
            yield by_length(f"{count} headers", len(raw), raw, {200})._replace(is_certain=False)
    yield long("headers without end", target, b"GET /health/ HTTP/1.1\r\n", b"X: y\r\n", b"")
    yield long("a header without end", target, b"GET /health/ HTTP/1.1\r\nX: ", b"y", b"")
    yield must_refuse("two Hosts", get(target, (b"Host", b"other.example")))
    yield must_refuse("zeros", bytes(target.size.count(1 << 20, 1 << 12)))


def bodies(target: Target) -> Iterator[Case]:
    """Yield bodies of many lengths, whole and in chunks, and bodies without an end."""
    created, limit = target.if_authorized(201), target.size.count(BODY_BYTES_MAX, 1 << 15)
    padded = ORDER + b" " * (limit - len(ORDER))
    compressed = head(b"POST /v1/orders/ HTTP/1.1", [*target.headers, JSON, GZIPPED])
    yield must_refuse("chunks of gzip", compressed + chunk(ORDER) + LAST_CHUNK)
    yield must_answer("an order of the largest size", post(target, body=padded), created)
    for length in (BODY_BYTES_MAX + 1, target.size.count(9 << 20, 2 << 20)):
        refused = (response({413, *target.if_authorized(413)}),)
        yield Case(
            f"{length} bytes, too many", sends(post(target, body=b" " * length)), refused, is_certain=False
        )
    raw = post(target)
    for missing in (1, len(ORDER)):
        yield must_refuse(f"a body that is {missing} bytes short", raw[:-missing])._replace(
            ending=Ending.RESETS
        )
    prefix, spaces = post_chunked(target), {400, 401, 413, *REFUSALS}
    for length in (1, 2, 100, 1 << 16):
        name = f"chunks of {length}"
        yield long(name, target, prefix, chunk(b" " * length), LAST_CHUNK, statuses=spaces)
        snapshot = post_chunked(target, path=SNAPSHOT, method=b"PUT")
        yield long(
            f"{name} for a snapshot", target, snapshot, chunk(b" " * length), LAST_CHUNK, statuses=spaces
        )
    yield long("a chunk's size without end", target, prefix, b"0", b"")
    yield long("an extension without end", target, prefix + b"1;", b"a", b"")
    extended = chunk(b" ", b";" + b"a" * 100)
    yield long("chunks with extensions", target, prefix, extended, LAST_CHUNK, statuses=spaces)
    last = prefix + chunk(ORDER) + b"0\r\n"
    for name, prefix, piece in (
        ("trailers without end", last, b"X: y\r\n"),
        ("a trailer without end", last + b"X: ", b"y"),
    ):  # aiohttp reads no further, so the server treats the client as silent
        yield long(name, target, prefix, piece, b"")._replace(answer_seconds=SILENT_SECONDS + 5.0)


def pipelines(target: Target) -> Iterator[Case]:
    """Yield pipelined requests, with expectations and offers of other protocols."""
    created, ok = target.if_authorized(201), frozenset({200})
    for count in (2, 17, target.size.count(5000, 300)):
        yield pipelined(f"{count} requests", get(target), count, response(ok))
    for count in (20, target.size.count(2000, 60)):
        yield pipelined(f"{count} creations", post(target), count, response(created))
        raw = post_chunked(target) + chunk(ORDER) + LAST_CHUNK
        yield pipelined(f"{count} creations in chunks", raw, count, response(created))
        raw = post(target, EXPECT_CONTINUE)
        yield pipelined(f"{count} times Expect", raw, count, response(created, interims=(0, 1)))
        yield pipelined(f"{count} creations with offers", post(target, *OFFER), count, response(created))
    yield Case("nothing after a close", sends(post(target, CONNECTION_CLOSE) + post(target)),
               (response(created),), is_certain=False)  # fmt: skip
    yield Case("an error after requests", sends(post(target) * 5 + b"\x00\r\n\r\n" + post(target)),
               (*(response(created),) * 5, response(REFUSALS)), is_certain=False)  # fmt: skip
    raw, wait = post(target, EXPECT_CONTINUE), Pause(1.0 if target.size.strict else 0.2, until_answer=True)
    at, interims = len(raw) - len(ORDER), (1, 1) if target.key is not None else (0, 1)
    yield Case("Expect, and wait", sends(raw[:at], wait, raw[at:]), (response(created, interims=interims),))
    length = (b"Content-Length", b"%d" % (1 << 40))
    raw = head(b"POST /v1/orders/ HTTP/1.1", [*target.headers, JSON, EXPECT_CONTINUE, length])
    refused = (response({413, *target.if_authorized(413)}),)
    yield Case("Expect, and a body that is too long", sends(raw, wait), refused, answer_seconds=1.0)


def cuts(target: Target) -> Iterator[Case]:
    """Yield requests that are cut at any byte, which has no effect, or after their end."""
    for raw in (post(target), post_chunked(target) + chunk(ORDER) + LAST_CHUNK):
        for place in range(0, len(raw), 1 if target.size.strict else 40):
            yield must_refuse(f"a reset after {place} bytes", raw[:place])._replace(ending=Ending.RESETS)
            case = must_answer(f"a creation cut at {place}", raw, target.if_authorized(201))
            yield case._replace(pieces=lambda raw=raw, place=place: segments(raw, place))  # type: ignore[misc]
    created, count = response(target.if_authorized(201)), target.size.count(500, 30)
    yield pipelined(f"{count} creations, and a reset", post(target), count, created, Ending.RESETS)
    pieces = sends(post(target), Pause(0.05), post(target) * 20)
    yield Case("a reset at once", pieces, (created,) * 21, Ending.RESETS)


Production = Callable[[Target], Iterator[Case]]
PRODUCTIONS: Final[Mapping[str, Production]] = {
    "heads": heads,
    "bodies": bodies,
    "pipelines": pipelines,
    "cuts": cuts,
}
