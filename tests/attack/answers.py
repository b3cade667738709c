"""A strict parser of HTTP responses: status lines, headers, framing and the shape of errors (RFC 9112)."""

import json
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

STATUS_LINE: Final = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2}) [\t\x20-\x7e\x80-\xff]*")
HEADER: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)")
LENGTH: Final = re.compile(rb"[0-9]+")
CHUNK: Final = re.compile(rb"([0-9A-Fa-f]{1,16})(?:;[^\r\n]*)?\r\n")
HEAD_BYTES_MAX: Final = 1 << 16
BODILESS: Final = (204, 304)


class ExpectedResponse(NamedTuple):
    """The permitted answers to one request."""

    statuses: frozenset[int]
    is_head: bool = False
    is_http10: bool = False  # HTTP/1.0 has neither chunks nor interim answers
    interims: tuple[int, int] = (0, 0)  # minimum and maximum number of interim answers


class Answer(NamedTuple):
    """A final answer."""

    status: int
    headers: dict[bytes, bytes]  # with lower-case names
    body: bytes
    is_http10: bool = False  # HTTP/1.0

    @property
    def closes(self) -> bool:
        """Whether the server announces that it closes the connection after this answer."""
        return closes(self.headers, self.is_http10)


def closes(headers: dict[bytes, bytes], is_http10: bool) -> bool:
    """Return whether these headers close the connection; without ``Connection``, the HTTP version decides."""
    return b"close" in headers.get(b"connection", b"close" if is_http10 else b"").lower()


class Head(NamedTuple):
    """A status line and headers."""

    status: int
    headers: dict[bytes, bytes]
    is_http10: bool


class Malformed(Exception):
    """The received bytes are not a valid response."""


class Reader:
    """Parses the answers to some requests, in order, from pieces of any length."""

    def __init__(self, expected: Sequence[ExpectedResponse]) -> None:
        self.answers: list[Answer] = []
        self.interims = [0] * (len(expected) + 1)
        self.problems: list[str] = []
        self._expected = expected
        self._unread = bytearray()
        self._ignores_rest = False

    @property
    def is_complete(self) -> bool:
        """Whether each request is answered, or no further answer can follow."""
        is_last = bool(self.answers) and self.answers[-1].closes
        return is_last or len(self.answers) >= len(self._expected) or bool(self.problems)

    def feed(self, data: bytes) -> None:
        """Parse received bytes."""
        if self._ignores_rest:
            return
        self._unread += data
        self._read(is_over=False)

    def end(self, *, is_reset: bool = False) -> None:
        """Note the end of the connection; a reset may cut a response."""
        self._read(is_over=True)
        if self._unread and not self.problems and not is_reset:
            self._note(f"the connection ended within a response: {self._excerpt}")

    @property
    def _excerpt(self) -> str:
        return repr(bytes(self._unread[:120]))

    def _note(self, problem: str) -> None:
        self.problems.append(problem)

    def _read(self, *, is_over: bool) -> None:
        try:
            while self._unread and not self.problems:
                if not self._read_response(is_over):
                    return
        except Malformed as malformed:
            self._note(f"{malformed}: {self._excerpt}")

    def _read_response(self, is_over: bool) -> bool:
        """Parse one response; return False if it is incomplete."""
        end = self._unread.find(b"\r\n\r\n")
        if end < 0:
            if len(self._unread) > HEAD_BYTES_MAX:
                raise Malformed("a head does not end")
            return False
        head = parse_head(bytes(self._unread[:end]))
        number = len(self.answers)
        if head.status < 200:
            if head.status != 100:
                raise Malformed("an interim answer other than 100")
            self.interims[min(number, len(self._expected))] += 1
            del self._unread[: end + 4]
            return True
        expected = self._expected[number] if number < len(self._expected) else ExpectedResponse(frozenset())
        parsed = self._parse_body(head, expected, end + 4, is_over)
        if parsed is None:
            return False
        body, length = parsed
        self.answers.append(Answer(head.status, head.headers, body, head.is_http10))
        del self._unread[:length]
        return True

    def _parse_body(
        self, head: Head, expected: ExpectedResponse, at: int, is_over: bool
    ) -> tuple[bytes, int] | None:
        """Return the body that begins at ``at``, and the end of the body; None if it is incomplete."""
        coding, length = head.headers.get(b"transfer-encoding"), head.headers.get(b"content-length")
        if coding is not None and (length is not None or coding.lower() != b"chunked" or expected.is_http10):
            raise Malformed("two framings, or a framing that the client does not support")
        if expected.is_head and head.status >= 400 and closes(head.headers, head.is_http10):
            self._ignores_rest = True  # refused before the method was parsed, so a body may follow
            return b"", len(self._unread)
        if expected.is_head or head.status in BODILESS:
            return b"", at
        if coding is not None:
            return parse_chunks(self._unread, at)
        if length is None:
            return (bytes(self._unread[at:]), len(self._unread)) if is_over else None
        if LENGTH.fullmatch(length) is None:
            raise Malformed("a Content-Length that is not a number")
        end = at + int(length)
        return (bytes(self._unread[at:end]), end) if len(self._unread) >= end else None


def parse_head(head: bytes) -> Head:
    """Parse the status and headers of a response.

    Raises:
        Malformed: a line is invalid, or a framing header is repeated.
    """
    first, *lines = head.split(b"\r\n")
    status = STATUS_LINE.fullmatch(first)
    if status is None:
        raise Malformed("invalid status line")
    headers: dict[bytes, bytes] = {}
    for line in lines:
        header = HEADER.fullmatch(line)
        if header is None:
            raise Malformed(f"invalid header: {line[:80]!r}")
        name = header[1].lower()
        if name in headers and name in (b"content-length", b"transfer-encoding"):
            raise Malformed(f"{name!r} twice")
        headers[name] = header[2].rstrip()
    return Head(int(status[1]), headers, first.startswith(b"HTTP/1.0"))


def parse_chunks(data: bytearray, at: int) -> tuple[bytes, int] | None:
    """Return the body in the chunks from ``at`` on, and the end of the last chunk; None if incomplete.

    Raises:
        Malformed: a chunk has no size, or a length other than the declared size.
    """
    body = bytearray()
    while True:
        size = CHUNK.match(data, at)
        if size is None:
            if len(data) > at + 20 or b"\n" in data[at:]:
                raise Malformed("a chunk without a size")
            return None
        begin, length = size.end(), int(size[1], 16)
        at = begin + length + 2
        if len(data) < at:
            return None
        if data[at - 2 : at] != b"\r\n":
            raise Malformed("a chunk whose length differs from its size, or unrequested trailers")
        if not length:
            return bytes(body), at
        body += data[begin : begin + length]


def error_problem(answer: Answer, expected: ExpectedResponse) -> str | None:
    """Return the problem with the shape of an error answer; None if it is correct or not an error."""
    if answer.status < 400 or expected.is_head:
        return None
    if not answer.headers.get(b"content-type", b"").startswith(b"application/json"):
        return f"{answer.status} is not JSON: {answer.body[:80]!r}"
    try:
        error = json.loads(answer.body)["error"]
        is_right = error["status"] == answer.status and {"type", "value", "violations"} <= error.keys()
    except (ValueError, KeyError, TypeError):
        is_right = False
    return None if is_right else f"{answer.status} does not have the shape of an error: {answer.body[:80]!r}"
