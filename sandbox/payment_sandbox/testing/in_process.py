"""Requests without sockets: a test, the sandbox and a merchant's WSGI application in one process."""

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from http.client import HTTPMessage
from io import BytesIO
from json import dumps, loads
from threading import get_ident
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode, urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse, Timeout

from payment_sandbox.orders.deliveries import BODY_KEPT_BYTES, TIMEOUT_SECONDS, WebhookRequest
from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox.serving.sessions import direct_session
from payment_sandbox.serving.threads import unmasked
from payment_sandbox.testing.wsgi import Head, Pairs, environment, opened

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

    from payment_sandbox.projects.project import Project
    from payment_sandbox.serving.server import Server

SETTLE_SECONDS: Final = (
    10.0  # how long a call waits for the webhooks that it caused, and those that they cause
)
STREAMED: Final = "/control/events"  # a stream has no end to wait for


class CutOff(Exception):
    """A fault broke the connection; ``has_begun`` when a part of the answer had come by then."""

    has_begun = False


class Answer(NamedTuple):
    """What an application answered; as much of a ``requests.Response`` as the client looks at."""

    status_code: int
    reason: str
    headers: Pairs
    content: bytes

    def json(self) -> Any:
        """The body, parsed."""
        return loads(self.content)


class InProcess:
    """The sandbox without sockets; a call returns once the webhooks that it caused are answered."""

    def __init__(self, server: "Server") -> None:
        self._server = server

    def send(
        self, method: str, url: str, headers: Pairs, body: bytes, key: str, timeout_seconds: float | None
    ) -> Answer:
        """One call, on this thread, by the project of ``key``.

        Raises:
            requests.RequestException: as over a wire, when a fault breaks it or keeps it too long.
        """
        project = self._server.registry.find(key)
        waits = _waits(self._server, project)
        cut: CutOff | None = None
        begun_seconds, answer, is_settled = monotonic_seconds(), None, True
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
        with opened(self._server.app, {**environ, "sandbox.cut_off": _cut_off}, heads.append) as pieces:
            try:
                found.extend(pieces)
            except CutOff as cut:
                cut.has_begun = any(found)
                raise
        head = heads[-1]
        return Answer(head.code, head.status.partition(" ")[2], head.headers, b"".join(found))


def _broken(cut: CutOff | None) -> requests.RequestException:
    """What requests raises for a connection that a fault has cut."""
    if cut is not None and cut.has_begun:
        return requests.exceptions.ChunkedEncodingError("the answer ended in its middle, as a fault asked")
    return requests.ConnectionError("the connection was cut off, as a fault asked")


def _with_warning(answer: Answer, project: "Project | None") -> Answer:
    """The same answer; its header says which webhooks nobody has answered yet."""
    pending = project.epoch.outbox.pending() if project is not None else []
    warning = f"webhooks are still under way after {SETTLE_SECONDS:g} seconds: {', '.join(pending[:10])}"
    return answer._replace(headers=[*answer.headers, ("Sandbox-Warnings", warning)])


def _cut_off() -> None:
    raise CutOff


class DirectSession:
    """As much of a ``requests.Session`` as the client needs, at a third of its cost."""

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
        """One call of the API."""
        asked = f"{url}?{urlencode(params, doseq=True)}" if params else url
        sent = list({"Content-Type": "application/json", **headers}.items())
        if auth is not None:
            sent.append(("Authorization", f"Basic {b64encode(':'.join(auth).encode()).decode()}"))
        body = data or (b"" if json is None else dumps(json).encode())
        key = auth[0] if auth is not None else ""
        return self._in_process.send(method, asked, sent, body, key, timeout)

    def get(self, url: str, **options: Any) -> requests.Response:
        """A stream, which has no end to wait for, over a socket."""
        return self._sockets.get(url, **options)

    def close(self) -> None:
        """Let go of what streams used."""
        self._sockets.close()


class InProcessAdapter(HTTPAdapter):
    """Hands what ``requests`` sends straight to the sandbox."""

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
        """One request, on this thread."""
        url = request.url or ""
        if urlsplit(url).path.rstrip("/") == STREAMED:
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
    """How long to wait for an answer, of all that requests takes for a timeout; None for ever."""
    if isinstance(timeout, Timeout):
        begun = timeout.clone()
        begun.start_connect()
        timeout = begun.read_timeout
    limit = timeout[1] if isinstance(timeout, tuple) else timeout
    return limit if isinstance(limit, int | float) else None


def _text(part: str | bytes) -> str:
    return part.decode("latin-1") if isinstance(part, bytes) else part


def _bytes(body: Any) -> bytes:
    """What a request sends: a text, bytes, a file, or one piece after the other."""
    if hasattr(body, "read"):
        body = body.read()
    if body is None or isinstance(body, str):
        return (body or "").encode()
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    return b"".join(piece.encode() if isinstance(piece, str) else bytes(piece) for piece in body)


def _key(request: requests.PreparedRequest) -> str:
    """The API key of a request; empty when it has none."""
    header = _text(request.headers.get("Authorization") or "")
    try:
        return b64decode(header.removeprefix("Basic ")).decode().partition(":")[0]
    except ValueError:
        return ""


def _raw(answer: Answer) -> HTTPResponse:
    """An answer as it would come from the wire, cookies included."""
    message = HTTPMessage()
    for name, value in answer.headers:
        message[name] = value
    headers: Any = list(answer.headers)  # pairs keep what comes twice
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
    """A session whose requests to the sandbox never leave the process, with the key set."""
    made = direct_session(api_key)
    made.mount(f"{server.url}/", InProcessAdapter(server))
    return made


class Receiver:
    """A merchant's WSGI application as what takes a project's webhooks."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application
        self._tests_thread = get_ident()
        self._begun_seconds: dict[int, float] = {}  # of the handlers at work, by thread

    def __call__(self, request: WebhookRequest, answered: Callable[[int], None]) -> bytes:
        """Deliver one webhook; its status is told with its first piece, its body is kept in part."""
        self._begun_seconds[get_ident()] = monotonic_seconds()
        try:
            environ = environment("POST", request.url, request.headers.items(), request.body)
            heads: list[Head] = []
            body = b""
            with unmasked(), opened(self._application, environ, heads.append) as pieces:
                for piece in pieces:
                    body += piece
                    if body:  # servers send nothing before: until then an error can still become a 500
                        answered(_code(heads))
                    if len(body) >= BODY_KEPT_BYTES:
                        break
            answered(_code(heads))
            return body[:BODY_KEPT_BYTES]
        finally:
            del self._begun_seconds[get_ident()]

    def may_have_called(self) -> bool:
        """Whether the calling thread may be a handler, or work for one: it waits for no webhook then.

        The test's own thread never is, and for a handler that was given up nobody works any more.
        """
        here = get_ident()
        if here == self._tests_thread:
            return False
        latest = monotonic_seconds() - TIMEOUT_SECONDS
        begun = self._begun_seconds.copy()
        return here in begun or any(seconds > latest for seconds in begun.values())


def _code(heads: list[Head]) -> int:
    if not heads:
        raise RuntimeError("the application called no start_response")
    return heads[-1].code


def _waits(server: "Server", project: "Project | None") -> bool:
    """Whether a call waits for webhooks; a handler does not, for its own is one of them."""
    if project is None:
        return False
    receiver = server.services.courier.receiver_of(project.project_id)
    return not (isinstance(receiver, Receiver) and receiver.may_have_called())
