"""Strict reading of what a server sends: status lines, headers, framing and the shape of errors (RFC 9112)."""

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


class Asked(NamedTuple):
    """One request, and the answers that it may get."""

    statuses: frozenset[int]
    is_head: bool = False
    is_old: bool = False  # HTTP/1.0, which knows neither chunks nor interim answers
    interims: tuple[int, int] = (0, 0)  # how many there must be, and may be


class Answer(NamedTuple):
    """One final answer."""

    status: int
    headers: dict[bytes, bytes]  # with lower-case names
    body: bytes
    is_old: bool = False  # HTTP/1.0

    @property
    def closes(self) -> bool:
        """Whether the server says that the connection ends with this answer."""
        return closes(self.headers, self.is_old)


def closes(headers: dict[bytes, bytes], is_old: bool) -> bool:
    """Whether a connection ends with a response of these headers, by its version if they say nothing."""
    return b"close" in headers.get(b"connection", b"close" if is_old else b"").lower()


class Head(NamedTuple):
    """A status line and headers."""

    status: int
    headers: dict[bytes, bytes]
    is_old: bool


class Malformed(Exception):
    """What was read is no response."""


class Reader:
    """Reads the answers to some requests, in order, from pieces of any length."""

    def __init__(self, asked: Sequence[Asked]) -> None:
        self.answers: list[Answer] = []
        self.interims = [0] * (len(asked) + 1)
        self.problems: list[str] = []
        self._asked = asked
        self._unread = bytearray()
        self._is_deaf = False

    @property
    def is_complete(self) -> bool:
        """Whether each request is answered, or no other answer will come."""
        is_last = bool(self.answers) and self.answers[-1].closes
        return is_last or len(self.answers) >= len(self._asked) or bool(self.problems)

    def feed(self, data: bytes) -> None:
        """Read what came."""
        if self._is_deaf:
            return
        self._unread += data
        self._read(is_over=False)

    def end(self, *, is_reset: bool = False) -> None:
        """Note the end of the connection; a reset may cut a response."""
        self._read(is_over=True)
        if self._unread and not self.problems and not is_reset:
            self._note(f"the connection ended within a response: {self._shown}")

    @property
    def _shown(self) -> str:
        return repr(bytes(self._unread[:120]))

    def _note(self, problem: str) -> None:
        self.problems.append(problem)

    def _read(self, *, is_over: bool) -> None:
        try:
            while self._unread and not self.problems:
                if not self._read_one(is_over):
                    return
        except Malformed as malformed:
            self._note(f"{malformed}: {self._shown}")

    def _read_one(self, is_over: bool) -> bool:
        """Read one response, if it is whole."""
        end = self._unread.find(b"\r\n\r\n")
        if end < 0:
            if len(self._unread) > HEAD_BYTES_MAX:
                raise Malformed("a head does not end")
            return False
        head = head_of(bytes(self._unread[:end]))
        number = len(self.answers)
        if head.status < 200:
            if head.status != 100:
                raise Malformed("an interim answer other than 100")
            self.interims[min(number, len(self._asked))] += 1
            del self._unread[: end + 4]
            return True
        asked = self._asked[number] if number < len(self._asked) else Asked(frozenset())
        framed = self._framed(head, asked, end + 4, is_over)
        if framed is None:
            return False
        body, length = framed
        self.answers.append(Answer(head.status, head.headers, body, head.is_old))
        del self._unread[:length]
        return True

    def _framed(self, head: Head, asked: Asked, at: int, is_over: bool) -> tuple[bytes, int] | None:
        """The body of a response whose head ends at ``at``, and where it ends; None: it is not whole."""
        coding, length = head.headers.get(b"transfer-encoding"), head.headers.get(b"content-length")
        if coding is not None and (length is not None or coding.lower() != b"chunked" or asked.is_old):
            raise Malformed("framed in two forms, or in one that the client does not know")
        if asked.is_head and head.status >= 400 and closes(head.headers, head.is_old):
            self._is_deaf = True  # refused before the server could know it as HEAD: a body may follow
            return b"", len(self._unread)
        if asked.is_head or head.status in BODILESS:
            return b"", at
        if coding is not None:
            return chunks_of(self._unread, at)
        if length is None:
            return (bytes(self._unread[at:]), len(self._unread)) if is_over else None
        if LENGTH.fullmatch(length) is None:
            raise Malformed("a Content-Length that is no number")
        end = at + int(length)
        return (bytes(self._unread[at:end]), end) if len(self._unread) >= end else None


def head_of(head: bytes) -> Head:
    """The status and headers of a response.

    Raises:
        Malformed: a line is none, or a header that frames the body comes twice.
    """
    first, *lines = head.split(b"\r\n")
    status = STATUS_LINE.fullmatch(first)
    if status is None:
        raise Malformed("no status line")
    headers: dict[bytes, bytes] = {}
    for line in lines:
        header = HEADER.fullmatch(line)
        if header is None:
            raise Malformed(f"no header: {line[:80]!r}")
        name = header[1].lower()
        if name in headers and name in (b"content-length", b"transfer-encoding"):
            raise Malformed(f"{name!r} twice")
        headers[name] = header[2].rstrip()
    return Head(int(status[1]), headers, first.startswith(b"HTTP/1.0"))


def chunks_of(data: bytearray, at: int) -> tuple[bytes, int] | None:
    """The body in the chunks that begin at ``at``, and where they end; None: the last one has not come.

    Raises:
        Malformed: a chunk has no size, or another length than it says.
    """
    body = bytearray()
    while True:
        size = CHUNK.match(data, at)
        if size is None:
            if len(data) > at + 20 or b"\n" in data[at:]:
                raise Malformed("a chunk without its size")
            return None
        begin, length = size.end(), int(size[1], 16)
        at = begin + length + 2
        if len(data) < at:
            return None
        if data[at - 2 : at] != b"\r\n":
            raise Malformed("a chunk of another length than it says, or trailers that nobody asked for")
        if not length:
            return bytes(body), at
        body += data[begin : begin + length]


def error_problem(answer: Answer, asked: Asked) -> str | None:
    """What is wrong with the shape of an error, if it is one and anything is."""
    if answer.status < 400 or asked.is_head:
        return None
    if not answer.headers.get(b"content-type", b"").startswith(b"application/json"):
        return f"{answer.status} is not in JSON: {answer.body[:80]!r}"
    try:
        error = json.loads(answer.body)["error"]
        is_right = error["status"] == answer.status and {"type", "value", "violations"} <= error.keys()
    except (ValueError, KeyError, TypeError):
        is_right = False
    return None if is_right else f"{answer.status} is in another shape than errors: {answer.body[:80]!r}"
