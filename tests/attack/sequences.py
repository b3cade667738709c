"""Productions of what comes piece by piece: chunks, their extensions and trailers, pipelines, and ends."""

from collections.abc import Iterator, Mapping
from typing import Final

from tests.attack.grammar import (
    BODY_BYTES_MAX,
    CHUNKED,
    CLOSING,
    HEALTH,
    JSON,
    LAST_CHUNK,
    ORDER,
    ORDERS,
    REFUSALS,
    SNAPSHOT,
    SURE_BYTES,
    Header,
    Production,
    Target,
    asked,
    authorization,
    chunk,
    cut,
    doubtful,
    get,
    head,
    many,
    post,
    post_chunked,
    repeated,
    right,
    says,
    wrong,
)
from tests.attack.talking import Case, Ending, Pause, Sent

SIZES: Final = (
    b"",
    b"0x23",
    b"-23",
    b"+23",
    b" 23",
    b"zz",
    b"2_3",
    b"\xb2",
    b"f" * 16,
    b"f" * 17,
    b"8" * 5000,
)
ODD_SIZES: Final = (
    b"023",
    b"0" * 20 + b"23",
    b"23 ",
    b"23\t",
    b"23;",
    b"23;a",
    b"23;a=b;c",
    b'23;a="b;c"',
    b'23;a="',
)
TRAILER_BYTES: Final = 10 << 20
ENDLESS_BYTES: Final = 64 << 20


def chunks(target: Target) -> Iterator[Case]:
    """Sizes of chunks, from nothing to more than there is."""
    begun, created = post_chunked(target), target.keyed(201)
    for length in (1, 2, 3, len(ORDER)):
        raw = (
            begun
            + b"".join(chunk(ORDER[at : at + length]) for at in range(0, len(ORDER), length))
            + LAST_CHUNK
        )
        yield right(f"an order in chunks of {length}", raw, created)
        yield right(f"an order in chunks of {length}, cut", raw, created)._replace(
            sent=lambda raw=raw: cut(raw, *range(len(begun), len(raw), 5))  # type: ignore[misc]
        )
    yield right("no chunk but the last", begun + LAST_CHUNK, target.keyed(400))
    for size in SIZES:
        yield wrong(f"size {size[:20]!r}", begun + size + b"\r\n" + ORDER + b"\r\n" + LAST_CHUNK)
    for size in ODD_SIZES:
        raw = begun + size + b"\r\n" + ORDER + b"\r\n" + LAST_CHUNK
        yield doubtful(f"size {size[:20]!r}", raw, created)
    yield wrong("a chunk longer than it says", begun + b"5\r\n" + ORDER + b"\r\n" + LAST_CHUNK)
    yield wrong("a chunk shorter than it says", begun + b"30\r\n" + ORDER + b"\r\n" + LAST_CHUNK)._replace(
        ending=Ending.HALF_CLOSES
    )
    yield doubtful("line feeds alone", begun + (chunk(ORDER) + LAST_CHUNK).replace(b"\r\n", b"\n"), created)
    for ending in (Ending.HALF_CLOSES, Ending.RESETS):
        yield wrong(f"no last chunk; {ending.value}", begun + chunk(ORDER))._replace(ending=ending)
    yield from _large_chunks(target)


def _large_chunks(target: Target) -> Iterator[Case]:
    """Nine mebibytes in small chunks, or in one."""
    ends = {
        HEALTH: (b"GET", {200, *REFUSALS}),
        ORDERS: (b"POST", {400, 401, 413}),
        SNAPSHOT: (b"PUT", {400, 401, 413}),
    }
    most = 9 << 20 if target.size.strict else 1 << 16
    for path, (method, statuses) in ends.items():
        begun = post_chunked(target, path=path, method=method)
        for length in (1, 2, 100, 1 << 16):
            yield Case(
                f"{most} bytes in chunks of {length} for {path.decode()}",
                lambda begun=begun, length=length: _filled(begun, b" " * length, most),  # type: ignore[misc]
                (asked(statuses),),
                is_certain=False,
            )
        raw = begun + chunk(b" " * most) + LAST_CHUNK
        yield Case(
            f"one chunk of {most} for {path.decode()}", says(raw), (asked(statuses),), is_certain=False
        )


