"""Calls WSGI applications as a server does (PEP 3333), and shops as if they were not inside the sandbox."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from io import BytesIO
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar
from urllib.parse import SplitResult, quote, unquote_to_bytes, urlsplit
from wsgiref.types import WSGIApplication

from payment_sandbox.serving.binding import port_of
from payment_sandbox.web.call import variable_of

URL_SAFE: Final = "!#$%&'()*+,/:;=?@[]~"

Pairs = Iterable[tuple[str, str]]
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class WsgiHead(NamedTuple):
    """The status line and headers of a response."""

    status: str
    headers: list[tuple[str, str]]

    @property
    def code(self) -> int:
        """The status as a number."""
        return int(self.status.partition(" ")[0])


def outside_flask(run: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Return a function that runs outside of the sandbox's Flask application, for code of the shop.

    The function runs in a copy of the current context, so that what a test relies on stays, without the
    variables of Flask.
    """

    def run_outside(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        context = copy_context()
        context.run(_leave_flask)
        return context.run(run, *arguments, **options)

    return run_outside


def _leave_flask() -> None:
    for variable in copy_context():
        if variable.name.startswith("flask."):
            variable.set(None)


@contextmanager
def open_response(
    application: WSGIApplication, environ: dict[str, Any], on_head: Callable[[WsgiHead], None]
) -> Iterator[Iterator[bytes]]:
    """Yield the chunks of a response body, and close it at the end; ``on_head`` receives the head."""
    written: list[bytes] = []

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        on_head(WsgiHead(status, headers))
        return written.append

    pieces = application(environ, start_response)
    try:
        yield _insert_written(written, pieces)
    finally:
        close = getattr(pieces, "close", None)
        if close is not None:
            close()


def _insert_written(written: list[bytes], pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the application's chunks, with the chunks passed to ``write`` inserted in order."""
    for piece in pieces:
        yield from written
        written.clear()
        yield piece
    yield from written


def host_of(parts: SplitResult) -> str:
    """Return the ``Host`` header for a request to a URL."""
    return parts.netloc.rpartition("@")[2]


def build_environ(method: str, url: str, headers: Pairs, body: bytes) -> dict[str, Any]:
    """Build the WSGI environment for a request (PEP 3333)."""
    parts = urlsplit(url)
    environ = {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(parts.path or "/").decode("latin-1"),
        "QUERY_STRING": quote(parts.query, safe=URL_SAFE),
        "SERVER_NAME": parts.hostname or "",
        "SERVER_PORT": str(port_of(parts)),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": host_of(parts),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": parts.scheme,
        "wsgi.input": BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in headers:
        variable = variable_of(name)
        if variable is not None:
            value.encode("latin-1")
            environ[variable] = value
    return {**environ, "CONTENT_LENGTH": str(len(body))}


def body_of(environ: dict[str, Any]) -> bytes:
    """Read the body of a request; a chunked body has no length, but its stream ends."""
    source = environ["wsgi.input"]
    length = environ.get("CONTENT_LENGTH")
    if environ.get("wsgi.input_terminated") or (not length and isinstance(source, BytesIO)):
        return bytes(source.read())
    return bytes(source.read(int(length))) if length else b""  # reading more could block forever
