"""Productions of RFC 9112: what clients say, from nothing to far over every limit, and what they may read.

Each production yields cases for one target, which has the API key of a project or none. Lengths and counts of a
short form stay under a tenth of a megabyte.
"""

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from tests.attack import Size
from tests.attack.answers import Asked
from tests.attack.talking import Below, Case, Ending, Pause, Sent

SURE_BYTES: Final = 4096  # what every server must take of a line or of a head
SURE_HEADERS: Final = 60
OVER_BYTES: Final = 1 << 16  # what no server needs to take
BODY_BYTES_MAX: Final = 1 << 20  # of this server (SET-09)
SENT_BYTES: Final = 1 << 18  # what a server may read at once
ORDER: Final = b'{"currency": "EUR", "amount": 1000}'
JSON: Final = (b"Content-Type", b"application/json")
CHUNKED: Final = (b"Transfer-Encoding", b"chunked")
EXPECTING: Final = (b"Expect", b"100-continue")
CLOSING: Final = (b"Connection", b"close")
HEALTH: Final = b"/health/"
ORDERS: Final = b"/v1/orders/"
SNAPSHOT: Final = b"/control/state/"
LAST_CHUNK: Final = b"0\r\n\r\n"
REFUSALS: Final = frozenset({400, 403, 404, 405, 408, 411, 413, 414, 417, 421, 426, 431, 501, 505})
NO_METHOD: Final = frozenset({400, 405})

Header = tuple[bytes, bytes]


class Target(NamedTuple):
    """Whom the requests are for, and with whose key."""

    host: str
    size: Size
    key: str | None

    @property
    def headers(self) -> list[Header]:
        """What each request has: Host, and the key if there is one."""
        host = (b"Host", self.host.encode())
        return [host] if self.key is None else [host, self.authorization]

    @property
    def authorization(self) -> Header:
        """The key, or one that nobody has."""
        return authorization(self.key or "nobody")

    def keyed(self, *statuses: int) -> frozenset[int]:
        """These statuses with a key; without one, the call is refused."""
        return frozenset(statuses if self.key is not None else (401,))

    def lengths(self, *most: int) -> Iterator[int]:
        """Lengths around usual limits, up to the given ones in the full size."""
        usual = (1, 255, SURE_BYTES - 500, 8190, 16 << 10, OVER_BYTES + 1)
        yield from usual
        yield from (self.size.count(length, OVER_BYTES + 2) for length in (1 << 20, *most))


def authorization(key: str) -> Header:
    """The header that signs in with a key."""
    return b"Authorization", b"Basic " + b64encode(f"{key}:".encode())


def head(start: bytes, headers: Iterable[Header]) -> bytes:
    """A start line and headers, with the empty line behind them."""
    return b"\r\n".join([start, *(b"%s: %s" % pair for pair in headers), b"", b""])


def get(target: Target, *headers: Header, start: bytes = b"GET /health/ HTTP/1.1") -> bytes:
    """A request without a body."""
    return head(start, [*target.headers, *headers])


def post(target: Target, *headers: Header, body: bytes = ORDER, start: bytes = b"") -> bytes:
    """A creation with the length of its body."""
    length = (b"Content-Length", b"%d" % len(body))
    start = start or b"POST /v1/orders/ HTTP/1.1"
    return head(start, [*target.headers, JSON, length, *headers]) + body


def post_chunked(target: Target, *headers: Header, path: bytes = ORDERS, method: bytes = b"POST") -> bytes:
    """The head of a request whose body comes in chunks."""
    return head(b"%s %s HTTP/1.1" % (method, path), [*target.headers, JSON, CHUNKED, *headers])


def chunk(data: bytes, extension: bytes = b"") -> bytes:
    """One chunk."""
    return b"%x%s\r\n%s\r\n" % (len(data), extension, data)


def says(*pieces: bytes | Pause | Below) -> Callable[[], Sent]:
    """Exactly these pieces."""
    return lambda: iter(pieces)


def asked(statuses: Iterable[int], **more: object) -> Asked:
    """One request with any of these answers."""
    return Asked(frozenset(statuses), **more)  # type: ignore[arg-type]