def _filled(begun: bytes, data: bytes, most: int) -> Sent:
    yield begun
    yield from repeated(chunk(data), most // len(data))
    yield LAST_CHUNK


def extensions(target: Target) -> Iterator[Case]:
    """Extensions of chunks, which nobody reads."""
    begun, created = post_chunked(target), target.keyed(201)
    for length in target.lengths(10 << 20):
        raw = begun + chunk(ORDER, b";a=" + b"b" * length) + LAST_CHUNK
        yield doubtful(f"an extension of {length}", raw, created)
        raw = begun + chunk(ORDER, b";a" * length) + LAST_CHUNK
        yield doubtful(f"{length} extensions", raw, created)
        raw = begun + chunk(ORDER) + b"0;a=" + b"b" * length + b"\r\n\r\n"
        yield doubtful(f"an extension of {length} at the last chunk", raw, created)
    count = target.size.count(100_000, 1000)
    piece = chunk(b" ", b";" + b"a" * 100)
    yield Case(f"{count} chunks with extensions", lambda: _ended(begun, repeated(piece, count), LAST_CHUNK),
               (asked({*target.keyed(400), *REFUSALS}),), is_certain=False)  # fmt: skip
    yield _without_end("an extension without end", begun + b"1;", b"a", target)


def _ended(begun: bytes, middle: Sent, end: bytes) -> Sent:
    yield begun
    yield from middle
    yield end


def _without_end(name: str, begun: bytes, piece: bytes, target: Target) -> Case:
    count = target.size.count(ENDLESS_BYTES, 1 << 18) // len(piece)
    sent = lambda: _ended(begun, repeated(piece, count), b"")  # noqa: E731
    return Case(name, sent, (asked(REFUSALS),), is_certain=False)


FALSE_TRAILERS: Final[tuple[Header, ...]] = (
    (b"Content-Length", b"5"), (b"Transfer-Encoding", b"chunked"), (b"Host", b"other.example"),
    (b"Connection", b"close"), (b"Expect", b"100-continue"), (b"Content-Type", b"text/plain"),
    (b"Upgrade", b"websocket"), (b"X", b"\x00"),
)  # fmt: skip


def trailers(target: Target) -> Iterator[Case]:
    """Trailers: from none to endless ones; none of them authorizes anything."""
    health = post_chunked(target, path=HEALTH, method=b"GET") + chunk(b"x") + b"0\r\n"
    created, begun = target.keyed(201), post_chunked(target) + chunk(ORDER) + b"0\r\n"
    for count in (1, 10, 50, 1000, target.size.count(100_000, 4000)):
        raw = b"X-A: b\r\n" * count + b"\r\n"
        yield _trailed("trailers", begun, raw, created)
    for length in target.lengths(TRAILER_BYTES):
        yield _trailed("a trailer", begun, b"X: " + b"y" * length + b"\r\n\r\n", created)
        yield _trailed("a trailer's name", begun, b"X" * length + b": y\r\n\r\n", created)
    total = target.size.count(TRAILER_BYTES, 1 << 17)
    for line in (b"X: y\r\n", b"X: " + b"y" * 1000 + b"\r\n", b"X: " + b"y" * 60_000 + b"\r\n"):
        piece = line * 1
        yield Case(f"{total} bytes of trailers of {len(line)}",
                   lambda piece=piece: _ended(health, repeated(piece, total // len(piece)), b"\r\n"),  # type: ignore[misc]
                   (asked({200, *REFUSALS}),), is_certain=False)  # fmt: skip
    yield _without_end("trailers without end", health, b"X-Trailer: value\r\n", target)
    yield _without_end("a trailer without end", health + b"X: ", b"y", target)
    for header in FALSE_TRAILERS:
        yield doubtful(f"trailer {header[0]!r}", begun + b"%s: %s\r\n\r\n" % header, created)
    yield doubtful("no trailer", begun + b"no colon\r\n\r\n", created)
    for ending in (Ending.HALF_CLOSES, Ending.RESETS):
        yield wrong(f"trailers that break off; {ending.value}", begun + b"X: y\r\n")._replace(ending=ending)


def authorizing_trailers(target: Target) -> Iterator[Case]:
    """The key in a trailer: before, between and behind others, of a request without another key."""
    begun = post_chunked(target._replace(key=None)) + chunk(ORDER) + b"0\r\n"
    line = b"%s: %s\r\n" % target.authorization
    for lines in (line, b"X: y\r\n" + line, line + b"X: y\r\n", line * 2, line.lower()):
        yield doubtful("the key in a trailer", begun + lines + b"\r\n", {401})
    wrong_key = post_chunked(target._replace(key=None), authorization("nobody")) + chunk(ORDER) + b"0\r\n"
    yield doubtful("another key in a trailer", wrong_key + line + b"\r\n", {401})


def _trailed(name: str, begun: bytes, raw: bytes, statuses: frozenset[int]) -> Case:
    """Trailers that are taken if they are short; if they are long, they may be."""
    if len(raw) <= SURE_BYTES // 4:
        return right(f"{name} of {len(raw)} in all", begun + raw, statuses)
    return doubtful(f"{name} of {len(raw)} in all", begun + raw, statuses)


# Pipelines


def pipelines(target: Target) -> Iterator[Case]:
    """Requests that are sent ahead of the answers to others."""
    created, fine = target.keyed(201), frozenset({200})
    for count in (1, 2, 15, 16, 17, 100, target.size.count(5000, 300)):
        yield many(f"{count} requests", get(target), count, asked(fine))
        raw = get(target, start=b"HEAD /health/ HTTP/1.1")
        yield many(f"{count} HEADs", raw, count, asked(fine, is_head=True))
        unknown = get(target, start=b"FOO /health/ HTTP/1.1")
        if count < 20:
            mixed = (asked(fine), asked({405, 400}))
            yield Case(
                f"{count} of which nobody knows the method",
                says((get(target) + unknown) * count),
                mixed * count,
                is_certain=False,
            )
    for count in (1, 20, target.size.count(2000, 60)):
        yield many(f"{count} creations", post(target), count, asked(created))
        raw = post_chunked(target) + chunk(ORDER) + LAST_CHUNK
        yield many(f"{count} creations in chunks", raw, count, asked(created))
        yield many(
            f"{count} old requests",
            get(target, (b"Connection", b"keep-alive"), start=b"GET /health/ HTTP/1.0"),
            count,
            asked(fine, is_old=True),
        )
    both = get(target) + post(target)
    yield Case("all kinds", says(both * 10), (asked(fine), asked(created)) * 10)
    yield Case(
        "nothing after a close",
        says(post(target, CLOSING) + post(target)),
        (asked(created),),
        is_certain=False,
    )
    yield Case("nothing after HTTP/1.0", says(post(target, start=b"POST /v1/orders/ HTTP/1.0") + post(target)),
               (asked(created, is_old=True),), is_certain=False)  # fmt: skip
    yield Case(
        "nothing after an error",
        says(b"\x00\r\n\r\n" + post(target) * 5),
        (asked(REFUSALS),),
        is_certain=False,
    )
    yield Case("an error after requests", says(post(target) * 5 + b"\x00\r\n\r\n" + post(target)),
               (*(asked(created),) * 5, asked(REFUSALS)), is_certain=False)  # fmt: skip
    yield Case("a large body after requests", says(post(target) * 5 + _too_long(target)),
               (*(asked(created),) * 5, asked({413, 401})), is_certain=False)  # fmt: skip


def _too_long(target: Target) -> bytes:
    length = (b"Content-Length", b"%d" % (1 << 40))
    return head(b"POST /v1/orders/ HTTP/1.1", [*target.headers, JSON, length]) + b" " * 100


# The ends of connections


def half_closes(target: Target) -> Iterator[Case]:
    """Clients that close their sending side after whole requests, and read the answers."""
    created, fine = target.keyed(201), frozenset({200})
    half = Ending.HALF_CLOSES
    for count in (1, 2, 20, target.size.count(1000, 50)):
        yield many(f"{count} creations", post(target), count, asked(created), half)
        yield many(f"{count} reads", get(target), count, asked(fine), half)
    chunked = post_chunked(target) + chunk(ORDER) + LAST_CHUNK
    yield many("creations in chunks", chunked, 20, asked(created), half)
    yield right("a request that closes", post(target, CLOSING), created)._replace(ending=half)
    old = post(target, start=b"POST /v1/orders/ HTTP/1.0")
    yield right("HTTP/1.0", old, created, is_old=True)._replace(ending=half)
    yield right("HEAD", get(target, start=b"HEAD /health/ HTTP/1.1"), fine, is_head=True)._replace(
        ending=half
    )
    yield right("an unknown path", get(target, start=b"GET /nothing/ HTTP/1.1"), {404})._replace(ending=half)
    waiting = get(target, start=b"GET /control/wait/?idle=1&timeout=1 HTTP/1.1")
    yield right("a call that waits", waiting, target.keyed(200, 408))._replace(ending=half)
    advance = post(target, body=b'{"by": "PT1S"}', start=b"POST /control/clock/advance/ HTTP/1.1")
    yield right("a call on a thread", advance, target.keyed(200))._replace(ending=half)
    at = (asked(created), asked(REFUSALS))
    yield Case(
        "a whole request, and a part", says(post(target) + post(target)[:-5]), at, half, is_certain=False
    )
    yield Case("cut before the end", lambda: cut(post(target) + get(target), 20, len(post(target))),
               (asked(created), asked(fine)), half)  # fmt: skip


def ends(target: Target) -> Iterator[Case]:
    """Clients that end, or break off, anywhere in a request; nothing is done that is not whole."""
    for raw in (post(target), post_chunked(target) + chunk(ORDER) + LAST_CHUNK):
        step = 1 if target.size.strict else 40
        for place in range(0, len(raw), step):
            for ending in (Ending.HALF_CLOSES, Ending.RESETS):
                yield wrong(f"{ending.value} after {place} bytes", raw[:place])._replace(ending=ending)
    count = target.size.count(500, 30)
    yield many(
        f"{count} creations, and a reset", post(target), count, asked(target.keyed(201)), Ending.RESETS
    )
    pieces = says(post(target), Pause(0.05), post(target) * 20)
    yield Case("a reset at once", pieces, (asked(target.keyed(201)),) * 21, Ending.RESETS)
    yield Case("a large request, and a reset", says(head(b"PUT /control/state/ HTTP/1.1", [*target.headers, JSON, CHUNKED]), chunk(b" " * BODY_BYTES_MAX)),
               (asked(REFUSALS),), Ending.RESETS, is_certain=False)  # fmt: skip


SEQUENCES: Final[Mapping[str, Production]] = {
    "chunks": chunks,
    "extensions": extensions,
    "trailers": trailers,
    "authorizing trailers": authorizing_trailers,
    "pipelines": pipelines,
    "half-closes": half_closes,
    "ends": ends,
}
