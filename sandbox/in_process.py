"""Requests without sockets: a test, the sandbox and a merchant's WSGI application in one process."""

from collections.abc import Callable
from io import BytesIO
from threading import local
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter, HTTPAdapter
from requests.structures import CaseInsensitiveDict
from werkzeug.test import Client

from sandbox.orders.deliveries import BODY_KEPT_BYTES, Parcel, Reply
from sandbox.realtime import monotonic_seconds

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

    from sandbox.server import Server

STREAMED: Final = "/control/events/"

_delivering = local()


class InProcessAdapter(BaseAdapter):
    """Hands requests straight to the sandbox; returns once the webhooks that they caused are answered."""

    def __init__(self, server: "Server") -> None:
        super().__init__()
        self._server = server
        self._client = Client(server.app)
        self._sockets = HTTPAdapter()

    def send(self, request: requests.PreparedRequest, *arguments: Any, **options: Any) -> requests.Response:
        """One request, on this thread."""
        url = request.url or ""
        if urlsplit(url).path.startswith(STREAMED):  # a stream has no end to wait for
            return self._sockets.send(request, *arguments, **options)
        answer = self._client.open(
            path=request.path_url,
            base_url=self._server.url,
            method=request.method,
            headers=list(request.headers.items()),
            data=request.body,
            environ_overrides={"sandbox.cut_off": _cut_off},
        )
        body = answer.get_data()
        answer.close()
        self._settle(request)
        return _response(request, answer.status_code, dict(answer.headers), body)

    def close(self) -> None:
        """Let go of what streams used."""
        self._sockets.close()

    def _settle(self, request: requests.PreparedRequest) -> None:
        """Let the webhooks be answered first, unless this is a receiver's own call."""
        if getattr(_delivering, "is_so", False):
            return
        from base64 import b64decode

        header = str(request.headers.get("Authorization") or "")
        if header.startswith("Basic "):
            key = b64decode(header.removeprefix("Basic ")).decode().partition(":")[0]
            project = self._server.registry.find(key)
            if project is not None and not project.advancing:
                project.outbox.settle()


def session(server: "Server", api_key: str) -> requests.Session:
    """A session whose requests to the sandbox never leave the process, with the key set."""
    made = requests.Session()
    made.trust_env = False
    made.auth = (api_key, "")
    made.mount(server.url, InProcessAdapter(server))
    return made


def sender(application: "WSGIApplication") -> Callable[[Parcel, int], list[Reply]]:
    """Delivers webhooks straight into a WSGI application."""
    client = Client(application)

    def send(parcel: Parcel, copies: int) -> list[Reply]:
        return [_delivered(client, parcel) for _ in range(copies)]

    return send


def _delivered(client: Client, parcel: Parcel) -> Reply:
    begun_seconds = monotonic_seconds()
    parts = urlsplit(parcel.url)
    path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    _delivering.is_so = True
    try:
        answer = client.open(
            path=path,
            base_url=f"{parts.scheme}://{parts.netloc}",
            method="POST",
            headers=list(parcel.headers.items()),
            data=parcel.body,
        )
        body = answer.get_data()[:BODY_KEPT_BYTES].decode(errors="replace")
        answer.close()
    except Exception as error:  # whatever a merchant's application does, it is a failed delivery
        return Reply(_passed_ms(begun_seconds), error=f"{type(error).__name__}: {error}"[:500])
    finally:
        _delivering.is_so = False
    return Reply(_passed_ms(begun_seconds), answer.status_code, body)


def _passed_ms(begun_seconds: float) -> float:
    return (monotonic_seconds() - begun_seconds) * 1000


def _cut_off() -> None:
    raise requests.ConnectionError("the connection was cut off, as a fault asked")


def _response(
    request: requests.PreparedRequest, status: int, headers: dict[str, str], body: bytes
) -> requests.Response:
    response = requests.Response()
    response.status_code = status
    response.headers = CaseInsensitiveDict(headers)
    response.encoding = "utf-8"
    response.raw = BytesIO(body)
    response._content = body
    response.request = request
    response.url = request.url or ""
    return response
