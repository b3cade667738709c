"""Calls a WSGI application, and buffers its response."""

import json
import logging
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from urllib.parse import unquote_to_bytes

from payment_sandbox.web.call import Call, ClientConnection, ConnectionCut
from payment_sandbox.web.errors import TYPE_BY_STATUS, error_body

if TYPE_CHECKING:
    from aiohttp import web

Headers = list[tuple[str, str]]

log = logging.getLogger(__name__)


class Application(Protocol):
    """A WSGI application that decides where each call should run."""

    def place(self, environ: dict[str, Any], length: int, line: ClientConnection) -> Call:
        """Create the call for a request, and decide where it runs; ``length`` is the length of its body."""
        ...

    def answer(self, call: Call, start_response: Any) -> Iterable[bytes]:
        """Answer a call, as in PEP 3333."""
        ...


class ResponseHead(NamedTuple):
    """The status line and headers of a response."""

    status: int
    headers: Headers

    @property
    def has_length(self) -> bool:
        """Whether the response states the length of its body; if not, it is streamed."""
        return self.status in (204, 304) or "content-length" in [name.lower() for name, _ in self.headers]


class BufferedResponse(NamedTuple):
    """A complete response, or a response cut by the application."""

    head: ResponseHead | None
    body: bytes
    is_cut: bool


class Run:
    """The execution of a call by the application; an exception becomes a 500."""

    def __init__(self, application: Application, call: Call) -> None:
        self.call = call
        self.head: ResponseHead | None = None
        self.pieces: Iterable[bytes] = ()
        try:
            self.pieces = application.answer(call, self._start_response)
        except Exception:
            self._fail()
        self.answer = self._buffer_response()

    def _buffer_response(self) -> BufferedResponse | None:
        """Return the complete response, or the part before a cut; None if it is streamed."""
        if self.head is not None and not self.head.has_length:
            return None
        body: list[bytes] = []
        try:
            body.extend(self.pieces)
        except ConnectionCut:
            return BufferedResponse(self.head, b"".join(body), is_cut=True)
        except Exception:
            body = [self._fail()]
        return BufferedResponse(self.head, b"".join(body), is_cut=False)

    def close(self) -> None:
        """Close the sent response, as required by PEP 3333."""
        close = getattr(self.pieces, "close", None)
        if close is not None:
            try:
                close()
            except Exception:
                log.exception("closing a response failed")

    def _start_response(self, status: str, headers: Headers, error: Any = None) -> Callable[[bytes], object]:
        self.head = ResponseHead(int(status[:3]), headers)
        return _no_write

    def _fail(self) -> bytes:
        log.exception("a request could not be answered")
        failed = error(500, "the sandbox failed; see its log")
        self.head, self.pieces = failed.head, (failed.body,)
        return failed.body


CONSTANT_ENVIRONMENT: Final[Mapping[str, Any]] = {
    "SCRIPT_NAME": "",
    "wsgi.version": (1, 0),
    "wsgi.multithread": True,
    "wsgi.multiprocess": False,
    "wsgi.run_once": False,
    "wsgi.input_terminated": True,
}


def environment(http: "web.BaseRequest", body: BytesIO, length: int) -> dict[str, Any]:
    """Build a request's WSGI environment; ``length`` is the length of its body, which may be truncated."""
    target = http.raw_path if http.raw_path[0] == "/" else http.rel_url.raw_path_qs  # as proxies send it
    path, _, query = target.encode(errors="surrogateescape").partition(b"?")
    server, client = (http.get_extra_info(end) or ("", 0) for end in ("sockname", "peername"))
    environ: dict[str, Any] = {
        **CONSTANT_ENVIRONMENT,
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
        "REMOTE_ADDR": client[0],
        "wsgi.url_scheme": http.scheme,
        "REQUEST_METHOD": http.method,
        "PATH_INFO": (unquote_to_bytes(path) if b"%" in path else path).decode("latin-1"),
        "QUERY_STRING": query.decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{http.version.major}.{http.version.minor}",
        "wsgi.input": body,
        "wsgi.errors": sys.stderr,
    }
    _add_headers(environ, http.raw_headers)
    if length or "CONTENT_LENGTH" in environ:
        environ["CONTENT_LENGTH"] = str(length)  # even for a chunked body
    return environ


def _add_headers(environ: dict[str, Any], headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Add the headers, with the values of repeated ones joined."""
    for name, value in headers:
        variable = variable_of(name.decode("latin-1"))
        if variable is None:
            continue
        text = value.decode("latin-1")
        if variable in environ:
            text = f"{environ[variable]}{'; ' if variable == 'HTTP_COOKIE' else ','}{text}"
        environ[variable] = text


@lru_cache(maxsize=256)
def variable_of(header: str) -> str | None:
    """Return the WSGI variable of a header; None if the header has no variable of its own."""
    name = header.upper().replace("-", "_")
    if "_" in header or name == "TRANSFER_ENCODING":  # the body is already decoded
        return None
    return name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{name}"


def error(status: int, value: str, *, retry: bool = False) -> BufferedResponse:
    """Build an error of the server itself; ``retry`` tells the client to retry soon."""
    body = json.dumps(error_body(status, TYPE_BY_STATUS.get(status, "BadRequest"), value)).encode() + b"\n"
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    headers += [("Retry-After", "1")] if retry else []
    return BufferedResponse(ResponseHead(HTTPStatus(status), headers), body, is_cut=False)


def _no_write(data: bytes) -> None:
    raise NotImplementedError("the application must return its response")
