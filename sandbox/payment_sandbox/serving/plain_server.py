"""The server of suites without aiohttp."""

import socket
from threading import Thread
from typing import TYPE_CHECKING

from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from payment_sandbox.serving.threads import start

if TYPE_CHECKING:
    from flask import Flask

    from payment_sandbox.projects.registry import Registry


class PlainServer:
    """Werkzeug's server, with which suites need no aiohttp: the plugin adds few packages to a shop's."""

    def __init__(self, bound: socket.socket) -> None:
        self._bound = bound
        self._server: BaseWSGIServer | None = None

    def start(self, application: "Flask", registry: "Registry") -> None:
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
