"""Productions of TLS records, for a port that serves only HTTP and for one that serves HTTP and HTTPS."""

import random  # noqa: TID251 (seeded: a seed replays a run)
import ssl
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from tests.attack.client import Case, Ending, Pause, Pieces, RawBytes
from tests.attack.grammar import (
    LAST_CHUNK,
    ORDER,
    REFUSALS,
    Target,
    blocks,
    chunk,
    get,
    must_answer,
    pipelined,
    post,
    post_chunked,
    response,
    segments,
    sends,
)

TYPES: Final = (0x00, 0x14, 0x15, 0x16, 0x17, 0x18, 0x80, 0xFF)
VERSIONS: Final = (b"\x03\x01", b"\x03\x03", b"\x02\x00", b"\xff\xff")
LENGTHS: Final = (0, 1, 4, 255, 1 << 14, (1 << 14) + 2049, (1 << 16) - 1)
ALERTS: Final = (b"\x01\x00", b"\x02\x28", b"\x02\x00", b"\xff\xff", b"\x01")


def unverified_context() -> ssl.SSLContext:
    """Return a TLS context that accepts any certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def client_hello() -> bytes:
    """Return the first TLS record of a client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        unverified_context().wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def record(record_type: int, data: bytes, version: bytes = b"\x03\x03", length: int | None = None) -> bytes:
    """Return a TLS record, whose declared length may be wrong."""
    declared_length = len(data) if length is None else length
    return bytes([record_type]) + version + declared_length.to_bytes(2, "big") + data


def records(target: Target) -> Iterator[Case]:
    """Yield TLS records for a port without TLS, which refuses them in JSON or closes the connection."""
    for name, pieces, ending in _records(target):
        yield Case(name, lambda pieces=pieces: iter(pieces), (response(REFUSALS),), ending, is_certain=False)  # type: ignore[misc]


def secure_records(target: Target) -> Iterator[Case]:
    """Yield TLS records for a port with TLS, which sends alerts or closes the connection, and HTTP."""
    for name, pieces, ending in _records(target):
        yield Case(name, lambda pieces=pieces: iter(pieces), (), ending, is_certain=False, is_http=False)  # type: ignore[misc]
    yield must_answer("http on the same port", get(target), {200})
    yield pipelined("creations over http", post(target), 20, response(target.if_authorized(201)))


def _records(target: Target) -> Iterator[tuple[str, list[bytes | Pause | RawBytes], Ending]]:
    waits = Ending.WAITS
    hello = client_hello()
    for place in (1, 2, 3, 5, 6, 9, 43, 100, len(hello) - 1, len(hello)):
        for ending in Ending:
            yield f"a hello of {place} bytes; {ending.value}", [hello[:place]], ending
    yield "a hello in segments", list(segments(hello, *range(1, len(hello), 40))), waits
    yield "two hellos", [hello * 2], waits
    yield "a hello, and http", [hello + get(target)], waits
    yield "http, and a hello", [get(target)[:20] + hello], waits
    random_source = random.Random(len(hello))
    for number in range(target.size.count(1000, 20)):
        yield f"a changed hello {number}", [corrupt(hello, random_source)], waits
    for record_type in TYPES:
        for version in VERSIONS:
            yield (
                f"a record of type {record_type}, {version!r}",
                [record(record_type, bytes(40), version)],
                waits,
            )
        for length in LENGTHS:
            yield (
                f"a record of type {record_type}, {length} bytes",
                [record(record_type, bytes(length))],
                waits,
            )
            yield (
                f"a record of type {record_type} that declares {length} bytes",
                [record(record_type, b"x" * 10, length=length)],
                waits,
            )
        count = target.size.count(200_000, 500)
        yield (
            f"{count} empty records of type {record_type}",
            list(blocks(record(record_type, b""), count)),
            waits,
        )
    for alert in ALERTS:
        yield f"alert {alert!r}", [record(0x15, alert)], waits
        yield f"a hello, and alert {alert!r}", [hello, Pause(), record(0x15, alert)], waits
    large = record(0x16, b"\x01\xff\xff\xff" + bytes((1 << 14) - 4))
    yield "a hello of 16 MB", list(blocks(large, target.size.count(1024, 20))), waits


def corrupt(raw: bytes, random_source: random.Random) -> bytes:
    """Return a copy in which a few bytes are replaced, removed, doubled or inserted."""
    data = bytearray(raw)
    for _ in range(random_source.randint(1, 4)):
        at, length = random_source.randrange(len(data) + 1), random_source.choice((1, 1, 2, 20))
        piece = data[at : at + length]
        replaced = bytes(
            random_source.choice((0, 10, 13, 32, 58, 255, random_source.randrange(256)))
            for _ in range(length)
        )
        data[at : at + length] = random_source.choice((replaced, b"", piece * 2, replaced + piece))
    return bytes(data)


def within_tls(target: Target) -> Iterator[Case]:
    """Yield requests over TLS, and raw bytes that bypass its encryption."""
    created = target.if_authorized(201)
    yield must_answer("a read", get(target), {200})
    yield must_answer("a creation", post(target), created)
    yield pipelined("creations", post(target), target.size.count(1000, 50), response(created))
    prefix = post_chunked(target)
    for length in (1, 2, 1 << 10):
        count = target.size.count(2 << 20, 1 << 15) // length
        yield Case(f"{count} chunks of {length}", lambda length=length, count=count: _chunked_spaces(prefix, length, count),  # type: ignore[misc]
                   (response({400, 401, 413}),), is_certain=False)  # fmt: skip
    raw = prefix + b"".join(chunk(ORDER[at : at + 1]) for at in range(len(ORDER))) + LAST_CHUNK
    yield must_answer("an order in records of a few bytes", raw, created)._replace(
        pieces=lambda: iter([raw[at : at + 7] for at in range(0, len(raw), 7)])
    )
    for record_type in TYPES:
        for data in (b"", bytes(40), bytes(1 << 14)):
            pieces = sends(get(target)[:40], Pause(), RawBytes(record(record_type, data)), Pause(0.02))
            yield Case(
                f"a record of type {record_type} and {len(data)} bytes",
                pieces,
                (response(REFUSALS),),
                is_certain=False,
            )
    yield Case("plain HTTP below TLS", sends(get(target)[:40], Pause(), RawBytes(get(target)), Pause(0.02)), (response(REFUSALS),),
               is_certain=False)  # fmt: skip
    yield Case(
        "a reset", sends(post(target)[:-1], Pause()), (response(REFUSALS),), Ending.RESETS, is_certain=False
    )


def _chunked_spaces(prefix: bytes, length: int, count: int) -> Pieces:
    yield prefix
    yield from blocks(chunk(b" " * length), count)
    yield LAST_CHUNK
