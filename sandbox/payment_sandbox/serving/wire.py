"""Sends one webhook over the network, and cuts the connection when its time is over."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from http.client import HTTPResponse
from io import BufferedReader, RawIOBase
from threading import Lock, local
from typing import TYPE_CHECKING, Any, Final

from payment_sandbox.orders.webhooks import (
    BODY_KEPT_BYTES,
    TIMEOUT_SECONDS,
    Told,
    Undelivered,
    WebhookRequest,
)
from payment_sandbox.serving.sessions import Trust, direct_session, trust
from payment_sandbox.serving.troubles import trouble

if TYPE_CHECKING:
    import requests
    from _typeshed import WriteableBuffer

ANSWER_BYTES_MAX: Final = 1 << 18  # of which little is kept

_here = local()  # the wire of the request that this thread sends


class Wire:
    """The connection of one request. A receiver that sends a byte now and then never times out by itself."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._socket: socket.socket | None = None
        self._is_cut = False

    @contextmanager
    def used(self) -> Iterator[None]:
        """What this thread sends inside goes over this wire."""
        _here.wire = self
        try:
            yield
        finally:
            _here.wire = None
            with self._lock:
                if self._socket is not None:
                    self._socket.close()
                self._socket = None

    def connected(self, opened: socket.socket) -> None:
        """Note a new connection; a copy of its descriptor stays valid whoever wraps or closes it."""
        with self._lock:
            if self._socket is not None:
                self._socket.close()
            self._socket = opened.dup()
            if self._is_cut:
                self._shut_down()

    def cut(self) -> None:
        """Wake the thread that waits for the receiver, with an error."""
        with self._lock:
            self._is_cut = True
            self._shut_down()

    def _shut_down(self) -> None:
        if self._socket is not None:
            with suppress(OSError):  # the receiver has closed it
                self._socket.shutdown(socket.SHUT_RDWR)


def over_the_wire(
    request: WebhookRequest, answered: Callable[[int], None], trusted: Trust | None = None
) -> Told:
    """POST the request; ignore redirects, and proxies and credentials from the environment.

    Raises:
        Undelivered: there is no response, or only a part of one.
    """
    import requests  # here, for a faster start
    import urllib3

    try:
        return _posted(request, answered, trusted)
    except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
        raise Undelivered(trouble(error, request.url)) from error


def _posted(request: WebhookRequest, answered: Callable[[int], None], trusted: Trust | None) -> Told:
    with _session(trusted) as session:
        session.headers.clear()
        with session.post(
            request.url,
            data=request.body,
            headers=request.headers,
            timeout=TIMEOUT_SECONDS,
            allow_redirects=False,
            stream=True,
        ) as response:
            answered(response.status_code)
            response.raw.enforce_content_length = True  # urllib3 1 accepts truncated bodies by default
            body = b""
            for piece in response.raw.stream(BODY_KEPT_BYTES, decode_content=True):
                body += piece
                if len(body) >= BODY_KEPT_BYTES:
                    break
            return Told(body[:BODY_KEPT_BYTES], location=response.headers.get("Location"))


def warm_up() -> None:
    """Load what the first webhook needs; on many threads at once, it would hold up requests."""
    _session().close()


def _session(trusted: Trust | None = None) -> "requests.Session":
    """A session whose connections can be cut."""
    import requests  # here, for a faster start; its parts only after it, or two threads get half of it

    session, adapter = direct_session(), requests.adapters.HTTPAdapter()
    if trusted is not None:
        trust(session, trusted, adapter)
    adapter.poolmanager.pool_classes_by_scheme = _pools()
    for scheme in ("http://", "https://"):
        session.mount(scheme, adapter)
    return session


@cache
def _pools() -> dict[str, type]:
    """urllib3's connection pools, whose connections tell their wire of their sockets."""
    from urllib3.connection import HTTPConnection, HTTPSConnection  # here, for a faster start
    from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

    class Plain(HTTPConnection):
        response_class = _Answer

        def _new_conn(self) -> socket.socket:
            return _noted(super()._new_conn())

    class Encrypted(HTTPSConnection):
        response_class = _Answer

        def _new_conn(self) -> socket.socket:  # before the handshake, which a receiver can drip, too
            return _noted(super()._new_conn())

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class EncryptedPool(HTTPSConnectionPool):
        ConnectionCls = Encrypted

    return {"http": PlainPool, "https": EncryptedPool}


class _Limited(RawIOBase):
    """What is read of an answer, which may have no end: parsing that would keep the processor busy."""

    def __init__(self, source: RawIOBase) -> None:
        super().__init__()
        self._source = source
        self._left_bytes = ANSWER_BYTES_MAX

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int | None:
        """Read some.

        Raises:
            OSError: the answer is too long.
        """
        count: int | None = self._source.readinto(buffer)
        self._left_bytes -= count or 0
        if self._left_bytes < 0:
            raise OSError(f"the answer has no end within {ANSWER_BYTES_MAX} bytes")
        return count

    def close(self) -> None:
        """Close what is read from."""
        self._source.close()
        super().close()


class _Answer(HTTPResponse):
    """An answer of limited length, counted where http and https are the same: as it is parsed."""

    def __init__(self, sock: socket.socket, *given: Any, **options: Any) -> None:
        super().__init__(sock, *given, **options)
        self.fp = BufferedReader(_Limited(self.fp.detach()))


def _noted(opened: socket.socket) -> socket.socket:
    wire: Wire | None = getattr(_here, "wire", None)
    if wire is not None:
        wire.connected(opened)
    return opened
