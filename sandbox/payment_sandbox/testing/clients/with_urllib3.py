"""A urllib3 pool manager for calls to the sandbox without sockets."""

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from urllib3 import PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from payment_sandbox.serving.binding import port_of
from payment_sandbox.testing.clients.in_process import InProcess, SandboxResponse
from payment_sandbox.testing.clients.memory_socket import MemorySocket
from payment_sandbox.testing.environments import Pairs

if TYPE_CHECKING:
    from payment_sandbox.serving.server import Server


def pool_manager(server: "Server | None") -> PoolManager:
    """Create a pool manager; requests to other servers use sockets.

    If ``server`` is None, because the sandbox runs in another process, all requests use sockets.
    """
    manager = PoolManager()
    if server is not None:
        manager.pool_classes_by_scheme = _pool_classes(server)
    return manager


class LocalTarget:
    """A server in this process, for requests whose target is a path."""

    def __init__(self, server: "Server") -> None:
        self._url = server.url
        self._in_process = InProcess(server)

    def send(
        self, method: str, target: str, headers: Pairs, body: bytes, key: str, timeout_seconds: float | None
    ) -> SandboxResponse:
        """Answer one request."""
        return self._in_process.send(method, f"{self._url}{target}", headers, body, key, timeout_seconds)


def _pool_classes(server: "Server") -> dict[str, type[HTTPConnectionPool]]:
    target, address = LocalTarget(server), urlsplit(server.url)

    def is_connected(connection: HTTPConnection) -> bool:
        if (connection.host, connection.port) != (address.hostname, port_of(address)):
            return False
        sock: Any = MemorySocket(target, connection.timeout)
        connection.sock, connection.is_verified = sock, True  # to prevent a warning from urllib3
        return True

    class InProcessHttp(HTTPConnection):
        def connect(self) -> None:
            if not is_connected(self):
                super().connect()

    class InProcessHttps(HTTPSConnection):
        def connect(self) -> None:
            if not is_connected(self):
                super().connect()

    class HttpPool(HTTPConnectionPool):
        ConnectionCls = InProcessHttp

    class HttpsPool(HTTPSConnectionPool):
        ConnectionCls = InProcessHttps

    return {"http": HttpPool, "https": HttpsPool}
