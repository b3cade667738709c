"""Requests to a provider's address come to the sandbox instead, whatever library sends them.

The connections of ``http.client`` (and of urllib3, requests and urllib.request, which are built on it) get a
socket in memory from ``connect``. The transports of httpx are hooked at ``handle_request``.
"""

import http.client
import os
from collections.abc import Callable, Iterator
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from urllib.request import getproxies_environment

from payment_sandbox.testing.clients.importing import OnImport
from payment_sandbox.testing.clients.in_process import Answer
from payment_sandbox.testing.clients.memory_socket import MemorySocket
from payment_sandbox.testing.clients.providers import Origin, Provider, Rejections, Route
from payment_sandbox.testing.environments import Pairs

if TYPE_CHECKING:
    from payment_sandbox.serving.server import Server

HTTPX: Final = ("httpx", "httpx2")
NO_PROXY: Final = ("no_proxy", "NO_PROXY")


class Interceptions:
    """The providers whose requests come to one server."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._routes: list[Route] = []
        self.rejections = Rejections()

    def add(self, url: str) -> Route:
        """Intercept requests to this address.

        Raises:
            ValueError: it is not an HTTP address.
        """
        route = Route(self._server, Provider.parse(url), self.rejections)
        self._routes.append(route)
        _ORIGINS.add(route)
        return route

    def remove(self, route: Route) -> None:
        """End an interception."""
        if route in self._routes:
            self._routes.remove(route)
            _ORIGINS.remove(route)

    def stop_all(self) -> None:
        """End all interceptions."""
        for route in list(self._routes):
            self.remove(route)


class _At:
    """Everybody who intercepts requests to one origin, the newest last."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.routes: list[Route] = []

    def send(
        self, method: str, target: str, headers: Pairs, body: bytes, key: str, timeout_seconds: float | None
    ) -> Answer:
        """Answer a request: the most specific address first, and the server that knows its key."""
        route = max(
            enumerate(self.routes), key=lambda each: (each[1].fits(target), each[1].knows(key), each[0])
        )[1]
        return route.send(method, target, headers, body, key, timeout_seconds)


class _Origins:
    """All intercepted origins; the libraries are hooked while there is one."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: dict[Origin, _At] = {}
        self._unhook: list[Callable[[], None]] = []

    def add(self, route: Route) -> None:
        """Answer requests to an origin."""
        watching: OnImport | None = None
        with self._lock:
            origin = route.provider.origin
            self._found.setdefault(origin, _At(origin)).routes.append(route)
            if not self._unhook:
                self._unhook = [_replaced(*hook) for hook in _hooks()]
                self._unhook.append(_without_proxies())
                watching = OnImport(HTTPX, self._hook)
                self._unhook.append(watching.end)
            _pass_proxies(origin.host)
        if watching is not None:
            watching.begin()

    def _hook(self, httpx: Any) -> None:
        """Hook a library of the kind of httpx, which has just been imported."""
        with self._lock:
            if self._unhook:
                self._unhook += [
                    _replaced(httpx.HTTPTransport, "handle_request", _handling),
                    _replaced(httpx.AsyncHTTPTransport, "handle_async_request", _handling_async),
                ]

    def remove(self, route: Route) -> None:
        """Let requests to an origin go where they should."""
        with self._lock:
            at = self._found[route.provider.origin]
            at.routes.remove(route)
            if not at.routes:
                del self._found[at.origin]
            if not self._found:
                for unhook in self._unhook:
                    unhook()
                self._unhook = []

    def find(self, scheme: str, host: str, port: int | None) -> _At | None:
        """Find who answers requests to an origin."""
        return self._found.get(Origin.of(scheme, host, port))


_ORIGINS: Final = _Origins()


def _without_proxies() -> Callable[[], None]:
    """Return what restores the variables that name hosts without a proxy."""
    before = {name: os.environ.get(name) for name in NO_PROXY}

    def restore() -> None:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    return restore


def _pass_proxies(host: str) -> None:
    """Let clients connect to a host itself, if the environment has proxies; else they ask those for it."""
    if any(scheme != "no" for scheme in getproxies_environment()):
        for name in NO_PROXY:
            os.environ[name] = ",".join(filter(None, (os.environ.get(name), host)))


def _replaced(owner: type, name: str, hook: Callable[[Any], Any]) -> Callable[[], None]:
    """Put a hook around a method; return what takes it away."""
    before = owner.__dict__[name]
    setattr(owner, name, hook(before))
    return lambda: setattr(owner, name, before)


def _hooks() -> Iterator[tuple[type, str, Callable[[Any], Any]]]:
    """The methods to hook, of libraries that are always there."""
    from urllib3 import connection

    for plain in (http.client.HTTPConnection, connection.HTTPConnection):
        yield plain, "connect", _connecting("http")
    for encrypted in (http.client.HTTPSConnection, connection.HTTPSConnection):
        yield encrypted, "connect", _connecting("https")


def _connecting(scheme: str) -> Callable[[Any], Any]:
    def hook(connect: Callable[[Any], None]) -> Callable[[Any], None]:
        def hooked(self: Any) -> None:
            tunnel = getattr(self, "_tunnel_host", None)  # through a proxy
            at = _ORIGINS.find("https", tunnel, self._tunnel_port) if tunnel else None
            at = at or _ORIGINS.find(scheme, self.host, self.port)
            if at is None:
                connect(self)
                return
            self.sock = MemorySocket(at, self.timeout)
            self.is_verified = True  # urllib3 would warn; nothing leaves this process

        return hooked

    return hook


def _handling(handle: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    from payment_sandbox.testing.clients.with_httpx import answered

    def hooked(self: Any, request: Any) -> Any:
        at = _ORIGINS.find(request.url.scheme, request.url.host, request.url.port)
        return handle(self, request) if at is None else answered(at, request, request.read())

    return hooked


def _handling_async(handle: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    from payment_sandbox.testing.clients.with_httpx import answered
    from payment_sandbox.testing.loops import run_blocking

    async def hooked(self: Any, request: Any) -> Any:
        at = _ORIGINS.find(request.url.scheme, request.url.host, request.url.port)
        if at is None:
            return await handle(self, request)
        return await run_blocking(answered, at, request, await request.aread())

    return hooked
