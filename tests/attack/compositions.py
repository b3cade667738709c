"""Random requests, composed of parts of the grammar and sometimes corrupted; a seed replays them."""

import random  # noqa: TID251 (seeded: a seed replays a run)
from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.attack.answers import ExpectedResponse
from tests.attack.client import Case, Ending
from tests.attack.grammar import (
    ACCEPTED_BYTES,
    CHUNKED,
    EXPECT_CONTINUE,
    HEALTH,
    JSON,
    OFFER,
    ORDER,
    ORDERS,
    Header,
    Target,
    chunk,
    head,
    segments,
)

ANYTHING: Final = ExpectedResponse(frozenset({*range(200, 500), 501, 505}), interims=(0, 99))
CORRUPTED_SECONDS: Final = 0.03  # for an unknown number of answers
REQUESTS_MAX: Final = 99  # that a corrupted case may contain


class Kind(NamedTuple):
    """A kind of request, and the statuses of its answers with and without a key."""

    method: bytes
    path: bytes
    body: bytes
    statuses_with_key: tuple[int, ...]
    statuses_without_key: tuple[int, ...]


UNKNOWN_METHOD: Final = b"BREW"
KINDS: Final = (
    Kind(b"GET", HEALTH, b"", (200,), (200,)),
    Kind(b"HEAD", HEALTH, b"", (200,), (200,)),
    Kind(b"POST", ORDERS, ORDER, (201,), (401,)),
    Kind(b"POST", ORDERS, b" " + ORDER + b"\n" * 300, (201,), (401,)),
    Kind(b"POST", ORDERS, b'{"currency"', (400,), (401,)),
    Kind(b"GET", b"/v1/orders/nobody/", b"", (404,), (401,)),
    Kind(b"GET", b"/nothing/?a=b", b"", (404,), (404,)),
    Kind(b"DELETE", HEALTH, b"", (405,), (405,)),
    Kind(UNKNOWN_METHOD, HEALTH, b"", (400, 405), (400, 405)),
)


class Composed(NamedTuple):
    """A request; ``is_certain`` if it must be answered, ``closes`` if no request can follow."""

    raw: bytes
    expected: ExpectedResponse
    is_certain: bool
    closes: bool


def compose(target: Target, seed: str) -> Case:
    """Compose a random pipeline of requests with random segments and a random ending."""
    random_source = random.Random(seed)
    requests = [_request(target, random_source) for _ in range(random_source.choice((1, 1, 2, 3, 8, 20)))]
    raw = b"".join(request.raw for request in requests)
    last = next((number for number, request in enumerate(requests) if request.closes), len(requests) - 1)
    answered = requests[: last + 1]
    case = Case(
        f"composed with {seed}",
        lambda: iter((raw,)),
        tuple(request.expected for request in answered),
        random_source.choice((Ending.WAITS, Ending.WAITS, Ending.RESETS)),
        is_certain=all(request.is_certain for request in requests) and len(answered) == len(requests),
    )
    if random_source.random() < 0.4 and not any(expected.is_head for expected in case.expected):
        raw = corrupt(raw, random_source)
        case = case._replace(expected=(ANYTHING,) * REQUESTS_MAX, is_certain=False, is_random=True)
        case = case._replace(answer_seconds=CORRUPTED_SECONDS)
    places = sorted(random_source.randrange(len(raw) + 1) for _ in range(random_source.choice((0, 0, 1, 4))))
    return case._replace(pieces=lambda: segments(raw, *places))


def compositions(target: Target, seed: int) -> Iterator[Case]:
    """Yield random cases, each with its own seed."""
    for number in range(target.size.count(2000, 20)):
        yield compose(target, f"{seed}:{number}")


def _request(target: Target, random_source: random.Random) -> Composed:
    kind = random_source.choice(KINDS)
    is_http10, closes = random_source.random() < 0.1, random_source.random() < 0.1
    path = b"http://" + target.host.encode() + kind.path if random_source.random() < 0.2 else kind.path
    start = b"%s %s HTTP/1.%d" % (kind.method, path, not is_http10)
    headers = [*target.headers, *_meaningless_headers(random_source)]
    if closes:
        headers.append((b"Connection", b"close"))
    elif random_source.random() < 0.1:
        headers += OFFER
    framing, body = _frame(kind.body, random_source, is_http10)
    interims = 0
    if body and random_source.random() < 0.2:
        headers.append(EXPECT_CONTINUE)
        interims = int(not is_http10)
    random_source.shuffle(headers)
    raw = head(start, [*headers, *framing])
    statuses = {*(kind.statuses_with_key if target.key is not None else kind.statuses_without_key)}
    # an unknown method may be refused together with everything that the server has read
    is_certain = len(raw) <= ACCEPTED_BYTES and kind.method != UNKNOWN_METHOD
    expected = ExpectedResponse(frozenset(statuses), kind.method == b"HEAD", is_http10, (0, interims))
    return Composed(raw + body, expected, is_certain, closes or is_http10)


def _meaningless_headers(random_source: random.Random) -> Iterator[Header]:
    """Yield headers without a meaning."""
    for number in range(random_source.choice((0, 0, 1, 5, 30))):
        length = random_source.choice((0, 1, 10, 60, 60, 60, 60, 20_000))
        value = bytes(random_source.randrange(0x21, 0x7F) for _ in range(min(length, 60))) * (
            1 + length // 60
        )
        yield (
            b"X-%d-%s" % (number, bytes(random_source.choice(b"abcXYZ019!#$%&'*+.^_`|~-") for _ in range(5))),
            value,
        )


def _frame(body: bytes, random_source: random.Random, is_http10: bool) -> tuple[list[Header], bytes]:
    """Return framing headers for a body, and the framed body."""
    if not body:
        return [], b""
    if is_http10 or random_source.random() < 0.5:
        return [JSON, (b"Content-Length", b"%d" % len(body))], body
    pieces, at = [], 0
    while at < len(body):
        length = random_source.choice((1, 2, 7, 1000))
        pieces.append(chunk(body[at : at + length], random_source.choice((b"", b"", b";a", b';a="b"'))))
        at += length
    trailers = b"X-Trailer: y\r\n" * random_source.choice((0, 0, 1, 5))
    return [JSON, CHUNKED], b"".join(pieces) + b"0\r\n" + trailers + b"\r\n"


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
