"""``requests`` sessions for calls to the sandbox without sockets."""

from collections.abc import Mapping
from http.client import HTTPMessage
from io import BytesIO
from types import SimpleNamespace
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse, Timeout

from payment_sandbox.projects.journal import SHOP, TEST
from payment_sandbox.serving.server import Server
from payment_sandbox.serving.sessions import direct_session
from payment_sandbox.testing.clients.in_process import (
    CutOff,
    InProcess,
    ResponseTimeout,
    SandboxResponse,
    basic_authorization,
    secure_url,
)
from payment_sandbox.testing.environments import Pairs
from payment_sandbox.web.answers.page_urls import is_stream
from payment_sandbox.web.auth import parse_api_key


def _convert_error(error: CutOff | ResponseTimeout) -> requests.RequestException:
    if isinstance(error, ResponseTimeout):
        return requests.ReadTimeout(str(error))
    if error.partial is not None:
        return requests.exceptions.ChunkedEncodingError("a fault cut the response off midway")
    return requests.ConnectionError("a fault cut the connection")


COOKIE_HEADER: Final = "set-cookie"
LATIN_1: Final = "latin-1"


class DirectSession:
    """The part of ``requests.Session`` that the client uses, at a third of the cost."""

    def __init__(self, server: Server) -> None:
        self._in_process = InProcess(server, lambda: TEST)
        self._sockets = direct_session()

    def request(
        self,
        method: str,
        url: str,
        *,
        data: bytes | None = None,
        params: Mapping[str, Any],
        headers: Mapping[str, str],
        auth: tuple[str, str] | None,
        timeout: float,
        **options: Any,
    ) -> SandboxResponse:
        """Make one API call."""
        full_url = f"{url}?{urlencode(params, doseq=True)}" if params else url
        sent = list({"Content-Type": "application/json", **headers}.items())
        if auth is not None:
            sent.append(("Authorization", basic_authorization(*auth)))
        key = auth[0] if auth is not None else ""
        try:
            return self._in_process.send(method, full_url, sent, data or b"", key, timeout)
        except (CutOff, ResponseTimeout) as broken:
            raise _convert_error(broken) from None

    def get(self, url: str, **options: Any) -> requests.Response:
        """Open an endless stream, over a socket."""
        return self._sockets.get(url, **options)

    def close(self) -> None:
        """Close the connections of streams."""
        self._sockets.close()


class InProcessAdapter(HTTPAdapter):
    """Passes requests directly to the sandbox."""

    def __init__(self, server: Server) -> None:  # only streams need the base class's pools
        self._in_process = InProcess(server, lambda: SHOP)
        self._sockets: HTTPAdapter | None = None

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
        if is_stream(urlsplit(url).path):  # an endless response needs a socket
            self._sockets = self._sockets or HTTPAdapter()
            return self._sockets.send(request, stream, timeout, *arguments, **options)
        given: Any = request.headers.items()  # as text or bytes
        headers = [
            (
                name.decode(LATIN_1) if isinstance(name, bytes) else name,
                value.decode(LATIN_1) if isinstance(value, bytes) else value,
            )
            for name, value in given
        ]
        sent_key = request.headers.get("Authorization") or ""
        key = parse_api_key(sent_key if isinstance(sent_key, str) else sent_key.decode(LATIN_1)) or ""
        limit_seconds = _read_timeout_seconds(timeout)
        try:
            answer = self._in_process.send(
                str(request.method), url, headers, _body_bytes(request.body), key, limit_seconds
            )
        except (CutOff, ResponseTimeout) as broken:
            raised = _convert_error(broken)
            raised.request = request
            raise raised from None
        sent: Any = list(answer.headers)  # pairs preserve repeated headers
        response = HTTPResponse(
            body=BytesIO(answer.content),
            headers=sent,
            status=answer.status_code,
            reason=answer.reason_phrase,
            preload_content=False,
            original_response=_with_cookies(answer.headers),
        )
        return self.build_response(request, response)

    def close(self) -> None:
        """Close the connections of streams."""
        if self._sockets is not None:
            self._sockets.close()


def _read_timeout_seconds(timeout: Any) -> float | None:
    """Return the read timeout from any form accepted by requests; None means no limit."""
    if isinstance(timeout, Timeout):
        started = timeout.clone()
        started.start_connect()
        timeout = started.read_timeout
    limit = timeout[1] if isinstance(timeout, tuple) else timeout
    return limit if isinstance(limit, int | float) else None


def _body_bytes(body: Any) -> bytes:
    """Return the body of a request, from a string, bytes, a file or an iterable."""
    if hasattr(body, "read"):
        body = body.read()
    if body is None or isinstance(body, str):
        return (body or "").encode()
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    return b"".join(piece.encode() if isinstance(piece, str) else bytes(piece) for piece in body)


def _with_cookies(headers: Pairs) -> Any:
    """Return the response that requests reads cookies from; None if there are no cookies."""
    cookies = [pair for pair in headers if pair[0].lower() == COOKIE_HEADER]
    if not cookies:
        return None
    message = HTTPMessage()
    for name, value in cookies:
        message[name] = value
    return SimpleNamespace(msg=message, isclosed=lambda: True, close=lambda: None)


class _Session(requests.Session):
    """Prepares only what it sends: requests 2.34 makes 300 calls to merge what is empty in a request."""

    def prepare_request(self, request: requests.Request) -> requests.PreparedRequest:
        """Prepare a request; None stands for the settings of the session."""
        empty: Any = None
        request.params = request.params or (empty if self.params else "")
        if not request.headers and None not in self.headers.values():
            request.headers = empty
        return super().prepare_request(request)

    def merge_environment_settings(self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any) -> Any:
        """Merge the settings of a request; None stands for the proxies of the session."""
        proxies = proxies if proxies or self.trust_env else None
        return super().merge_environment_settings(url, proxies, stream, verify, cert)


def create_session(server: Server, api_key: str) -> requests.Session:
    """Create a session with the key; its requests to the sandbox never leave the process."""
    session = _Session()
    session.trust_env, session.auth = False, (api_key, "")
    for url in (server.url, secure_url(server.url)):
        session.mount(f"{url}/", InProcessAdapter(server))
    return session
