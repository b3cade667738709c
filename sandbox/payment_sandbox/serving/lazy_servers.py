"""The servers of test suites: one that starts on the first connection, and one without a port."""

import selectors
import socket
from contextlib import suppress
from threading import Thread

from flask import Flask
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from payment_sandbox.projects.registry import Registry
from payment_sandbox.serving import front
from payment_sandbox.serving.binding import LOOPBACK, bind, url_of
from payment_sandbox.serving.threads import start


class LazyServer:
    """A port that loads its HTTP server on the first connection, because most test suites never need it."""

    def __init__(self) -> None:
        """Bind a free port."""
        self._socket = bind(LOOPBACK, 0)
        self.port: int = self._socket.getsockname()[1]
        self.url = url_of(LOOPBACK, self.port)
        self._server: front.HttpServer | PlainServer | None = None
        self._thread: Thread | None = None
        self._stop_receiver, self._stop_sender = socket.socketpair()

    def start(self, application: Flask, registry: Registry) -> None:
        """Wait for the first connection on a background thread, then serve."""
        self._thread = Thread(target=self._watch, args=(application, registry), name="listener", daemon=True)
        start(self._thread)

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

    def _watch(self, application: Flask, registry: Registry) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(self._stop_receiver, selectors.EVENT_READ)
            is_stopped = any(key.fileobj == self._stop_receiver for key, _ in selector.select())
        if is_stopped:
            return
        try:
            self._server = front.HttpServer(self._socket)
        except ModuleNotFoundError:
            self._server = PlainServer(self._socket)
        self._server.start(application, registry)


class NoPort:
    """A listener without a port, for tests that may not open sockets; in-process calls still work."""

    port = 0
    url = "http://payment-sandbox.test"

    def start(self, application: Flask, registry: Registry) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""


class PlainServer:
    """Werkzeug's server, with which suites need no aiohttp: the plugin adds few packages to a shop's."""

    def __init__(self, bound: socket.socket) -> None:
        self._bound = bound
        self._server: BaseWSGIServer | None = None

    def start(self, application: Flask, registry: Registry) -> None:
        """Serve on background threads."""
        host, port = self._bound.getsockname()[:2]
        self._server = server = make_server(
            host,
            port,
            application,
            threaded=True,
            request_handler=_QuietHandler,
            fd=self._bound.fileno(),
        )
        start(Thread(target=server.serve_forever, name="server", daemon=True))

    def stop(self) -> None:
        """Accept no more connections."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()


class _QuietHandler(WSGIRequestHandler):
    """Logs nothing."""

    def log(self, *_: object) -> None:
        """Do nothing, because the journal records all calls."""