def right(name: str, raw: bytes, statuses: Iterable[int], **more: object) -> Case:
    """One request that is answered, whatever else happens."""
    return Case(name, says(raw), (asked(statuses, **more),))


def wrong(name: str, raw: bytes, statuses: Iterable[int] = REFUSALS) -> Case:
    """Bytes that get a refusal, or a closed connection."""
    return Case(name, says(raw), (asked(statuses),), is_certain=False)


def doubtful(name: str, raw: bytes, statuses: Iterable[int]) -> Case:
    """Bytes that a server may take or refuse."""
    return wrong(name, raw, {*statuses, *REFUSALS})


def by_length(name: str, length: int, raw: bytes, statuses: Iterable[int]) -> Case:
    """A request that is answered if it is short, and refused if it is far too long."""
    if len(raw) <= SURE_BYTES:
        return right(f"{name} of {length}", raw, statuses)
    return (wrong if length > OVER_BYTES else doubtful)(
        f"{name} of {length}", raw, REFUSALS if length > OVER_BYTES else statuses
    )


def repeated(piece: bytes, count: int) -> Sent:
    """The same bytes again and again, in larger pieces."""
    at_once = max(1, SENT_BYTES // max(1, len(piece)))
    many = piece * at_once
    for _ in range(count // at_once):
        yield many
    yield piece * (count % at_once)


def cut(raw: bytes, *places: int) -> Sent:
    """The bytes in segments that the server reads one by one."""
    before = 0
    for place in (*places, len(raw)):
        yield raw[before:place]
        if place < len(raw):
            yield Pause()
        before = place


# The start line

KNOWN: Final = (b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS")
FEW_KNOW: Final = (b"PROPFIND", b"PURGE", b"M-SEARCH", b"QUERY", b"TRACE", b"LINK")
UNKNOWN: Final = (b"FOO", b"BREW", b"get", b"G", b"GETS", b"!#$%&'*+-.^_`|~09Az", b"X" * 64)
NO_TOKENS: Final = (b"", b"G@T", b"G\xc9T", b"G\x00T", b"G:T", b"(GET)", b"\x7f")
CUT_METHODS: Final = (b"GET", b"HEAD", b"FOO", b"BREWCOFFEE", b"OPTIONS")
VERSIONS: Final = (b"HTTP/1.2", b"HTTP/2.0", b"HTTP/0.9", b"HTTP/1", b"HTTP/11.1", b"HTTP/1.11", b"http/1.1")
NO_VERSIONS: Final = (
    b"",
    b"HTTP/",
    b"HTTP/a.b",
    b"HTTP/-1.1",
    b"HTTPS/1.1",
    b"HTTP/1.1 HTTP/1.1",
    b"HTTP 1.1",
)


def methods(target: Target) -> Iterator[Case]:
    """Methods that this server, HTTP, or nobody knows."""
    yield right("GET", get(target), {200})
    yield right("HEAD", get(target, start=b"HEAD /health/ HTTP/1.1"), {200}, is_head=True)
    for method in KNOWN:
        raw = get(target, (b"Content-Length", b"0"), start=method + b" /health/ HTTP/1.1")
        yield right(f"{method!r}", raw, NO_METHOD)
    for method in (*FEW_KNOW, *UNKNOWN):
        yield right(f"{method!r}", get(target, start=method + b" /health/ HTTP/1.1"), NO_METHOD)
    for method in NO_TOKENS:
        yield wrong(f"no method {method!r}", get(target, start=method + b" /health/ HTTP/1.1"))
    for length in target.lengths(10 << 20):
        yield wrong(f"a method of {length}", get(target, start=b"X" * length + b" /health/ HTTP/1.1"))
    yield wrong("CONNECT", get(target, start=b"CONNECT shop.example:443 HTTP/1.1"))
    yield wrong("HTTP/2 without asking", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(64))


def cut_methods(target: Target) -> Iterator[Case]:
    """Methods that come in two segments; they get the same answer as in one."""
    for method in CUT_METHODS:
        raw = get(target, start=method + b" /health/ HTTP/1.1")
        statuses = {200} if method in (b"GET", b"HEAD") else NO_METHOD
        for place in range(len(method) + 1):
            case = right(f"{method!r} cut at {place}", raw, statuses, is_head=method == b"HEAD")
            yield case._replace(sent=lambda raw=raw, place=place: cut(raw, place), twin=says(raw))  # type: ignore[misc]
    raw = post(target)
    for place in range(1, len(raw), 1 if target.size.strict else 17):
        case = right(f"a creation cut at {place}", raw, target.keyed(201))
        yield case._replace(sent=lambda place=place: cut(raw, place))  # type: ignore[misc]


def start_lines(target: Target) -> Iterator[Case]:
    """Versions, spaces and ends of lines."""
    for version in VERSIONS:
        yield doubtful(f"version {version!r}", get(target, start=b"GET /health/ " + version), {200})
    for version in NO_VERSIONS:
        yield wrong(f"no version {version!r}", get(target, start=b"GET /health/ " + version))
    for length in target.lengths():
        yield wrong(
            f"a version of {length}", get(target, start=b"GET /health/ HTTP/1." + b"9" * (length + 1))
        )
    yield right("HTTP/1.0", get(target, start=b"GET /health/ HTTP/1.0"), {200}, is_old=True)
    yield right("HTTP/1.0 without Host", b"GET /health/ HTTP/1.0\r\n\r\n", {200}, is_old=True)
    yield wrong("HTTP/0.9", b"GET /health/\r\n")
    yield right("an empty line before it", b"\r\n" + get(target), {200})
    for length in target.lengths(10 << 20):
        yield doubtful(f"{length} empty lines before it", b"\r\n" * length + get(target), {200})
        yield doubtful(
            f"{length} spaces in it", get(target, start=b"GET" + b" " * length + b"/health/ HTTP/1.1"), {200}
        )
    yield doubtful("a tab in it", get(target, start=b"GET\t/health/\tHTTP/1.1"), {200})
    yield doubtful("line feeds alone", get(target).replace(b"\r\n", b"\n"), {200})
    yield doubtful("carriage returns alone", get(target).replace(b"\r\n", b"\r"), {200})
    yield wrong("nothing but spaces", b" " * target.size.count(1 << 20, 1 << 12))
    yield wrong("zeros", bytes(target.size.count(1 << 20, 1 << 12)))
    yield wrong("all bytes", bytes(range(256)) * target.size.count(4096, 16))


# The target

ODD_PATHS: Final = (
    b"/health/%", b"/health/%zz", b"/health/%00", b"/%68ealth/", b"//health/", b"/./health/", b"/x/../health/",
    b"/health/#x", b"/health/?#", b"/health/\xc3\xa9", b"/health/\xff", b"/health/\x01", b"/health/%ff", b"/\\health",
    b"/health/?a=%", b"health/", b"?a", b"/health/;a=b", b"/health/|", b'/health/"', b"/health/<>",
)  # fmt: skip


def targets(target: Target) -> Iterator[Case]:
    """Origin-, absolute-, authority- and asterisk-form."""
    host = target.host.encode()
    origin = says(get(target))
    for form in (b"http://%s", b"HTTP://%s", b"http://user@%s"):
        base = form % host
        case = doubtful if b"@" in form else right
        raw = get(target, start=b"GET %s/health/ HTTP/1.1" % base)
        yield case(f"{form!r}/health/", raw, {200})._replace(twin=origin if case is right else None)
    base = b"http://" + host
    yield right(
        "absolute, with a query", get(target, start=b"GET %s/health/?a=http://b HTTP/1.1" % base), {200}
    )
    yield right("absolute, without a path", get(target, start=b"GET %s HTTP/1.1" % base), {200})
    yield right(
        "absolute, HTTP/1.0", get(target, start=b"GET %s/health/ HTTP/1.0" % base), {200}, is_old=True
    )
    yield right("absolute, unknown path", get(target, start=b"GET %s/nothing/ HTTP/1.1" % base), {404})
    yield right("absolute, HEAD", get(target, start=b"HEAD %s/health/ HTTP/1.1" % base), {200}, is_head=True)
    creation = post(target, start=b"POST %s/v1/orders/ HTTP/1.1" % base)
    yield right("absolute, a creation", creation, target.keyed(201))
    yield from _other_hosts(target, base)
    for form in (
        b"https://%s/health/",
        b"ftp://%s/health/",
        b"http:/%s/health/",
        b"http:///health/",
        b"http://",
        b"://",
    ):
        raw = get(target, start=b"GET %s HTTP/1.1" % form.replace(b"%s", host))
        yield doubtful(f"{form!r}", raw, {200})
    yield doubtful("authority-form", get(target, start=b"GET %s HTTP/1.1" % host), ())
    yield doubtful("asterisk-form", get(target, start=b"OPTIONS * HTTP/1.1"), {200, 204})
    yield doubtful("asterisk-form with GET", get(target, start=b"GET * HTTP/1.1"), ())
    for path in ODD_PATHS:
        yield doubtful(f"path {path!r}", get(target, start=b"GET %s HTTP/1.1" % path), {200, 308})
    for length in target.lengths(10 << 20):
        path = b"/health/?" + b"a" * length
        yield by_length("a query", length, get(target, start=b"GET %s HTTP/1.1" % path), {200})
        path = b"/" + b"a" * length
        yield by_length("a path", length, get(target, start=b"GET %s HTTP/1.1" % path), {404})
        path = b"http://" + b"a" * length
        yield doubtful(f"an authority of {length}", get(target, start=b"GET %s/ HTTP/1.1" % path), {200})


def _other_hosts(target: Target, base: bytes) -> Iterator[Case]:
    """The host of an absolute target replaces that of the header Host."""
    other, their = target._replace(host="other.example"), b"http://other.example"
    raw = get(other, start=b"GET %s/health/ HTTP/1.1" % base)
    yield right("absolute, with another Host", raw, {200})
    created = target.keyed(201)
    raw = post(other, start=b"POST %s/v1/orders/ HTTP/1.1" % base)
    yield right("absolute, a creation with another Host", raw, created)._replace(twin=says(post(target)))
    raw = post(target, start=b"POST %s/v1/orders/ HTTP/1.1" % their)
    case = doubtful("absolute, a creation at another host", raw, created)
    yield case._replace(twin=says(post(other)))


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
    """Their count, length, repetition and form."""
    for line in BROKEN_HEADERS:
        yield wrong(f"header {line!r}", get(target)[:-2] + line + b"\r\n\r\n")
        yield wrong(f"first header {line!r}", b"GET /health/ HTTP/1.1\r\n" + line + get(target)[21:])
    for line in ODD_HEADERS:
        yield doubtful(f"header {line[:40]!r}", get(target)[:-2] + line + b"\r\n\r\n", {200, 401})
    for length in target.lengths(10 << 20):
        yield by_length("a header's name", length, get(target, (b"X" * length, b"y")), {200})
        yield by_length("a header's value", length, get(target, (b"X", b"y" * length)), {200})
        yield doubtful(f"a value of {length} spaces", get(target, (b"X", b" " * length)), {200})
        yield doubtful(f"a value of {length} folds", get(target, (b"X", b"\r\n y" * length)), {200})
    counts = (0, 1, 20, 60, 100, 500, target.size.count(10_000, 1000), target.size.count(1_000_000, 10_000))
    for count in counts:
        for each in (b"X-%d", b"X"):
            names = (each % number if b"%" in each else each for number in range(count))
            raw = get(target, *((name, b"y") for name in names))
            if count <= SURE_HEADERS:
                yield right(f"{count} headers {each!r}", raw, {200})
            else:
                yield by_length(f"{count} headers {each!r}", len(raw), raw, {200})._replace(is_certain=False)
    yield Case("headers without end", lambda: _endless(b"GET /health/ HTTP/1.1\r\n", b"X: y\r\n", target),
               (asked(REFUSALS),), is_certain=False)  # fmt: skip
    yield Case("a header without end", lambda: _endless(b"GET /health/ HTTP/1.1\r\nX: ", b"y", target),
               (asked(REFUSALS),), is_certain=False)  # fmt: skip
    yield wrong("no Host", b"GET /health/ HTTP/1.1\r\n\r\n")
    yield wrong("two Hosts", get(target, (b"Host", b"other.example")))
    for option in (b"close", b"keep-alive", b"Close", b"a, b, close"):
        yield right(f"Connection: {option!r}", get(target, (b"Connection", option)), {200})


def _endless(begun: bytes, piece: bytes, target: Target) -> Sent:
    """Something without an end, until far over every limit."""
    yield begun
    yield from repeated(piece, target.size.count(64 << 20, 1 << 20) // len(piece))


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
    """Offers of protocols, which this server declines."""
    for offer in OFFERS:
        yield right(f"offer {offer[0][1][:20]!r}", get(target, *offer), {200})
        yield right(f"a creation with {offer[0][1][:20]!r}", post(target, *offer), target.keyed(201))
        raw = get(target, *offer) + get(target)
        yield Case(f"{offer[0][1][:20]!r} and another", says(raw), (asked({200}),) * 2)
    for count in (17, 100, 983, 1100, 5000) if target.size.strict else (17, 1100, 3000):
        yield many(f"{count} offers", get(target, *OFFER), count, asked({200}))
    count = target.size.count(2000, 50)
    yield many(f"{count} creations with offers", post(target, *OFFER), count, asked(target.keyed(201)))


def many(name: str, raw: bytes, count: int, each: Asked, ending: Ending = Ending.WAITS) -> Case:
    """The same request again and again, ahead of the answers."""
    return Case(name, lambda: repeated(raw, count), (each,) * count, ending)


def expectations(target: Target) -> Iterator[Case]:
    """``100 Continue``: for HTTP/1.1, and never before the body is refused for certain."""
    wait = Pause(1.0 if target.size.strict else 0.2, until_answer=True)
    begun, created = post(target, EXPECTING, body=ORDER), target.keyed(201)
    at = len(begun) - len(ORDER)
    promise = (1, 1) if target.key is not None else (0, 1)
    waiting = says(begun[:at], wait, begun[at:])
    yield Case("Expect, and wait", waiting, (asked(created, interims=promise),))
    yield Case("Expect, and do not wait", says(begun), (asked(created, interims=(0, 1)),))
    old = post(target, EXPECTING, start=b"POST /v1/orders/ HTTP/1.0")
    yield Case("Expect with HTTP/1.0", says(old[:at], wait, old[at:]), (asked({*created, 417}, is_old=True),))
    chunked = post_chunked(target, EXPECTING)
    yield Case(
        "Expect, and chunks",
        says(chunked, wait, chunk(ORDER) + LAST_CHUNK),
        (asked(created, interims=promise),),
    )
    yield right("Expect without a body", get(target, EXPECTING), {200, 417}, interims=(0, 1))
    yield doubtful("an unknown expectation", post(target, (b"Expect", b"200-ok")), created)
    yield Case("Expect in a pipeline", says(get(target), begun, get(target)),
               (asked({200}), asked(created, interims=(0, 1)), asked({200})))  # fmt: skip
    count = target.size.count(2000, 40)
    yield many(f"{count} times Expect", begun, count, asked(created, interims=(0, 1)))
    for length in (BODY_BYTES_MAX + 1, 9 << 20, (256 << 20) + 2, 1 << 40):
        raw = head(
            b"POST /v1/orders/ HTTP/1.1",
            [*target.headers, JSON, EXPECTING, (b"Content-Length", b"%d" % length)],
        )
        refused = (asked({413, *target.keyed(413)}),)
        yield Case(f"Expect, and a body of {length}", says(raw, wait), refused, answer_seconds=1.0)


# Bodies


def bodies(target: Target) -> Iterator[Case]:
    """Bodies with a length: none, the right one, and wrong ones."""
    created = target.keyed(201)
    for length in (0, 1, 1000, (1 << 16) + 1, BODY_BYTES_MAX - 1, BODY_BYTES_MAX):
        if length <= OVER_BYTES + 1 or target.size.strict:
            yield right(f"{length} spaces", post(target, body=b" " * length), target.keyed(400))
            yield right(
                f"{length} spaces that nobody wants",
                post(target, body=b" " * length, start=b"GET /health/ HTTP/1.1"),
                {200, 400},
            )
    padded = ORDER + b" " * (target.size.count(BODY_BYTES_MAX, 1 << 15) - len(ORDER))
    yield right("an order of the largest size", post(target, body=padded), created)
    for length in (BODY_BYTES_MAX + 1, target.size.count(9 << 20, 2 << 20)):
        raw = post(target, body=b" " * length)
        yield Case(
            f"{length} bytes, too many", says(raw), (asked({413, *target.keyed(413)}),), is_certain=False
        )
    yield right("an order byte by byte", post(target), created)._replace(
        sent=lambda: cut(post(target), *range(len(post(target)) - len(ORDER), len(post(target))))
    )
    raw = post(target)
    for missing in (1, len(ORDER) - 1, len(ORDER)):
        yield wrong(f"a body that is {missing} bytes short", raw[:-missing])._replace(
            ending=Ending.HALF_CLOSES
        )
        yield wrong(f"a body that breaks off {missing} bytes short", raw[:-missing])._replace(
            ending=Ending.RESETS
        )
    more = (asked(created), asked(REFUSALS))
    yield Case("a body longer than it says", says(raw + b"}}}}\r\n\r\n"), more, is_certain=False)


LENGTHS: Final = (b"-1", b"+35", b"0x23", b"35 35", b"35, 35", b"35, 36", b"", b"3 5", b"a", b"35.0", b"9" * 30, b"\xb2",
                  b"18446744073709551651", b"-0", b"9" * 5000)  # fmt: skip
CODINGS: Final = (b"gzip, chunked", b"chunked, chunked", b"xchunked", b"chunked;q=1", b"chunked, gzip", b"identity", b"",
                  b"\x0bchunked", b"chunked,", b"gzip", b"x" * 2000)  # fmt: skip


def framings(target: Target) -> Iterator[Case]:
    """Bodies that are framed in two forms, or in none; what could be taken for a second request is none."""
    base, created = [*target.headers, JSON], target.keyed(201)
    start = b"POST /v1/orders/ HTTP/1.1"
    for length in LENGTHS:
        yield doubtful(
            f"length {length[:30]!r}",
            head(start, [*base, (b"Content-Length", length)]) + ORDER,
            created if length in (b"35, 35",) else (),
        )
    yield right("a length with zeros", head(start, [*base, (b"Content-Length", b"000035")]) + ORDER, created)
    twice = [(b"Content-Length", b"35"), (b"Content-Length", b"35")]
    yield doubtful("the same length twice", head(start, [*base, *twice]) + ORDER, created)
    twice[1] = (b"Content-Length", b"3")
    for pair in (twice, twice[::-1]):
        yield wrong("two lengths", head(start, [*base, *pair]) + ORDER)
    for coding in CODINGS:
        yield wrong(
            f"coding {coding[:30]!r}",
            head(start, [*base, (b"Transfer-Encoding", coding)]) + chunk(ORDER) + LAST_CHUNK,
        )
    yield doubtful(
        "chunked twice", head(start, [*base, CHUNKED, CHUNKED]) + chunk(ORDER) + LAST_CHUNK, created
    )
    yield right(
        "Chunked",
        head(start, [*base, (b"transfer-encoding", b"Chunked")]) + chunk(ORDER) + LAST_CHUNK,
        created,
    )
    hidden = chunk(ORDER) + LAST_CHUNK + get(target)
    for size in (0, 3, len(chunk(ORDER)), len(hidden)):
        both = [CHUNKED, (b"Content-Length", b"%d" % size)]
        for pair in (both, both[::-1]):
            yield doubtful(f"chunked, and length {size}", head(start, [*base, *pair]) + hidden, created)
    yield doubtful(
        "chunked with HTTP/1.0", head(b"POST /v1/orders/ HTTP/1.0", [*base, CHUNKED]) + hidden, created
    )
    yield right("no framing", head(start, base), target.keyed(400, 411))


Production = Callable[[Target], Iterator[Case]]
REQUESTS: Final[Mapping[str, Production]] = {
    "methods": methods,
    "cut": cut_methods,
    "start lines": start_lines,
    "targets": targets,
    "headers": headers,
    "offers": offers,
    "expectations": expectations,
    "bodies": bodies,
    "framings": framings,
}
