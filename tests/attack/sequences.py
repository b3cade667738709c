"""Productions of chunks, extensions, trailers, pipelines, and ends of connections."""

from collections.abc import Iterator, Mapping
from typing import Final

from tests.attack.client import Case, Ending, Pause, Pieces
from tests.attack.grammar import (
    ACCEPTED_BYTES,
    BODY_BYTES_MAX,
    CHUNKED,
    CONNECTION_CLOSE,
    HEALTH,
    JSON,
    LAST_CHUNK,
    ORDER,
    ORDERS,
    REFUSALS,
    SNAPSHOT,
    Header,
    Production,
    Target,
    authorization,
    blocks,
    chunk,
    get,
    head,
    may_refuse,
    must_answer,
    must_refuse,
    pipelined,
    post,
    post_chunked,
    response,
    segments,
    sends,
)

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
    """Yield chunks with correct, odd and wrong sizes."""
    prefix, created = post_chunked(target), target.if_authorized(201)
    for length in (1, 2, 3, len(ORDER)):
        raw = (
            prefix
            + b"".join(chunk(ORDER[at : at + length]) for at in range(0, len(ORDER), length))
            + LAST_CHUNK
        )
        yield must_answer(f"an order in chunks of {length}", raw, created)
        yield must_answer(f"an order in chunks of {length}, cut", raw, created)._replace(
            pieces=lambda raw=raw: segments(raw, *range(len(prefix), len(raw), 5))  # type: ignore[misc]
        )
    yield must_answer("no chunk but the last", prefix + LAST_CHUNK, target.if_authorized(400))
    for size in SIZES:
        yield must_refuse(f"size {size[:20]!r}", prefix + size + b"\r\n" + ORDER + b"\r\n" + LAST_CHUNK)
    for size in ODD_SIZES:
        raw = prefix + size + b"\r\n" + ORDER + b"\r\n" + LAST_CHUNK
        yield may_refuse(f"size {size[:20]!r}", raw, created)
    yield must_refuse("a chunk longer than its size", prefix + b"5\r\n" + ORDER + b"\r\n" + LAST_CHUNK)
    yield must_refuse(
        "a chunk shorter than its size", prefix + b"30\r\n" + ORDER + b"\r\n" + LAST_CHUNK
    )._replace(ending=Ending.HALF_CLOSES)
    yield may_refuse(
        "line feeds alone", prefix + (chunk(ORDER) + LAST_CHUNK).replace(b"\r\n", b"\n"), created
    )
    for ending in (Ending.HALF_CLOSES, Ending.RESETS):
        yield must_refuse(f"no last chunk; {ending.value}", prefix + chunk(ORDER))._replace(ending=ending)
    yield from _large_chunks(target)


def _large_chunks(target: Target) -> Iterator[Case]:
    """Yield nine mebibytes in small chunks, or in one."""
    ends = {
        HEALTH: (b"GET", {200, *REFUSALS}),
        ORDERS: (b"POST", {400, 401, 413}),
        SNAPSHOT: (b"PUT", {400, 401, 413}),
    }
    total = 9 << 20 if target.size.strict else 1 << 16
    for path, (method, statuses) in ends.items():
        prefix = post_chunked(target, path=path, method=method)
        for length in (1, 2, 100, 1 << 16):
            yield Case(
                f"{total} bytes in chunks of {length} for {path.decode()}",
                lambda prefix=prefix, length=length: _in_chunks(prefix, b" " * length, total),  # type: ignore[misc]
                (response(statuses),),
                is_certain=False,
            )
        raw = prefix + chunk(b" " * total) + LAST_CHUNK
        yield Case(
            f"one chunk of {total} for {path.decode()}", sends(raw), (response(statuses),), is_certain=False
        )


