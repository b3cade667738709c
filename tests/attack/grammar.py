"""Productions of RFC 9112: requests from empty to far above every limit, and their permitted answers.

Each production yields cases for one target, with the API key of a project or without a key. Lengths and counts
of the short form stay below a tenth of a megabyte.
"""

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from tests.attack import Size
from tests.attack.answers import ExpectedResponse
from tests.attack.client import Case, Ending, Pause, Pieces, RawBytes

ACCEPTED_BYTES: Final = 4096  # a length of a line or head that every server must accept
ACCEPTED_HEADERS: Final = 60
REFUSABLE_BYTES: Final = 1 << 16  # a length that no server needs to accept
BODY_BYTES_MAX: Final = 1 << 20  # limit of this server (SET-09)
SENT_BYTES: Final = 1 << 18  # a size that a server may read at once
ORDER: Final = b'{"currency": "EUR", "amount": 1000}'
JSON: Final = (b"Content-Type", b"application/json")
CHUNKED: Final = (b"Transfer-Encoding", b"chunked")
EXPECT_CONTINUE: Final = (b"Expect", b"100-continue")
CONNECTION_CLOSE: Final = (b"Connection", b"close")
HEALTH: Final = b"/health/"
ORDERS: Final = b"/v1/orders/"
SNAPSHOT: Final = b"/control/state/"
LAST_CHUNK: Final = b"0\r\n\r\n"
REFUSALS: Final = frozenset({400, 403, 404, 405, 408, 411, 413, 414, 417, 421, 426, 431, 501, 505})
METHOD_REFUSALS: Final = frozenset({400, 405})

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


def sends(*pieces: bytes | Pause | RawBytes) -> Callable[[], Pieces]:
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


# The start line

