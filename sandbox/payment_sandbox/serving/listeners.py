"""Lazy and null servers for an application: on the first connection, or not at all."""

import selectors
import socket
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Final, Protocol

from payment_sandbox.extensions import SERVER, NotInstalled
from payment_sandbox.loading import LOADING
from payment_sandbox.serving.binding import bind, url_of
from payment_sandbox.serving.threads import start

if TYPE_CHECKING:
    from payment_sandbox.serving.http import HttpServer
    from payment_sandbox.serving.wsgi import Application

REFUSE_SECONDS: Final = 1.0
REFUSED_BYTES: Final = 1 << 16
UNREACHABLE_URL: Final = "http://payment-sandbox.test"


class SiteServer(Protocol):
    """Serves one application."""

    port: int
    url: str

    def start(self, application: "Application") -> None:
        """Serve on a background thread."""
        ...

    def finish(self, within_seconds: float) -> None:
        """Accept no more connections, and close each once its request is answered."""
        ...

    def stop(self) -> None:
        """Stop serving, and release everything."""
        ...


class OnFirstConnection:
    """A port whose HTTP server is loaded on the first connection: most test suites never need it."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """Bind; ``port`` 0 takes any free one.

        Raises:
            PortTaken: the address is in use or does not belong to this host.
        """
        self._socket = bind(host, port)
        self.port: int = self._socket.getsockname()[1]
        self.url = url_of(host, self.port)
        self._server: HttpServer | None = None
        self._thread: Thread | None = None
        self._end, self._stopping = socket.socketpair()

    def start(self, application: "Application") -> None:
        """Wait for the first connection on a background thread, then serve."""
        self._thread = Thread(target=self._watch, args=(application,), name="listener", daemon=True)
        start(self._thread)

    def finish(self, within_seconds: float) -> None:
        """Accept no more connections, and close each once its request is answered."""
        if self._server is not None:
            self._server.finish(within_seconds)

    def stop(self) -> None:
        """Stop watching or serving."""
        with suppress(OSError):
            self._stopping.send(b"x")
        if self._thread is not None:
            self._thread.join()
        if self._server is not None:
            self._server.stop()
        self._socket.close()
        self._end.close()
        self._stopping.close()

    def _watch(self, application: "Application") -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(self._end, selectors.EVENT_READ)
            is_stopped = any(key.fileobj == self._end for key, _ in selector.select())
        if is_stopped:
            return
        try:
            with LOADING:
                from payment_sandbox.serving.http import HttpServer  # deferred: takes a tenth of a second
        except ModuleNotFoundError:
            self._refuse_all()
            return
        self._server = HttpServer(self._socket)
        self._server.start(application)

    def _refuse_all(self) -> None:
        """Answer every connection with how to install the HTTP server, until stopped."""
        body = f"{NotInstalled('a request over a socket', SERVER)}; or send it with payment_sandbox.session"
        head = f"HTTP/1.1 501 Not Implemented\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(self._end, selectors.EVENT_READ)
            while all(key.fileobj != self._end for key, _ in selector.select()):
                with suppress(OSError), self._socket.accept()[0] as connection:
                    connection.settimeout(REFUSE_SECONDS)
                    connection.recv(REFUSED_BYTES)
                    connection.sendall(f"{head}{body}".encode())


class Nowhere:
    """No port, for tests that may not open sockets; in-process calls still work."""

    port = 0
    url = UNREACHABLE_URL

    def start(self, application: "Application") -> None:
        """Do nothing."""

    def finish(self, within_seconds: float) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""
