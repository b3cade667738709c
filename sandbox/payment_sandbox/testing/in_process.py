"""Requests without sockets: a test and the sandbox in one process."""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import nullcontext
from http.client import HTTPMessage
from io import BytesIO
from json import dumps, loads
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode, urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse, Timeout

from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox.serving.sessions import direct_session
from payment_sandbox.testing.merchant_app import Receiver
from payment_sandbox.testing.wsgi import Head, Pairs, environment, opened
from payment_sandbox.web.carried import CUT_OFF
from payment_sandbox.web.paths import is_stream

if TYPE_CHECKING:
    from payment_sandbox.projects.project import Project
    from payment_sandbox.serving.server import Server

SETTLE_SECONDS: Final = (
    10.0  # how long a call waits for the webhooks that it triggers, directly or indirectly
)


class CutOff(Exception):
    """A fault cut the connection; ``has_begun`` is set if part of the response had arrived."""

    has_begun = False


class Answer(NamedTuple):
    """An application's response, with the parts of ``requests.Response`` that the client uses."""

    status_code: int
    reason: str
    headers: Pairs
    content: bytes

    def json(self) -> Any:
        """Return the parsed body."""
        return loads(self.content)


class InProcess:
    """The sandbox without sockets; a call returns once the webhooks it triggered are answered."""

    def __init__(self, server: "Server") -> None:
        self._server = server

    def send(
        self, method: str, url: str, headers: Pairs, body: bytes, key: str, timeout_seconds: float | None
    ) -> Answer:
        """Make one call, on this thread, as the project of ``key``.

        Raises:
            requests.RequestException: as over the network, if a fault cuts or delays the call.
        """
        project = self._server.registry.find(key)
        waits = _waits(self._server, project)
        cut: CutOff | None = None
        begun_seconds, answer, is_settled = monotonic_seconds(), None, True
        with self._server.services.courier.waiting() if waits else nullcontext():
            try:
                answer = self._answer(environment(method, url, headers, body))
            except CutOff as broken:
                cut = broken
            taken_seconds = monotonic_seconds() - begun_seconds
            if project is not None and waits and not project.epoch.is_advancing:
                is_settled = project.settle(SETTLE_SECONDS)
        if timeout_seconds is not None and taken_seconds > timeout_seconds:
            raise requests.ReadTimeout(f"no answer within {timeout_seconds:g} seconds")
        if answer is None:
            raise _broken(cut)
        return answer if is_settled else _with_warning(answer, project)

    def _answer(self, environ: dict[str, Any]) -> Answer:
        heads: list[Head] = []
        found: list[bytes] = []
        with opened(self._server.app, {**environ, CUT_OFF: _cut_off}, heads.append) as pieces:
            try:
                found.extend(pieces)
            except CutOff as cut:
                cut.has_begun = any(found)
                raise
        head = heads[-1]
        return Answer(head.code, head.status.partition(" ")[2], head.headers, b"".join(found))


def _broken(cut: CutOff | None) -> requests.RequestException:
    """The exception that requests raises for a connection cut by a fault."""
    if cut is not None and cut.has_begun:
        return requests.exceptions.ChunkedEncodingError("a fault cut the response off in the middle")
    return requests.ConnectionError("a fault cut the connection")


def _with_warning(answer: Answer, project: "Project | None") -> Answer:
    """The response, with a header that lists the webhooks still unanswered."""
    pending = project.epoch.outbox.pending() if project is not None else []
    warning = f"webhooks are still unanswered after {SETTLE_SECONDS:g} seconds: {', '.join(pending[:10])}"
    return answer._replace(headers=[*answer.headers, ("Sandbox-Warnings", warning)])


def _cut_off() -> None:
    raise CutOff