OTHER_METHODS: Final = (b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS")
UNUSUAL_METHODS: Final = (b"PROPFIND", b"PURGE", b"M-SEARCH", b"QUERY", b"TRACE", b"LINK")
UNKNOWN_METHODS: Final = (b"FOO", b"BREW", b"get", b"G", b"GETS", b"!#$%&'*+-.^_`|~09Az", b"X" * 64)
INVALID_METHODS: Final = (b"", b"G@T", b"G\xc9T", b"G\x00T", b"G:T", b"(GET)", b"\x7f")
CUT_METHODS: Final = (b"GET", b"HEAD", b"FOO", b"BREWCOFFEE", b"OPTIONS")
VERSIONS: Final = (b"HTTP/1.2", b"HTTP/2.0", b"HTTP/0.9", b"HTTP/1", b"HTTP/11.1", b"HTTP/1.11", b"http/1.1")
INVALID_VERSIONS: Final = (
    b"",
    b"HTTP/",
    b"HTTP/a.b",
    b"HTTP/-1.1",
    b"HTTPS/1.1",
    b"HTTP/1.1 HTTP/1.1",
    b"HTTP 1.1",
)


def methods(target: Target) -> Iterator[Case]:
    """Yield known, unusual, unknown and invalid methods."""
    yield must_answer("GET", get(target), {200})
    yield must_answer("HEAD", get(target, start=b"HEAD /health/ HTTP/1.1"), {200}, is_head=True)
    for method in OTHER_METHODS:
        raw = get(target, (b"Content-Length", b"0"), start=method + b" /health/ HTTP/1.1")
        yield must_answer(f"{method!r}", raw, METHOD_REFUSALS)
    for method in (*UNUSUAL_METHODS, *UNKNOWN_METHODS):
        yield must_answer(f"{method!r}", get(target, start=method + b" /health/ HTTP/1.1"), METHOD_REFUSALS)
    for method in INVALID_METHODS:
        yield must_refuse(f"no method {method!r}", get(target, start=method + b" /health/ HTTP/1.1"))
    for length in target.lengths(10 << 20):
        yield must_refuse(f"a method of {length}", get(target, start=b"X" * length + b" /health/ HTTP/1.1"))
    yield must_refuse("CONNECT", get(target, start=b"CONNECT shop.example:443 HTTP/1.1"))
    yield must_refuse("HTTP/2 without an upgrade", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(64))


def split_methods(target: Target) -> Iterator[Case]:
    """Yield methods in two segments; they must get the same answer as in one."""
    for method in CUT_METHODS:
        raw = get(target, start=method + b" /health/ HTTP/1.1")
        statuses = {200} if method in (b"GET", b"HEAD") else METHOD_REFUSALS
        for place in range(len(method) + 1):
            case = must_answer(f"{method!r} cut at {place}", raw, statuses, is_head=method == b"HEAD")
            yield case._replace(pieces=lambda raw=raw, place=place: segments(raw, place), twin=sends(raw))  # type: ignore[misc]
    raw = post(target)
    for place in range(1, len(raw), 1 if target.size.strict else 17):
        case = must_answer(f"a creation cut at {place}", raw, target.if_authorized(201))
        yield case._replace(pieces=lambda place=place: segments(raw, place))  # type: ignore[misc]


def start_lines(target: Target) -> Iterator[Case]:
    """Yield versions, spaces and line ends."""
    for version in VERSIONS:
        yield may_refuse(f"version {version!r}", get(target, start=b"GET /health/ " + version), {200})
    for version in INVALID_VERSIONS:
        yield must_refuse(f"no version {version!r}", get(target, start=b"GET /health/ " + version))
    for length in target.lengths():
        yield must_refuse(
            f"a version of {length}", get(target, start=b"GET /health/ HTTP/1." + b"9" * (length + 1))
        )
    yield must_answer("HTTP/1.0", get(target, start=b"GET /health/ HTTP/1.0"), {200}, is_http10=True)
    yield must_answer("HTTP/1.0 without Host", b"GET /health/ HTTP/1.0\r\n\r\n", {200}, is_http10=True)
    yield must_refuse("HTTP/0.9", b"GET /health/\r\n")
    yield must_answer("an empty line before it", b"\r\n" + get(target), {200})
    for length in target.lengths(10 << 20):
        yield may_refuse(f"{length} empty lines before it", b"\r\n" * length + get(target), {200})
        yield may_refuse(
            f"{length} spaces in it", get(target, start=b"GET" + b" " * length + b"/health/ HTTP/1.1"), {200}
        )
    yield may_refuse("a tab in it", get(target, start=b"GET\t/health/\tHTTP/1.1"), {200})
    yield may_refuse("line feeds alone", get(target).replace(b"\r\n", b"\n"), {200})
    yield may_refuse("carriage returns alone", get(target).replace(b"\r\n", b"\r"), {200})
    yield must_refuse("nothing but spaces", b" " * target.size.count(1 << 20, 1 << 12))
    yield must_refuse("zeros", bytes(target.size.count(1 << 20, 1 << 12)))
    yield must_refuse("all bytes", bytes(range(256)) * target.size.count(4096, 16))


# The target

ODD_PATHS: Final = (
    b"/health/%", b"/health/%zz", b"/health/%00", b"/%68ealth/", b"//health/", b"/./health/", b"/x/../health/",
    b"/health/#x", b"/health/?#", b"/health/\xc3\xa9", b"/health/\xff", b"/health/\x01", b"/health/%ff", b"/\\health",
    b"/health/?a=%", b"health/", b"?a", b"/health/;a=b", b"/health/|", b'/health/"', b"/health/<>",
)  # fmt: skip


def targets(target: Target) -> Iterator[Case]:
    """Yield targets in origin, absolute, authority and asterisk form."""
    host = target.host.encode()
    origin = sends(get(target))
    for form in (b"http://%s", b"HTTP://%s", b"http://user@%s"):
        base = form % host
        case = may_refuse if b"@" in form else must_answer
        raw = get(target, start=b"GET %s/health/ HTTP/1.1" % base)
        yield case(f"{form!r}/health/", raw, {200})._replace(twin=origin if case is must_answer else None)
    base = b"http://" + host
    yield must_answer(
        "absolute, with a query", get(target, start=b"GET %s/health/?a=http://b HTTP/1.1" % base), {200}
    )
    yield must_answer("absolute, without a path", get(target, start=b"GET %s HTTP/1.1" % base), {200})
    yield must_answer(
        "absolute, HTTP/1.0", get(target, start=b"GET %s/health/ HTTP/1.0" % base), {200}, is_http10=True
    )
    yield must_answer("absolute, unknown path", get(target, start=b"GET %s/nothing/ HTTP/1.1" % base), {404})
    yield must_answer(
        "absolute, HEAD", get(target, start=b"HEAD %s/health/ HTTP/1.1" % base), {200}, is_head=True
    )
    creation = post(target, start=b"POST %s/v1/orders/ HTTP/1.1" % base)
    yield must_answer("absolute, a creation", creation, target.if_authorized(201))
    for form in (
        b"https://%s/health/",
        b"ftp://%s/health/",
        b"http:/%s/health/",
        b"http:///health/",
        b"http://",
        b"://",
    ):
        raw = get(target, start=b"GET %s HTTP/1.1" % form.replace(b"%s", host))
        yield may_refuse(f"{form!r}", raw, {200})
    yield may_refuse("authority-form", get(target, start=b"GET %s HTTP/1.1" % host), ())
    yield may_refuse("asterisk-form", get(target, start=b"OPTIONS * HTTP/1.1"), {200, 204})
    yield may_refuse("asterisk-form with GET", get(target, start=b"GET * HTTP/1.1"), ())
    for path in ODD_PATHS:
        yield may_refuse(f"path {path!r}", get(target, start=b"GET %s HTTP/1.1" % path), {200, 308})
    for length in target.lengths(10 << 20):
        path = b"/health/?" + b"a" * length
        yield by_length("a query", length, get(target, start=b"GET %s HTTP/1.1" % path), {200})
        path = b"/" + b"a" * length
        yield by_length("a path", length, get(target, start=b"GET %s HTTP/1.1" % path), {404})
        path = b"http://" + b"a" * length
        yield may_refuse(f"an authority of {length}", get(target, start=b"GET %s/ HTTP/1.1" % path), {200})


# Headers

BROKEN_HEADERS: Final = (
    b"X : y", b": y", b"no colon", b"X\x00Y: z", b"X: \x00", b"(X): y", b"X\xc9: y", b" X: y", b"\xff",
)  # fmt: skip
ODD_HEADERS: Final = (
    b"X: y\r\n folded", b"X: y\r\n\tfolded", b"X: a\rb", b"X: a\nY: b", b"X: \x01\x7f", b"X: \xff\xfe", b"X:",
    b"X: " + b" " * 2000, b"Host: other.example", b"Host:", b"Connection: close, keep-alive", b"Connection: \xff",
    b"TE: trailers, deflate;q=0.5", b"Keep-Alive: timeout=-1, max=x", b"Accept: ,,,;q=x", b"Cookie: " + b"=;" * 500,
    b"Authorization: Basic", b"Authorization: Basic \xff", b"Authorization: Negotiate x", b"Content-Type: \xff/;=",
    b"Accept-Encoding: gzip;q=9", b"Range: bytes=0-", b"If-None-Match: *", b"Content-Encoding: gzip",
)  # fmt: skip


def headers(target: Target) -> Iterator[Case]:
    """Yield headers of many counts, lengths, repetitions and forms."""
    for line in BROKEN_HEADERS:
        yield must_refuse(f"header {line!r}", get(target)[:-2] + line + b"\r\n\r\n")
        yield must_refuse(f"first header {line!r}", b"GET /health/ HTTP/1.1\r\n" + line + get(target)[21:])
    for line in ODD_HEADERS:
        yield may_refuse(f"header {line[:40]!r}", get(target)[:-2] + line + b"\r\n\r\n", {200, 401})
    for length in target.lengths(10 << 20):
        yield by_length("a header's name", length, get(target, (b"X" * length, b"y")), {200})
        yield by_length("a header's value", length, get(target, (b"X", b"y" * length)), {200})
        yield may_refuse(f"a value of {length} spaces", get(target, (b"X", b" " * length)), {200})
        yield may_refuse(f"a value of {length} folds", get(target, (b"X", b"\r\n y" * length)), {200})
    counts = (0, 1, 20, 60, 100, 500, target.size.count(10_000, 1000), target.size.count(1_000_000, 10_000))
    for count in counts:
        for each in (b"X-%d", b"X"):
            names = (each % number if b"%" in each else each for number in range(count))
            raw = get(target, *((name, b"y") for name in names))
            if count <= ACCEPTED_HEADERS:
                yield must_answer(f"{count} headers {each!r}", raw, {200})
            else:
                yield by_length(f"{count} headers {each!r}", len(raw), raw, {200})._replace(is_certain=False)
    yield Case("headers without end", lambda: _endless(b"GET /health/ HTTP/1.1\r\n", b"X: y\r\n", target),
               (response(REFUSALS),), is_certain=False)  # fmt: skip
    yield Case("a header without end", lambda: _endless(b"GET /health/ HTTP/1.1\r\nX: ", b"y", target),
               (response(REFUSALS),), is_certain=False)  # fmt: skip
    yield must_refuse("no Host", b"GET /health/ HTTP/1.1\r\n\r\n")
    yield must_refuse("two Hosts", get(target, (b"Host", b"other.example")))
    for option in (b"close", b"keep-alive", b"Close", b"a, b, close"):
        yield must_answer(f"Connection: {option!r}", get(target, (b"Connection", option)), {200})


def _endless(prefix: bytes, piece: bytes, target: Target) -> Pieces:
    """Yield an endless head, stopped far above every limit."""
    yield prefix
    yield from blocks(piece, target.size.count(64 << 20, 1 << 20) // len(piece))


# Offers of other protocols, and expectations

OFFER: Final = ((b"Upgrade", b"websocket"), (b"Connection", b"Upgrade"))
OFFERS: Final = (
    OFFER,
    (
        (b"Upgrade", b"h2c"),
        (b"Connection", b"Upgrade, HTTP2-Settings"),
        (b"HTTP2-Settings", b"AAMAAABkAARAAAAAAAIAAAAA"),
    ),
    ((b"Upgrade", b"x" * 1000), (b"Connection", b"upgrade")),
    ((b"Upgrade", b"websocket"),),
    ((b"Connection", b"Upgrade"),),
)


def offers(target: Target) -> Iterator[Case]:
    """Yield offers to upgrade to other protocols, which this server declines."""
    for offer in OFFERS:
        yield must_answer(f"offer {offer[0][1][:20]!r}", get(target, *offer), {200})
        yield must_answer(
            f"a creation with {offer[0][1][:20]!r}", post(target, *offer), target.if_authorized(201)
        )
        raw = get(target, *offer) + get(target)
        yield Case(f"{offer[0][1][:20]!r} and another", sends(raw), (response({200}),) * 2)
    for count in (17, 100, 983, 1100, 5000) if target.size.strict else (17, 1100, 3000):
        yield pipelined(f"{count} offers", get(target, *OFFER), count, response({200}))
    count = target.size.count(2000, 50)
    yield pipelined(
        f"{count} creations with offers", post(target, *OFFER), count, response(target.if_authorized(201))
    )


def pipelined(
    name: str, raw: bytes, count: int, each: ExpectedResponse, ending: Ending = Ending.WAITS
) -> Case:
    """Return a case that pipelines the same request many times."""
    return Case(name, lambda: blocks(raw, count), (each,) * count, ending)


def expectations(target: Target) -> Iterator[Case]:
    """Yield requests with ``Expect: 100-continue``; ``100 Continue`` must not precede a certain refusal."""
    wait = Pause(1.0 if target.size.strict else 0.2, until_answer=True)
    prefix, created = post(target, EXPECT_CONTINUE, body=ORDER), target.if_authorized(201)
    at = len(prefix) - len(ORDER)
    interims_after_wait = (1, 1) if target.key is not None else (0, 1)
    waiting = sends(prefix[:at], wait, prefix[at:])
    yield Case("Expect, and wait", waiting, (response(created, interims=interims_after_wait),))
    yield Case("Expect, and do not wait", sends(prefix), (response(created, interims=(0, 1)),))
    http10_request = post(target, EXPECT_CONTINUE, start=b"POST /v1/orders/ HTTP/1.0")
    yield Case(
        "Expect with HTTP/1.0",
        sends(http10_request[:at], wait, http10_request[at:]),
        (response({*created, 417}, is_http10=True),),
    )
    chunked = post_chunked(target, EXPECT_CONTINUE)
    yield Case(
        "Expect, and chunks",
        sends(chunked, wait, chunk(ORDER) + LAST_CHUNK),
        (response(created, interims=interims_after_wait),),
    )
    yield must_answer("Expect without a body", get(target, EXPECT_CONTINUE), {200, 417}, interims=(0, 1))
    yield may_refuse("an unknown expectation", post(target, (b"Expect", b"200-ok")), created)
    yield Case("Expect in a pipeline", sends(get(target), prefix, get(target)),
               (response({200}), response(created, interims=(0, 1)), response({200})))  # fmt: skip
    count = target.size.count(2000, 40)
    yield pipelined(f"{count} times Expect", prefix, count, response(created, interims=(0, 1)))
    for length in (BODY_BYTES_MAX + 1, 9 << 20, (256 << 20) + 2, 1 << 40):
        raw = head(
            b"POST /v1/orders/ HTTP/1.1",
            [*target.headers, JSON, EXPECT_CONTINUE, (b"Content-Length", b"%d" % length)],
        )
        refused = (response({413, *target.if_authorized(413)}),)
        yield Case(f"Expect, and a body of {length}", sends(raw, wait), refused, answer_seconds=1.0)


# Bodies


def bodies(target: Target) -> Iterator[Case]:
    """Yield bodies without, with correct and with wrong lengths."""
    created = target.if_authorized(201)
    for length in (0, 1, 1000, (1 << 16) + 1, BODY_BYTES_MAX - 1, BODY_BYTES_MAX):
        if length <= REFUSABLE_BYTES + 1 or target.size.strict:
            yield must_answer(f"{length} spaces", post(target, body=b" " * length), target.if_authorized(400))
            yield must_answer(
                f"{length} spaces for a GET",
                post(target, body=b" " * length, start=b"GET /health/ HTTP/1.1"),
                {200, 400},
            )
    padded = ORDER + b" " * (target.size.count(BODY_BYTES_MAX, 1 << 15) - len(ORDER))
    yield must_answer("an order of the largest size", post(target, body=padded), created)
    for length in (BODY_BYTES_MAX + 1, target.size.count(9 << 20, 2 << 20)):
        raw = post(target, body=b" " * length)
        yield Case(
            f"{length} bytes, too many",
            sends(raw),
            (response({413, *target.if_authorized(413)}),),
            is_certain=False,
        )
    yield must_answer("an order byte by byte", post(target), created)._replace(
        pieces=lambda: segments(post(target), *range(len(post(target)) - len(ORDER), len(post(target))))
    )
    raw = post(target)
    for missing in (1, len(ORDER) - 1, len(ORDER)):
        yield must_refuse(f"a body that is {missing} bytes short", raw[:-missing])._replace(
            ending=Ending.HALF_CLOSES
        )
        yield must_refuse(f"a body that is reset {missing} bytes short", raw[:-missing])._replace(
            ending=Ending.RESETS
        )
    more = (response(created), response(REFUSALS))
    yield Case("a body longer than its length", sends(raw + b"}}}}\r\n\r\n"), more, is_certain=False)


LENGTHS: Final = (b"-1", b"+35", b"0x23", b"35 35", b"35, 35", b"35, 36", b"", b"3 5", b"a", b"35.0", b"9" * 30, b"\xb2",
                  b"18446744073709551651", b"-0", b"9" * 5000)  # fmt: skip
CODINGS: Final = (b"chunked, chunked", b"xchunked", b"chunked;q=1", b"chunked, gzip", b"identity", b"",
                  b"\x0bchunked", b"chunked,", b"gzip", b"x" * 2000)  # fmt: skip


def framings(target: Target) -> Iterator[Case]:
    """Yield bodies with contradictory or missing framing, which must not smuggle in a second request."""
    base, created = [*target.headers, JSON], target.if_authorized(201)
    start = b"POST /v1/orders/ HTTP/1.1"
    for length in LENGTHS:
        yield may_refuse(
            f"length {length[:30]!r}",
            head(start, [*base, (b"Content-Length", length)]) + ORDER,
            created if length in (b"35, 35",) else (),
        )
    yield must_answer(
        "a length with zeros", head(start, [*base, (b"Content-Length", b"000035")]) + ORDER, created
    )
    twice = [(b"Content-Length", b"35"), (b"Content-Length", b"35")]
    yield may_refuse("the same length twice", head(start, [*base, *twice]) + ORDER, created)
    twice[1] = (b"Content-Length", b"3")
    for pair in (twice, twice[::-1]):
        yield must_refuse("two lengths", head(start, [*base, *pair]) + ORDER)
    for coding in CODINGS:
        yield must_refuse(
            f"coding {coding[:30]!r}",
            head(start, [*base, (b"Transfer-Encoding", coding)]) + chunk(ORDER) + LAST_CHUNK,
        )
    yield may_refuse(
        "chunked twice", head(start, [*base, CHUNKED, CHUNKED]) + chunk(ORDER) + LAST_CHUNK, created
    )
    yield must_answer(
        "Chunked",
        head(start, [*base, (b"transfer-encoding", b"Chunked")]) + chunk(ORDER) + LAST_CHUNK,
        created,
    )
    hidden = chunk(ORDER) + LAST_CHUNK + get(target)
    for size in (0, 3, len(chunk(ORDER)), len(hidden)):
        both = [CHUNKED, (b"Content-Length", b"%d" % size)]
        for pair in (both, both[::-1]):
            yield may_refuse(f"chunked, and length {size}", head(start, [*base, *pair]) + hidden, created)
    yield may_refuse(
        "chunked with HTTP/1.0", head(b"POST /v1/orders/ HTTP/1.0", [*base, CHUNKED]) + hidden, created
    )
    yield must_answer("no framing", head(start, base), target.if_authorized(400, 411))


Production = Callable[[Target], Iterator[Case]]
REQUESTS: Final[Mapping[str, Production]] = {
    "methods": methods,
    "cut": split_methods,
    "start lines": start_lines,
    "targets": targets,
    "headers": headers,
    "offers": offers,
    "expectations": expectations,
    "bodies": bodies,
    "framings": framings,
}