def _in_chunks(prefix: bytes, data: bytes, total: int) -> Pieces:
    yield prefix
    yield from blocks(chunk(data), total // len(data))
    yield LAST_CHUNK


def extensions(target: Target) -> Iterator[Case]:
    """Yield chunk extensions, which the server ignores."""
    prefix, created = post_chunked(target), target.if_authorized(201)
    for length in target.lengths(10 << 20):
        raw = prefix + chunk(ORDER, b";a=" + b"b" * length) + LAST_CHUNK
        yield may_refuse(f"an extension of {length}", raw, created)
        raw = prefix + chunk(ORDER, b";a" * length) + LAST_CHUNK
        yield may_refuse(f"{length} extensions", raw, created)
        raw = prefix + chunk(ORDER) + b"0;a=" + b"b" * length + b"\r\n\r\n"
        yield may_refuse(f"an extension of {length} at the last chunk", raw, created)
    count = target.size.count(100_000, 1000)
    piece = chunk(b" ", b";" + b"a" * 100)
    yield Case(f"{count} chunks with extensions", lambda: _with_end(prefix, blocks(piece, count), LAST_CHUNK),
               (response({*target.if_authorized(400), *REFUSALS}),), is_certain=False)  # fmt: skip
    yield _endless("an extension without end", prefix + b"1;", b"a", target)


def _with_end(prefix: bytes, middle: Pieces, end: bytes) -> Pieces:
    yield prefix
    yield from middle
    yield end


def _endless(name: str, prefix: bytes, piece: bytes, target: Target) -> Case:
    count = target.size.count(ENDLESS_BYTES, 1 << 18) // len(piece)
    pieces = lambda: _with_end(prefix, blocks(piece, count), b"")  # noqa: E731
    return Case(name, pieces, (response(REFUSALS),), is_certain=False)


FALSE_TRAILERS: Final[tuple[Header, ...]] = (
    (b"Content-Length", b"5"), (b"Transfer-Encoding", b"chunked"), (b"Host", b"other.example"),
    (b"Connection", b"close"), (b"Expect", b"100-continue"), (b"Content-Type", b"text/plain"),
    (b"Upgrade", b"websocket"), (b"X", b"\x00"),
)  # fmt: skip


def trailers(target: Target) -> Iterator[Case]:
    """Yield trailers from short to endless ones."""
    health = post_chunked(target, path=HEALTH, method=b"GET") + chunk(b"x") + b"0\r\n"
    created, prefix = target.if_authorized(201), post_chunked(target) + chunk(ORDER) + b"0\r\n"
    for count in (1, 10, 50, 1000, target.size.count(100_000, 4000)):
        raw = b"X-A: b\r\n" * count + b"\r\n"
        yield _trailer_case("trailers", prefix, raw, created)
    for length in target.lengths(TRAILER_BYTES):
        yield _trailer_case("a trailer", prefix, b"X: " + b"y" * length + b"\r\n\r\n", created)
        yield _trailer_case("a trailer's name", prefix, b"X" * length + b": y\r\n\r\n", created)
    total = target.size.count(TRAILER_BYTES, 1 << 17)
    for line in (b"X: y\r\n", b"X: " + b"y" * 1000 + b"\r\n", b"X: " + b"y" * 60_000 + b"\r\n"):
        piece = line * 1
        yield Case(f"{total} bytes of trailers of {len(line)}",
                   lambda piece=piece: _with_end(health, blocks(piece, total // len(piece)), b"\r\n"),  # type: ignore[misc]
                   (response({200, *REFUSALS}),), is_certain=False)  # fmt: skip
    yield _endless("trailers without end", health, b"X-Trailer: value\r\n", target)
    yield _endless("a trailer without end", health + b"X: ", b"y", target)
    for header in FALSE_TRAILERS:
        yield may_refuse(f"trailer {header[0]!r}", prefix + b"%s: %s\r\n\r\n" % header, created)
    yield may_refuse("no trailer", prefix + b"no colon\r\n\r\n", created)
    for ending in (Ending.HALF_CLOSES, Ending.RESETS):
        yield must_refuse(f"cut trailers; {ending.value}", prefix + b"X: y\r\n")._replace(ending=ending)


def authorizing_trailers(target: Target) -> Iterator[Case]:
    """Yield requests with the key only in a trailer, which must not authorize them."""
    prefix = post_chunked(target._replace(key=None)) + chunk(ORDER) + b"0\r\n"
    line = b"%s: %s\r\n" % target.authorization
    for lines in (line, b"X: y\r\n" + line, line + b"X: y\r\n", line * 2, line.lower()):
        yield may_refuse("the key in a trailer", prefix + lines + b"\r\n", {401})
    wrong_key = post_chunked(target._replace(key=None), authorization("nobody")) + chunk(ORDER) + b"0\r\n"
    yield may_refuse("another key in a trailer", wrong_key + line + b"\r\n", {401})


def _trailer_case(name: str, prefix: bytes, raw: bytes, statuses: frozenset[int]) -> Case:
    """Return a case with trailers, which must be accepted if they are short."""
    if len(raw) <= ACCEPTED_BYTES // 4:
        return must_answer(f"{name} of {len(raw)} in all", prefix + raw, statuses)
    return may_refuse(f"{name} of {len(raw)} in all", prefix + raw, statuses)


# Pipelines


def pipelines(target: Target) -> Iterator[Case]:
    """Yield pipelined requests."""
    created, ok = target.if_authorized(201), frozenset({200})
    for count in (1, 2, 15, 16, 17, 100, target.size.count(5000, 300)):
        yield pipelined(f"{count} requests", get(target), count, response(ok))
        raw = get(target, start=b"HEAD /health/ HTTP/1.1")
        yield pipelined(f"{count} HEADs", raw, count, response(ok, is_head=True))
        unknown = get(target, start=b"FOO /health/ HTTP/1.1")
        if count < 20:
            mixed = (response(ok), response({405, 400}))
            yield Case(
                f"{count} of which each second has an unknown method",
                sends((get(target) + unknown) * count),
                mixed * count,
                is_certain=False,
            )
    for count in (1, 20, target.size.count(2000, 60)):
        yield pipelined(f"{count} creations", post(target), count, response(created))
        raw = post_chunked(target) + chunk(ORDER) + LAST_CHUNK
        yield pipelined(f"{count} creations in chunks", raw, count, response(created))
        yield pipelined(
            f"{count} old requests",
            get(target, (b"Connection", b"keep-alive"), start=b"GET /health/ HTTP/1.0"),
            count,
            response(ok, is_http10=True),
        )
    pair = get(target) + post(target)
    yield Case("all kinds", sends(pair * 10), (response(ok), response(created)) * 10)
    yield Case(
        "nothing after a close",
        sends(post(target, CONNECTION_CLOSE) + post(target)),
        (response(created),),
        is_certain=False,
    )
    yield Case("nothing after HTTP/1.0", sends(post(target, start=b"POST /v1/orders/ HTTP/1.0") + post(target)),
               (response(created, is_http10=True),), is_certain=False)  # fmt: skip
    yield Case(
        "nothing after an error",
        sends(b"\x00\r\n\r\n" + post(target) * 5),
        (response(REFUSALS),),
        is_certain=False,
    )
    yield Case("an error after requests", sends(post(target) * 5 + b"\x00\r\n\r\n" + post(target)),
               (*(response(created),) * 5, response(REFUSALS)), is_certain=False)  # fmt: skip
    yield Case("a large body after requests", sends(post(target) * 5 + _too_long(target)),
               (*(response(created),) * 5, response({413, 401})), is_certain=False)  # fmt: skip


def _too_long(target: Target) -> bytes:
    length = (b"Content-Length", b"%d" % (1 << 40))
    return head(b"POST /v1/orders/ HTTP/1.1", [*target.headers, JSON, length]) + b" " * 100


# The ends of connections


def ends(target: Target) -> Iterator[Case]:
    """Yield requests that are cut at any byte; incomplete requests must have no effect."""
    for raw in (post(target), post_chunked(target) + chunk(ORDER) + LAST_CHUNK):
        step = 1 if target.size.strict else 40
        for place in range(0, len(raw), step):
            for ending in (Ending.HALF_CLOSES, Ending.RESETS):
                yield must_refuse(f"{ending.value} after {place} bytes", raw[:place])._replace(ending=ending)
    count = target.size.count(500, 30)
    yield pipelined(
        f"{count} creations, and a reset",
        post(target),
        count,
        response(target.if_authorized(201)),
        Ending.RESETS,
    )
    pieces = sends(post(target), Pause(0.05), post(target) * 20)
    yield Case("a reset at once", pieces, (response(target.if_authorized(201)),) * 21, Ending.RESETS)
    yield Case("a large request, and a reset", sends(head(b"PUT /control/state/ HTTP/1.1", [*target.headers, JSON, CHUNKED]), chunk(b" " * BODY_BYTES_MAX)),
               (response(REFUSALS),), Ending.RESETS, is_certain=False)  # fmt: skip


SEQUENCES: Final[Mapping[str, Production]] = {
    "chunks": chunks,
    "extensions": extensions,
    "trailers": trailers,
    "authorizing trailers": authorizing_trailers,
    "pipelines": pipelines,
    "ends": ends,
}
