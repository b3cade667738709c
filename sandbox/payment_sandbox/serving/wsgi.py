"""Calls a WSGI application, and keeps what it answers."""

import json
import logging
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote_to_bytes

from payment_sandbox.web.carried import CUT_OFF, SENT_HEADERS
from payment_sandbox.web.errors import TYPE_OF_STATUS, error_body

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

REQUEST_BYTES_MAX: Final = (256 << 20) + 1  # a larger one is refused before it is read
RESPONSE: Final = "payment_sandbox.response"  # the key among an ASGI scope's extensions

Headers = list[tuple[str, str]]

log = logging.getLogger(__name__)


class CutOff(Exception):
    """The application cuts the connection, to simulate a broken network."""


class Head(NamedTuple):
    """The status line and headers of a response."""

    status: int
    headers: Headers

    @property
    def has_length(self) -> bool:
        """Whether the response says how long its body is; if not, it is sent piece by piece."""
        return self.status in (204, 304) or any(name.lower() == "content-length" for name, _ in self.headers)


class Answer(NamedTuple):
    """A response that is complete, or cut where the application cut it."""

    head: Head | None
    body: bytes
    is_cut: bool
    close: Callable[[], None]


class Run:
    """One call of a WSGI application; an exception becomes a 500."""

    def __init__(self, application: "WSGIApplication", environ: dict[str, Any]) -> None:
        self.environ = environ
        self.head: Head | None = None
        self.pieces: Iterable[bytes] = ()
        environ[CUT_OFF] = _cut_off
        try:
            self.pieces = application(environ, self._start_response)
        except Exception:
            self._fail()

    def whole(self) -> Answer:
        """The complete response, or what there was before a cut."""
        body: list[bytes] = []
        try:
            body.extend(self.pieces)
        except CutOff:
            return Answer(self.head, b"".join(body), is_cut=True, close=self.close)
        except Exception:
            body = [self._fail()]
        return Answer(self.head, b"".join(body), is_cut=False, close=self.close)

    def close(self) -> None:
        """Tell the application that its response has been sent."""
        close = getattr(self.pieces, "close", None)
        if close is not None:
            try:
                close()
            except Exception:
                log.exception("closing a response failed")

    def _start_response(self, status: str, headers: Headers, error: Any = None) -> Callable[[bytes], object]:
        self.head = Head(int(status[:3]), headers)
        return _no_write

    def _fail(self) -> bytes:
        log.exception("a request could not be answered")
        failed = error(500, "the sandbox failed; see its log")
        self.head, self.pieces = failed.head, (failed.body,)
        return failed.body


def environment(scope: Mapping[str, Any], body: bytes, length: int) -> dict[str, Any]:
    """A request's WSGI environment; ``length`` is that of the whole body, if only a part was kept."""
    server, client = scope["server"] or ("", None), scope["client"] or ("", 0)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(scope["raw_path"]).decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": client[0],
        "REMOTE_PORT": str(client[1]),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "wsgi.input_terminated": True,
        SENT_HEADERS: scope["headers"],
    }
    for name, value in scope["headers"]:
        variable = variable_of(name.decode("latin-1"))
        if variable is None:
            continue
        text = value.decode("latin-1")
        if variable in environ:
            text = f"{environ[variable]}{'; ' if variable == 'HTTP_COOKIE' else ','}{text}"
        environ[variable] = text
    if length or "CONTENT_LENGTH" in environ:
        environ["CONTENT_LENGTH"] = str(length)  # also of a body that came in chunks
    return environ


@lru_cache(maxsize=256)
def variable_of(header: str) -> str | None:
    """The WSGI variable of a header; None if it does not apply, or could be taken for another one."""
    name = header.upper().replace("-", "_")
    if "_" in header or name == "TRANSFER_ENCODING":  # a body is passed on whole
        return None
    return name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{name}"


def error_bytes(status: int, value: str) -> bytes:
    """The body of an error that the application has not seen, in the same shape as its own."""
    return json.dumps(error_body(status, TYPE_OF_STATUS.get(status, "BadRequest"), value)).encode() + b"\n"


def error(status: int, value: str, *, retry: bool = False) -> Answer:
    """An error of the server itself; ``retry`` tells the client to try again soon."""
    body = error_bytes(status, value)
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    headers += [("Retry-After", "1")] if retry else []
    return Answer(Head(HTTPStatus(status), headers), body, is_cut=False, close=_nothing)


def _cut_off() -> None:
    raise CutOff


def _no_write(data: bytes) -> None:
    raise NotImplementedError("the application must return its response")


def _nothing() -> None:
    pass