class DirectSession:
    """The parts of ``requests.Session`` that the client needs, at a third of the cost."""

    def __init__(self, server: "Server") -> None:
        self._in_process = InProcess(server)
        self._sockets = direct_session()

    def request(
        self,
        method: str,
        url: str,
        *,
        json: Any = None,
        data: bytes | None = None,
        params: Mapping[str, Any],
        headers: Mapping[str, str],
        auth: tuple[str, str] | None,
        timeout: float,
        **options: Any,
    ) -> Answer:
        """Make one API call."""
        asked = f"{url}?{urlencode(params, doseq=True)}" if params else url
        sent = list({"Content-Type": "application/json", **headers}.items())
        if auth is not None:
            sent.append(("Authorization", f"Basic {b64encode(':'.join(auth).encode()).decode()}"))
        body = data or (b"" if json is None else dumps(json).encode())
        key = auth[0] if auth is not None else ""
        return self._in_process.send(method, asked, sent, body, key, timeout)

    def get(self, url: str, **options: Any) -> requests.Response:
        """Open a stream, which never ends, over a socket."""
        return self._sockets.get(url, **options)

    def close(self) -> None:
        """Close the connections that streams used."""
        self._sockets.close()


class InProcessAdapter(HTTPAdapter):
    """Passes what ``requests`` sends straight to the sandbox."""

    def __init__(self, server: "Server") -> None:
        super().__init__()
        self._in_process = InProcess(server)

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        *arguments: Any,
        **options: Any,
    ) -> requests.Response:
        """Handle one request on this thread."""
        url = request.url or ""
        if is_stream(urlsplit(url).path):  # it never ends, so it needs a socket
            return super().send(request, stream, timeout, *arguments, **options)
        headers = [(_text(name), _text(value)) for name, value in request.headers.items()]
        limit_seconds = _read_seconds(timeout)
        try:
            answer = self._in_process.send(
                str(request.method), url, headers, _bytes(request.body), _key(request), limit_seconds
            )
        except requests.RequestException as broken:
            broken.request = request
            raise
        return self.build_response(request, _raw(answer))


def _read_seconds(timeout: Any) -> float | None:
    """The read timeout, from any form that requests accepts; None means no limit."""
    if isinstance(timeout, Timeout):
        begun = timeout.clone()
        begun.start_connect()
        timeout = begun.read_timeout
    limit = timeout[1] if isinstance(timeout, tuple) else timeout
    return limit if isinstance(limit, int | float) else None


def _text(part: str | bytes) -> str:
    return part.decode("latin-1") if isinstance(part, bytes) else part


def _bytes(body: Any) -> bytes:
    """The body of a request, from a string, bytes, a file or an iterable."""
    if hasattr(body, "read"):
        body = body.read()
    if body is None or isinstance(body, str):
        return (body or "").encode()
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    return b"".join(piece.encode() if isinstance(piece, str) else bytes(piece) for piece in body)


def _key(request: requests.PreparedRequest) -> str:
    """The API key of a request; empty if it has none."""
    header = _text(request.headers.get("Authorization") or "")
    try:
        return b64decode(header.removeprefix("Basic ")).decode().partition(":")[0]
    except ValueError:
        return ""


def _raw(answer: Answer) -> HTTPResponse:
    """The response as it would arrive over the network, cookies included."""
    message = HTTPMessage()
    for name, value in answer.headers:
        message[name] = value
    headers: Any = list(answer.headers)  # pairs preserve repeated headers
    original: Any = SimpleNamespace(msg=message, isclosed=lambda: True, close=lambda: None)
    return HTTPResponse(
        body=BytesIO(answer.content),
        headers=headers,
        status=answer.status_code,
        reason=answer.reason.title(),
        preload_content=False,
        original_response=original,
    )


def session(server: "Server", api_key: str) -> requests.Session:
    """Create a session with the key set, whose requests to the sandbox never leave the process."""
    made = direct_session(api_key)
    made.mount(f"{server.url}/", InProcessAdapter(server))
    return made


def _waits(server: "Server", project: "Project | None") -> bool:
    """Whether a call waits for webhooks; a handler's must not, as its own webhook is among them."""
    if project is None:
        return False
    receiver = server.services.courier.receiver_of(project.project_id)
    return not (isinstance(receiver, Receiver) and receiver.may_have_called())
