"""Reads the responses on one connection, and the shape of errors; aiohttp writes the responses."""

import json
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

HEAD_END: Final = b"\r\n\r\n"
CHUNK: Final = re.compile(rb"([0-9A-Fa-f]+)\r\n")
BODILESS: Final = (204, 304)


class ExpectedResponse(NamedTuple):
    """The permitted answers to one request."""

    statuses: frozenset[int]
    interims: tuple[int, int] = (0, 0)  # minimum and maximum number of interim answers


class Answer(NamedTuple):
    """A final answer."""

    status: int
    headers: dict[bytes, bytes]  # with lower-case names
    body: bytes

    @property
    def closes(self) -> bool:
        """Whether the server announces that it closes the connection after this answer."""
        return self.headers.get(b"connection", b"").lower() == b"close"


class Reader:
    """Reads the answers to some requests, in order, from pieces of any length."""

    def __init__(self, expected: Sequence[ExpectedResponse]) -> None:
        self.answers: list[Answer] = []
        self.interims = [0] * (len(expected) + 1)
        self.problems: list[str] = []
        self._expected = expected
        self._unread = bytearray()

    @property
    def is_complete(self) -> bool:
        """Whether each request is answered, or no further answer can follow."""
        is_last = bool(self.answers) and self.answers[-1].closes
        return is_last or len(self.answers) >= len(self._expected) or bool(self.problems)

    def feed(self, data: bytes) -> None:
        """Read received bytes."""
        self._unread += data
        try:
            while self._unread and not self.problems and self._read_response():
                pass
        except (ValueError, IndexError) as malformed:
            self.problems.append(f"a malformed response, {malformed}: {bytes(self._unread[:120])!r}")

    def end(self, *, is_reset: bool = False) -> None:
        """Note the end of the connection; a reset may cut a response."""
        if self._unread and not self.problems and not is_reset:
            self.problems.append(f"the connection ended within a response: {bytes(self._unread[:120])!r}")

    def _read_response(self) -> bool:
        """Read one response; return False if it is incomplete."""
        at = self._unread.find(HEAD_END)
        if at < 0:
            return False
        first, *lines = bytes(self._unread[:at]).split(b"\r\n")
        version, status = first[:8], int(first[9:12])
        if status < 200:
            self.interims[min(len(self.answers), len(self._expected))] += 1
            del self._unread[: at + len(HEAD_END)]
            return True
        pairs = (line.split(b":", 1) for line in lines)
        headers = {b"connection": b"close"} if version == b"HTTP/1.0" else {}
        headers |= {pair[0].lower(): pair[1].strip() for pair in pairs}
        read = self._read_body(status, headers, at + len(HEAD_END))
        if read is None:
            return False
        body, end = read
        self.answers.append(Answer(status, headers, body))
        del self._unread[:end]
        return True

    def _read_body(self, status: int, headers: dict[bytes, bytes], at: int) -> tuple[bytes, int] | None:
        """Return the body that begins at ``at``, and its end; None if it is incomplete."""
        if status in BODILESS:
            return b"", at
        if headers.get(b"transfer-encoding") == b"chunked":
            return _read_chunks(self._unread, at)
        end = at + int(headers[b"content-length"]) if b"content-length" in headers else -1
        if end < 0:
            raise ValueError("without a length")
        return (bytes(self._unread[at:end]), end) if len(self._unread) >= end else None


def _read_chunks(data: bytearray, at: int) -> tuple[bytes, int] | None:
    """Return the body in the chunks from ``at`` on, and the end of the last chunk; None if incomplete."""
    body = bytearray()
    while (size := CHUNK.match(data, at)) is not None:
        begin, length = size.end(), int(size[1], 16)
        at = begin + length + 2
        if len(data) < at:
            return None
        if not length:
            return bytes(body), at
        body += data[begin : begin + length]
    return None


def error_problem(answer: Answer) -> str | None:
    """Return the problem with the shape of an error answer; None if it is correct or not an error."""
    if answer.status < 400:
        return None
    if not answer.headers.get(b"content-type", b"").startswith(b"application/json"):
        return f"{answer.status} is not JSON: {answer.body[:80]!r}"
    try:
        error = json.loads(answer.body)["error"]
        is_right = error["status"] == answer.status and {"type", "value", "violations"} <= error.keys()
    except (ValueError, KeyError, TypeError):
        is_right = False
    return None if is_right else f"{answer.status} does not have the shape of an error: {answer.body[:80]!r}"
