"""Servers for an application that start on the first connection, or never."""

import selectors
import socket
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Protocol

from payment_sandbox.loading import lazy
from payment_sandbox.serving.binding import LOOPBACK, bind, url_of
from payment_sandbox.serving.threads import start

if TYPE_CHECKING:
    from flask import Flask

    from payment_sandbox.projects.registry import Registry
    from payment_sandbox.serving import front, plain_server
else:
    front = lazy("payment_sandbox.serving.front")
    plain_server = lazy("payment_sandbox.serving.plain_server")


class SiteServer(Protocol):
    """Serves one application."""

    port: int
    url: str

    def start(self, application: "Flask", registry: "Registry") -> None:
        """Serve on a background thread."""
        ...

    def stop(self) -> None:
        """Stop serving, and release everything."""
        ...


class LazyServer:
    """A port that loads its HTTP server on the first connection, because most test suites never need it."""

    def __init__(self) -> None:
        """Bind a free port."""
        self._socket = bind(LOOPBACK, 0)
        self.port: int = self._socket.getsockname()[1]
        self.url = url_of(LOOPBACK, self.port)
        self._server: front.HttpServer | plain_server.PlainServer | None = None
        self._thread: Thread | None = None
        self._stop_receiver, self._stop_sender = socket.socketpair()

    def start(self, application: "Flask", registry: "Registry") -> None:
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

    def _watch(self, application: "Flask", registry: "Registry") -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(self._stop_receiver, selectors.EVENT_READ)
            is_stopped = any(key.fileobj == self._stop_receiver for key, _ in selector.select())
        if is_stopped:
            return
        try:
            self._server = front.HttpServer(self._socket)
        except ModuleNotFoundError:
            self._server = plain_server.PlainServer(self._socket)
        self._server.start(application, registry)


class NoPort:
    """A listener without a port, for tests that may not open sockets; in-process calls still work."""

    port = 0
    url = "http://payment-sandbox.test"

    def start(self, application: "Flask", registry: "Registry") -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""
