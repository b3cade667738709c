"""Requests that are composed at random of what the grammar has, and then perhaps changed; a seed replays them."""

import random  # noqa: TID251 (seeded: a seed replays a run)
from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.attack.answers import Asked
from tests.attack.grammar import (
    CHUNKED,
    EXPECTING,
    HEALTH,
    JSON,
    OFFER,
    ORDER,
    ORDERS,
    SURE_BYTES,
    Header,
    Target,
    chunk,
    cut,
    head,
)
from tests.attack.records import changed
from tests.attack.talking import Case, Ending

ANYTHING: Final = Asked(frozenset({*range(200, 500), 501, 505}), interims=(0, 99))
CHANGED_SECONDS: Final = 0.03  # for answers, of which nobody knows how many will come
REQUESTS_MAX: Final = 99  # that a changed case may turn out to have


class Kind(NamedTuple):
    """A request without its form, and its answers with and without a key."""

    method: bytes
    path: bytes
    body: bytes
    keyed: tuple[int, ...]
    keyless: tuple[int, ...]


UNKNOWN: Final = b"BREW"
KINDS: Final = (
    Kind(b"GET", HEALTH, b"", (200,), (200,)),
    Kind(b"HEAD", HEALTH, b"", (200,), (200,)),
    Kind(b"POST", ORDERS, ORDER, (201,), (401,)),
    Kind(b"POST", ORDERS, b" " + ORDER + b"\n" * 300, (201,), (401,)),
    Kind(b"POST", ORDERS, b'{"currency"', (400,), (401,)),
    Kind(b"GET", b"/v1/orders/nobody/", b"", (404,), (401,)),
    Kind(b"GET", b"/nothing/?a=b", b"", (404,), (404,)),
    Kind(b"DELETE", HEALTH, b"", (405,), (405,)),
    Kind(UNKNOWN, HEALTH, b"", (400, 405), (400, 405)),
)


class Composed(NamedTuple):
    """One request, and whether it must be answered, and whether another one can follow it."""

    raw: bytes
    asked: Asked
    is_certain: bool
    closes: bool


def composed(target: Target, seed: str) -> Case:
    """Some requests ahead of their answers, in some segments, with some end."""
    source = random.Random(seed)
    requests = [_request(target, source) for _ in range(source.choice((1, 1, 2, 3, 8, 20)))]
    raw = b"".join(request.raw for request in requests)
    last = next((number for number, request in enumerate(requests) if request.closes), len(requests) - 1)
    answered = requests[: last + 1]
    case = Case(
        f"composed with {seed}",
        lambda: iter((raw,)),
        tuple(request.asked for request in answered),
        source.choice((Ending.WAITS, Ending.WAITS, Ending.HALF_CLOSES, Ending.RESETS)),
        is_certain=all(request.is_certain for request in requests) and len(answered) == len(requests),
    )
    if source.random() < 0.4 and not any(asked.is_head for asked in case.asked):
        raw = changed(raw, source)
        case = case._replace(asked=(ANYTHING,) * REQUESTS_MAX, is_certain=False, is_random=True)
        case = case._replace(answer_seconds=CHANGED_SECONDS)
    places = sorted(source.randrange(len(raw) + 1) for _ in range(source.choice((0, 0, 1, 4))))
    return case._replace(sent=lambda: cut(raw, *places))


def compositions(target: Target, seed: int) -> Iterator[Case]:
    """Many of them; each has a seed of its own."""
    for number in range(target.size.count(2000, 20)):
        yield composed(target, f"{seed}:{number}")


def _request(target: Target, source: random.Random) -> Composed:
    kind = source.choice(KINDS)
    is_old, closes = source.random() < 0.1, source.random() < 0.1
    path = b"http://" + target.host.encode() + kind.path if source.random() < 0.2 else kind.path
    start = b"%s %s HTTP/1.%d" % (kind.method, path, not is_old)
    headers = [*target.headers, *_harmless(source)]
    if closes:
        headers.append((b"Connection", b"close"))
    elif source.random() < 0.1:
        headers += OFFER
    framing, body = _framed(kind.body, source, is_old)
    interims = 0
    if body and source.random() < 0.2:
        headers.append(EXPECTING)
        interims = int(not is_old)
    source.shuffle(headers)
    raw = head(start, [*headers, *framing])
    statuses = {*(kind.keyed if target.key is not None else kind.keyless)}
    is_certain = (
        len(raw) <= SURE_BYTES and kind.method != UNKNOWN
    )  # which may be refused with all that was read
    asked = Asked(frozenset(statuses), kind.method == b"HEAD", is_old, (0, interims))
    return Composed(raw + body, asked, is_certain, closes or is_old)


def _harmless(source: random.Random) -> Iterator[Header]:
    """Headers that mean nothing."""
    for number in range(source.choice((0, 0, 1, 5, 30))):
        length = source.choice((0, 1, 10, 60, 60, 60, 60, 20_000))
        value = bytes(source.randrange(0x21, 0x7F) for _ in range(min(length, 60))) * (1 + length // 60)
        yield (
            b"X-%d-%s" % (number, bytes(source.choice(b"abcXYZ019!#$%&'*+.^_`|~-") for _ in range(5))),
            value,
        )


def _framed(body: bytes, source: random.Random, is_old: bool) -> tuple[list[Header], bytes]:
    """The headers that frame a body, and the body in this frame."""
    if not body:
        return [], b""
    if is_old or source.random() < 0.5:
        return [JSON, (b"Content-Length", b"%d" % len(body))], body
    pieces, at = [], 0
    while at < len(body):
        length = source.choice((1, 2, 7, 1000))
        pieces.append(chunk(body[at : at + length], source.choice((b"", b"", b";a", b';a="b"'))))
        at += length
    trailers = b"X-Trailer: y\r\n" * source.choice((0, 0, 1, 5))
    return [JSON, CHUNKED], b"".join(pieces) + b"0\r\n" + trailers + b"\r\n"
