"""A replacement for a connected socket; the sandbox answers HTTP/1.1 requests written to it.

With it, ``http.client`` and the libraries built on it (urllib3, requests, urllib.request) retry, redirect,
time out and stream as usual.
"""

from collections.abc import Callable, Iterator
from errno import ECONNRESET
from http.client import HTTPMessage, parse_headers
from io import BufferedReader, BytesIO, RawIOBase
from typing import Any, Final, Protocol

from payment_sandbox.testing.clients.in_process import CutOff, ResponseTimeout, SandboxResponse
from payment_sandbox.testing.environments import Pairs
from payment_sandbox.web.answers.page_urls import is_stream
from payment_sandbox.web.auth import parse_api_key

HEAD_END: Final = b"\r\n\r\n"
FRAMING_HEADERS: Final = frozenset({"transfer-encoding", "connection", "content-length"})
STATUSES_WITHOUT_BODY: Final = (204, 304)


class Target(Protocol):
    """Answers requests; a target is a path with its query, or a whole URL."""

    def send(
        self, method: str, target: str, headers: Pairs, body: bytes, key: str, timeout_seconds: float | None
    ) -> SandboxResponse:
        """Answer one request."""
        ...


class MemorySocket:
    """The part of ``socket.socket`` that ``http.client`` and urllib3 use, for one request."""

    def __init__(self, target: Target, timeout: Any = None) -> None:
        self._target = target
        self._sent = bytearray()
        self._timeout = timeout

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Append to the request."""
        self._sent += data

    def makefile(self, mode: str = "rb", *arguments: Any, **options: Any) -> BufferedReader:
        """Return the response to the request."""
        request = bytes(self._sent)
        self._sent.clear()
        return BufferedReader(_Response(lambda: self._answer(request)))

    def settimeout(self, timeout: float | None) -> None:
        """Set the timeout for the response."""
        self._timeout = timeout

    def gettimeout(self) -> float | None:
        """Return the timeout for the response."""
        return self._timeout if isinstance(self._timeout, int | float) else None

    def setsockopt(self, *arguments: Any) -> None:
        """Do nothing."""

    def shutdown(self, how: int) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def _answer(self, request: bytes) -> bytes:
        """Return the response as bytes, truncated if a fault cuts the connection.

        Raises:
            TimeoutError: the response took longer than the timeout.
            ConnectionResetError: a fault cut the connection before the response.
            OSError: the response is an endless stream.
        """
        method, target, headers, body = _parse_request(request)
        if is_stream(target.partition("?")[0]):
            raise OSError(f"{target} is a stream, which needs a socket: use base_url with another client")
        key = parse_api_key(headers.get("Authorization")) or ""
        try:
            answer = self._target.send(method, target, headers.items(), body, key, self.gettimeout())
        except ResponseTimeout as late:
            raise TimeoutError(str(late)) from None
        except CutOff as cut:
            if cut.partial is None:
                raise ConnectionResetError(ECONNRESET, "a fault cut the connection") from None
            return _serialize(cut.partial, is_complete=False)
        return _serialize(answer, is_complete=True, has_body=method != "HEAD")


class _Response(RawIOBase):
    """The bytes of a response, created on the first read."""

    def __init__(self, answer: Callable[[], bytes]) -> None:
        super().__init__()
        self._answer = answer
        self._bytes: BytesIO | None = None

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer."""
        if self._bytes is None:
            self._bytes = BytesIO(self._answer())
        return self._bytes.readinto(buffer)


def _parse_request(request: bytes) -> tuple[str, str, HTTPMessage, bytes]:
    raw = BytesIO(request)
    method, target, _ = raw.readline().decode("latin-1").split(" ", 2)
    headers = parse_headers(raw)
    rest = raw.read()
    is_chunked = headers.get("Transfer-Encoding", "").lower() == "chunked"
    return method, target, headers, b"".join(_read_chunks(rest)) if is_chunked else rest


def _read_chunks(body: bytes) -> Iterator[bytes]:
    raw = BytesIO(body)
    while size := int(raw.readline().partition(b";")[0], 16):
        yield raw.read(size)
        raw.readline()


def _serialize(answer: SandboxResponse, *, is_complete: bool, has_body: bool = True) -> bytes:
    lines = [f"HTTP/1.1 {answer.status_code} {answer.reason_phrase}"]
    framing = (
        FRAMING_HEADERS if has_body else FRAMING_HEADERS - {"content-length"}
    )  # the length of the omitted body
    lines += [f"{name}: {value}" for name, value in answer.headers if name.lower() not in framing]
    if answer.status_code not in STATUSES_WITHOUT_BODY and has_body:
        lines.append(f"Content-Length: {len(answer.content) + (not is_complete)}")
    lines.append("Connection: close")
    head = "\r\n".join(lines).encode("latin-1") + HEAD_END
    return head + answer.content if has_body else head
