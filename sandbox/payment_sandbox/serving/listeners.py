"""Servers for an application that start on the first connection, or never."""

import selectors
import socket
from collections.abc import Iterable
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, Protocol

from werkzeug.serving import WSGIRequestHandler, make_server

from payment_sandbox.loading import LOADING
from payment_sandbox.serving.binding import bind, url_of
from payment_sandbox.serving.threads import start
from payment_sandbox.web.call import ClientConnection

if TYPE_CHECKING:
    from payment_sandbox.serving.http import HttpServer
    from payment_sandbox.serving.wsgi import Application

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


class LazyServer:
    """A port that loads its HTTP server on the first connection, because most test suites never need it."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """Bind the port; 0 picks a free one.

        Raises:
            PortInUse: the address is in use or does not belong to this host.
        """
        self._socket = bind(host, port)
        self.port: int = self._socket.getsockname()[1]
        self.url = url_of(host, self.port)
        self._server: HttpServer | PlainServer | None = None
        self._thread: Thread | None = None
        self._stop_receiver, self._stop_sender = socket.socketpair()

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
            self._stop_sender.send(b"x")
        if self._thread is not None:
            self._thread.join()
        if self._server is not None:
            self._server.stop()
        self._socket.close()
        self._stop_receiver.close()
        self._stop_sender.close()

    def _watch(self, application: "Application") -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(self._stop_receiver, selectors.EVENT_READ)
            is_stopped = any(key.fileobj == self._stop_receiver for key, _ in selector.select())
        if is_stopped:
            return
        try:
            with LOADING:
                from payment_sandbox.serving.http import HttpServer  # deferred: takes a tenth of a second
            self._server = HttpServer(self._socket)
        except ModuleNotFoundError:
            self._server = PlainServer(self._socket)
        self._server.start(application)


class PlainServer:
    """Werkzeug's HTTP server, without ``payment-sandbox[server]``: slower, and with fewer limits."""

    def __init__(self, bound: socket.socket) -> None:
        class QuietHandler(WSGIRequestHandler):
            def log(self, *_: object) -> None:
                """Do nothing, because the journal records all calls."""

            def connection_dropped(self, error: BaseException, environ: object = None) -> None:
                """Close the connection after a fault cut the response."""
                self.close_connection = True

        host, port = bound.getsockname()[:2]
        self._application: Application | None = None
        self._server = make_server(
            host, port, self._answer, threaded=True, request_handler=QuietHandler, fd=bound.fileno()
        )
        self._thread = Thread(target=self._server.serve_forever, name="server", daemon=True)

    def start(self, application: "Application") -> None:
        """Serve on background threads."""
        self._application = application
        start(self._thread)

    def finish(self, within_seconds: float) -> None:
        """Accept no more connections; only servers of a cluster wait for requests in progress."""
        self._server.shutdown()

    def stop(self) -> None:
        """Accept no more connections."""
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        application = self._application
        assert application is not None, "the server was not started"
        length = environ.get("CONTENT_LENGTH") or ""
        call = application.place(environ, int(length) if length.isdecimal() else 0, ClientConnection())
        return application.answer(call, start_response)


class NoPort:
    """A listener without a port, for tests that may not open sockets; in-process calls still work."""

    port = 0
    url = UNREACHABLE_URL

    def start(self, application: "Application") -> None:
        """Do nothing."""

    def finish(self, within_seconds: float) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""
