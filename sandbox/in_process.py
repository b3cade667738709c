"""Requests without sockets: a test, the sandbox and a merchant's WSGI application in one process."""

import sys
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from json import dumps, loads
from threading import local
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote, urlencode, urlsplit

import requests
from requests.adapters import BaseAdapter, HTTPAdapter
from requests.structures import CaseInsensitiveDict
from werkzeug.datastructures import Headers
from werkzeug.test import run_wsgi_app

from sandbox.orders.deliveries import BODY_KEPT_BYTES, Parcel, Reply
from sandbox.realtime import monotonic_seconds

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

    from sandbox.server import Server

STREAMED: Final = "/control/events/"  # a stream has no end to wait for
NO_PREFIX: Final = ("CONTENT_TYPE", "CONTENT_LENGTH")

Pairs = Iterable[tuple[str, str]]

_delivering = local()


class Direct:
    """Calls a WSGI application as a server would, but for the wire."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application

    def call(self, method: str, url: str, headers: Pairs, body: bytes, **more: Any) -> "Answer":
        """One request, on this thread; ``more`` goes into its environment."""
        environ = {**_environ(method, url, body), **more}
        for name, value in headers:
            key = name.upper().replace("-", "_")
            environ[key if key in NO_PREFIX else f"HTTP_{key}"] = value
        chunks, status, found = run_wsgi_app(self._application, environ, buffered=True)
        return Answer(int(status.partition(" ")[0]), found, b"".join(chunks))


class Answer(NamedTuple):
    """What an application answered; as much of a ``requests.Response`` as the client looks at."""

    status_code: int
    headers: Headers
    content: bytes

    def json(self) -> Any:
        """The body, parsed."""
        return loads(self.content)


def _environ(method: str, url: str, body: bytes) -> dict[str, Any]:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote(parts.path or "/", "latin-1"),
        "QUERY_STRING": parts.query,
        "SERVER_NAME": parts.hostname or "",
        "SERVER_PORT": str(port),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": parts.netloc,
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": parts.scheme,
        "wsgi.input": BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }


class InProcess:
    """The sandbox without sockets; a call returns once the webhooks that it caused are answered."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._direct = Direct(server.app)
        self._host = urlsplit(server.url).netloc

    def send(
        self, method: str, url: str, headers: Iterable[tuple[str, str]], body: bytes, key: str
    ) -> Answer:
        """One call, on this thread, by the project of ``key``."""
        answer = self._direct.call(method, url, headers, body, **{"sandbox.cut_off": _cut_off})
        project = self._server.registry.find(key) if not getattr(_delivering, "is_so", False) else None
        if project is not None and not project.advancing:  # a receiver's own call waits for nobody
            project.outbox.settle()
        return answer


class DirectSession:
    """As much of a ``requests.Session`` as the client needs, at a third of its cost."""

    def __init__(self, server: "Server") -> None:
        self._in_process = InProcess(server)
        self._sockets = requests.Session()
        self._sockets.trust_env = False

    def request(
        self,
        method: str,
        url: str,
        *,
        json: Any = None,
        params: Mapping[str, Any],
        headers: Mapping[str, str],
        auth: tuple[str, str] | None,
        **options: Any,
    ) -> Answer:
        """One call of the API."""
        asked = f"{url}?{urlencode(params, doseq=True)}" if params else url
        sent = [("Content-Type", "application/json"), *headers.items()]
        if auth is not None:
            sent.append(("Authorization", f"Basic {b64encode(':'.join(auth).encode()).decode()}"))
        body = b"" if json is None else dumps(json).encode()
        return self._in_process.send(method, asked, sent, body, auth[0] if auth is not None else "")

    def get(self, url: str, **options: Any) -> requests.Response:
        """A stream, which has no end to wait for, over a socket."""
        return self._sockets.get(url, **options)

    def close(self) -> None:
        """Let go of what streams used."""
        self._sockets.close()


class InProcessAdapter(BaseAdapter):
    """Hands what ``requests`` sends straight to the sandbox."""

    def __init__(self, server: "Server") -> None:
        super().__init__()
        self._in_process = InProcess(server)
        self._sockets = HTTPAdapter()

    def send(self, request: requests.PreparedRequest, *arguments: Any, **options: Any) -> requests.Response:
        """One request, on this thread."""
        url = request.url or ""
        if urlsplit(url).path.startswith(STREAMED):
            return self._sockets.send(request, *arguments, **options)
        headers, body = list(request.headers.items()), _bytes(request.body)
        answer = self._in_process.send(str(request.method), url, headers, body, _key(request))
        return _response(request, answer)

    def close(self) -> None:
        """Let go of what streams used."""
        self._sockets.close()


def _bytes(body: Any) -> bytes:
    """What a request sends: a text, bytes, a file, or one piece after the other."""
    if hasattr(body, "read"):
        body = body.read()
    if body is None or isinstance(body, str):
        return (body or "").encode()
    return bytes(body) if isinstance(body, bytes | bytearray) else b"".join(body)


def _key(request: requests.PreparedRequest) -> str:
    """The API key of a request; empty when it has none."""
    header = str(request.headers.get("Authorization") or "")
    try:
        return b64decode(header.removeprefix("Basic ")).decode().partition(":")[0]
    except ValueError:
        return ""


def session(server: "Server", api_key: str) -> requests.Session:
    """A session whose requests to the sandbox never leave the process, with the key set."""
    made = requests.Session()
    made.trust_env = False
    made.auth = (api_key, "")
    made.mount(server.url, InProcessAdapter(server))
    return made


def sender(application: "WSGIApplication") -> Callable[[Parcel, int], list[Reply]]:
    """Delivers webhooks straight into a WSGI application."""
    direct = Direct(application)

    def send(parcel: Parcel, copies: int) -> list[Reply]:
        return [_delivered(direct, parcel) for _ in range(copies)]

    return send


def _delivered(direct: Direct, parcel: Parcel) -> Reply:
    begun_seconds = monotonic_seconds()
    _delivering.is_so = True
    try:
        answer = direct.call("POST", parcel.url, parcel.headers.items(), parcel.body)
    except Exception as error:  # whatever a merchant's application does, it is a failed delivery
        return Reply(_passed_ms(begun_seconds), error=f"{type(error).__name__}: {error}"[:500])
    finally:
        _delivering.is_so = False
    shown = answer.content[:BODY_KEPT_BYTES].decode(errors="replace")
    return Reply(_passed_ms(begun_seconds), answer.status_code, shown)


def _passed_ms(begun_seconds: float) -> float:
    return (monotonic_seconds() - begun_seconds) * 1000


def _cut_off() -> None:
    raise requests.ConnectionError("the connection was cut off, as a fault asked")


def _response(request: requests.PreparedRequest, answer: Answer) -> requests.Response:
    response = requests.Response()
    response.status_code = answer.status_code
    response.headers = CaseInsensitiveDict(answer.headers.items())
    response.encoding = "utf-8"
    response.raw = BytesIO(answer.content)
    response._content = answer.content
    response.request = request
    response.url = request.url or ""
    return response
