"""Productions of TLS: hellos and other records, on a port that speaks only http and on one that speaks both."""

import random  # noqa: TID251 (seeded: a seed replays a run)
import ssl
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from tests.attack.grammar import (
    LAST_CHUNK,
    ORDER,
    REFUSALS,
    Target,
    asked,
    chunk,
    cut,
    get,
    many,
    post,
    post_chunked,
    repeated,
    right,
    says,
)
from tests.attack.talking import Below, Case, Ending, Pause, Sent

TYPES: Final = (0x00, 0x14, 0x15, 0x16, 0x17, 0x18, 0x80, 0xFF)
VERSIONS: Final = (b"\x03\x01", b"\x03\x03", b"\x02\x00", b"\xff\xff")
LENGTHS: Final = (0, 1, 4, 255, 1 << 14, (1 << 14) + 2049, (1 << 16) - 1)
ALERTS: Final = (b"\x01\x00", b"\x02\x28", b"\x02\x00", b"\xff\xff", b"\x01")


def trusting() -> ssl.SSLContext:
    """TLS with any certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def hello() -> bytes:
    """How a client begins."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        trusting().wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def record(kind: int, data: bytes, version: bytes = b"\x03\x03", length: int | None = None) -> bytes:
    """A record, which may say another length than it has."""
    said = len(data) if length is None else length
    return bytes([kind]) + version + said.to_bytes(2, "big") + data


def records(target: Target) -> Iterator[Case]:
    """On a port without TLS: a refusal in JSON, or a closed connection."""
    for name, sent, ending in _records(target):
        yield Case(name, lambda sent=sent: iter(sent), (asked(REFUSALS),), ending, is_certain=False)  # type: ignore[misc]


def secure_records(target: Target) -> Iterator[Case]:
    """On a port with TLS: alerts, or a closed connection; and http is spoken, too."""
    for name, sent, ending in _records(target):
        yield Case(name, lambda sent=sent: iter(sent), (), ending, is_certain=False, is_http=False)  # type: ignore[misc]
    yield right("http on the same port", get(target), {200})
    yield many("creations over http", post(target), 20, asked(target.keyed(201)), Ending.HALF_CLOSES)


def _records(target: Target) -> Iterator[tuple[str, list[bytes | Pause | Below], Ending]]:
    waits = Ending.WAITS
    begun = hello()
    for place in (1, 2, 3, 5, 6, 9, 43, 100, len(begun) - 1, len(begun)):
        for ending in Ending:
            yield f"a hello of {place} bytes; {ending.value}", [begun[:place]], ending
    yield "a hello in segments", list(cut(begun, *range(1, len(begun), 40))), waits
    yield "two hellos", [begun * 2], waits
    yield "a hello, and http", [begun + get(target)], waits
    yield "http, and a hello", [get(target)[:20] + begun], waits
    source = random.Random(len(begun))
    for number in range(target.size.count(1000, 20)):
        yield f"a changed hello {number}", [changed(begun, source)], waits
    for kind in TYPES:
        for version in VERSIONS:
            yield f"a record of type {kind}, {version!r}", [record(kind, bytes(40), version)], waits
        for length in LENGTHS:
            yield f"a record of type {kind}, {length} bytes", [record(kind, bytes(length))], waits
            yield (
                f"a record of type {kind}, that says {length} bytes",
                [record(kind, b"x" * 10, length=length)],
                waits,
            )
        count = target.size.count(200_000, 500)
        yield f"{count} empty records of type {kind}", list(repeated(record(kind, b""), count)), waits
    for alert in ALERTS:
        yield f"alert {alert!r}", [record(0x15, alert)], waits
        yield f"a hello, and alert {alert!r}", [begun, Pause(), record(0x15, alert)], waits
    large = record(0x16, b"\x01\xff\xff\xff" + bytes((1 << 14) - 4))
    yield "a hello of 16 MB", list(repeated(large, target.size.count(1024, 20))), waits


def changed(raw: bytes, source: random.Random) -> bytes:
    """Bytes of which a few are replaced, removed, doubled or inserted."""
    data = bytearray(raw)
    for _ in range(source.randint(1, 4)):
        at, length = source.randrange(len(data) + 1), source.choice((1, 1, 2, 20))
        piece = data[at : at + length]
        replaced = bytes(
            source.choice((0, 10, 13, 32, 58, 255, source.randrange(256))) for _ in range(length)
        )
        data[at : at + length] = source.choice((replaced, b"", piece * 2, replaced + piece))
    return bytes(data)


def within_tls(target: Target) -> Iterator[Case]:
    """Requests over TLS, and what breaks in below them; to be sent over TLS."""
    created = target.keyed(201)
    yield right("a read", get(target), {200})
    yield right("a creation", post(target), created)
    yield many("creations", post(target), target.size.count(1000, 50), asked(created))
    begun = post_chunked(target)
    for length in (1, 2, 1 << 10):
        count = target.size.count(2 << 20, 1 << 15) // length
        yield Case(f"{count} chunks of {length}", lambda length=length, count=count: _filled(begun, length, count),  # type: ignore[misc]
                   (asked({400, 401, 413}),), is_certain=False)  # fmt: skip
    raw = begun + b"".join(chunk(ORDER[at : at + 1]) for at in range(len(ORDER))) + LAST_CHUNK
    yield right("an order in records of a few bytes", raw, created)._replace(
        sent=lambda: iter([raw[at : at + 7] for at in range(0, len(raw), 7)])
    )
    for kind in TYPES:
        for data in (b"", bytes(40), bytes(1 << 14)):
            pieces = says(get(target)[:40], Pause(), Below(record(kind, data)), Pause(0.02))
            yield Case(
                f"a record of type {kind} and {len(data)} bytes", pieces, (asked(REFUSALS),), is_certain=False
            )
    yield Case("http below it", says(get(target)[:40], Pause(), Below(get(target)), Pause(0.02)), (asked(REFUSALS),),
               is_certain=False)  # fmt: skip
    yield Case(
        "a reset", says(post(target)[:-1], Pause()), (asked(REFUSALS),), Ending.RESETS, is_certain=False
    )


def _filled(begun: bytes, length: int, count: int) -> Sent:
    yield begun
    yield from repeated(chunk(b" " * length), count)
    yield LAST_CHUNK
