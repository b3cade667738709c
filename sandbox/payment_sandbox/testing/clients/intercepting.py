"""Requests to a provider's address come to the sandbox instead, whatever library sends them.

The connections of ``http.client`` (and of urllib3, requests and urllib.request, which are built on it) get a
socket in memory from ``connect``. The transports of httpx are hooked at ``handle_request``. The client of
aiohttp is refused by name, lest it reaches the provider.
"""

import http.client
import os
import sys
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

from payment_sandbox.kernel.masking import MASK, mask
from payment_sandbox.loading import LOADING
from payment_sandbox.serving.binding import DEFAULT_PORTS
from payment_sandbox.testing.clients.in_process import InProcess, SandboxResponse, basic
from payment_sandbox.testing.clients.memory_socket import MemorySocket
from payment_sandbox.testing.environments import Pairs

if TYPE_CHECKING:
    from payment_sandbox.serving.server import Server


class OnImport(MetaPathFinder):
    """Calls a function with each of these libraries: at once if it is loaded, else when it is."""

    def __init__(self, names: Collection[str], then: Callable[[ModuleType], None]) -> None:
        self._waiting = set(names)
        self._then = then

    def begin(self) -> None:
        """Look at what is loaded, and watch what will be."""
        sys.meta_path.insert(0, self)
        for name in sorted(self._waiting & sys.modules.keys()):
            self._loaded(sys.modules[name])

    def end(self) -> None:
        """Watch no longer."""
        self._waiting.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a library as usual, and note the end of its import."""
        if fullname not in self._waiting:
            return None
        self._waiting.discard(fullname)  # or this would be asked again
        spec = find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        self._waiting.add(fullname)
        execute = spec.loader.exec_module

        def executed(module: ModuleType) -> None:
            execute(module)
            self._loaded(module)

        spec.loader.exec_module = executed  # type: ignore[method-assign]
        return spec

    def _loaded(self, module: ModuleType) -> None:
        if module.__name__ in self._waiting:
            self._waiting.discard(module.__name__)
            self._then(module)


UNAUTHORIZED: Final = 401
NOT_FOUND: Final = 404
REJECTIONS_MAX: Final = 100
KEY_SHOWN: Final = 4
EXAMPLE: Final = "https://api.provider.example"
API: Final = "/v1/"


class Origin(NamedTuple):
    """Where a provider is reached."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, scheme: str, host: str, port: int | None) -> "Origin":
        """The origin of a connection."""
        return cls(scheme, host.strip("[]").lower(), port or DEFAULT_PORTS[scheme])


class Provider(NamedTuple):
    """A provider whose requests are intercepted, and the path under which its API is."""

    origin: Origin
    prefix: str

    @classmethod
    def parse(cls, url: str) -> "Provider":
        """Read an address.

        Raises:
            ValueError: it is not an HTTP address.
        """
        wanted = f"intercept takes an address such as {EXAMPLE}, with its scheme; not {url!r}"
        if not isinstance(url, str):
            raise ValueError(wanted)
        parts = urlsplit(url)
        if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
            raise ValueError(wanted)
        try:
            origin = Origin.of(parts.scheme, parts.hostname, parts.port)
        except ValueError as error:  # of the port
            raise ValueError(f"{wanted}: {error}") from None
        return cls(origin, parts.path.rstrip("/"))


class Rejections:
    """The intercepted requests that reached no project, or nothing in it; as sentences."""

    def __init__(self) -> None:
        self._told: list[str] = []
        self._dropped = 0

    def add(self, sentence: str) -> None:
        """Note one; the oldest go first."""
        self._told.append(sentence)
        if len(self._told) > REJECTIONS_MAX:
            del self._told[0]
            self._dropped += 1

    @property
    def count(self) -> int:
        """How many there have been."""
        return self._dropped + len(self._told)

    def since(self, count: int) -> list[str]:
        """Those after the first ``count``."""
        return self._told[max(count - self._dropped, 0) :]


class Route:
    """One interception: a server in the place of a provider."""

    def __init__(
        self,
        server: "Server",
        provider: Provider,
        rejections: Rejections,
        keys: Mapping[str, str] | None = None,
    ) -> None:
        """``keys`` are those of projects, by the ones that a shop has instead."""
        self.provider = provider
        self._keys = dict(keys or {})
        self._server = server
        self._in_process = InProcess(server)
        self._rejections = rejections

    def knows(self, key: str) -> bool:
        """Whether the key is that of a project of this server."""
        return key in self._keys or self._server.registry.find(key) is not None

    def fits(self, target: str) -> int:
        """How much of the path is that of the provider; -1 if it is another."""
        prefix, path = self.provider.prefix, _path(target)
        return len(prefix) if path == prefix or path.startswith(f"{prefix}/") else -1

    def send(
        self, method: str, target: str, headers: Pairs, body: bytes, key: str, timeout_seconds: float | None
    ) -> SandboxResponse:
        """Make one call; ``target`` is a path with its query, or a whole URL.

        Raises:
            CutOff, TookTooLong: as ``InProcess.send``.
        """
        path = _path(target)
        own = path.removeprefix(self.provider.prefix) if self.fits(target) >= 0 else path
        _, mark, query = target.partition("?")
        without_host = [(name, value) for name, value in headers if name.lower() != "host"]
        if key in self._keys:
            key = self._keys[key]
            without_host = [(name, value) for name, value in without_host if name.lower() != "authorization"]
            without_host.append(("Authorization", basic(key)))
        answer = self._in_process.send(
            method, f"{self._server.url}{own}{mark}{query}", without_host, body, key, timeout_seconds
        )
        if answer.status_code in (UNAUTHORIZED, NOT_FOUND):
            self._note(answer.status_code, method, own, key)
        return answer

    def _note(self, status: int, method: str, path: str, key: str) -> None:
        host = self.provider.origin.host
        asked = mask(f"{method} {path} for {host} -> {status}", key or None)
        if status == UNAUTHORIZED:
            shown = f"the API key {key[:KEY_SHOWN]}{MASK} is that of no project"
            whose = shown if key else "it had no Basic key"
            self._rejections.add(
                f"{asked}: {whose}; the shop needs payment_sandbox.api_key, or intercept(…, key=…)"
            )
        elif not path.startswith(API):
            self._rejections.add(f"{asked}: paths begin with {API}; intercept what comes before it")


def _path(target: str) -> str:
    """The path of a target."""
    bare = target.partition("?")[0]
    return urlsplit(bare).path if "://" in bare else bare


HTTPX: Final = ("httpx", "httpx2")
AIOHTTP: Final = "aiohttp"
NO_PROXY: Final = ("no_proxy", "NO_PROXY")


class Interceptions:
    """The providers whose requests come to one server."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._routes: list[Route] = []
        self.rejections = Rejections()

    def add(self, url: str, keys: Mapping[str, str] | None = None) -> Route:
        """Intercept requests to this address; ``keys`` as in ``Route``.

        Raises:
            ValueError: it is not an HTTP address.
        """
        route = Route(self._server, Provider.parse(url), self.rejections, keys)
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
    ) -> SandboxResponse:
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
                watching = OnImport((*HTTPX, AIOHTTP), self._hook)
                self._unhook.append(watching.end)
            _pass_proxies(origin.host)
        if watching is not None:
            watching.begin()

    def _hook(self, library: Any) -> None:
        """Hook a library of the kind of httpx, or aiohttp, which has just been imported."""
        with self._lock:
            if not self._unhook:
                return
            if library.__name__ == AIOHTTP:
                self._unhook.append(_replaced(library.BaseConnector, "connect", _refusing))
                return
            self._unhook += [
                _replaced(library.HTTPTransport, "handle_request", _handling),
                _replaced(library.AsyncHTTPTransport, "handle_async_request", _handling_async),
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
    with LOADING:
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


def _refusing(connect: Callable[..., Awaitable[object]]) -> Callable[..., object]:
    """Refuse what would go to the provider: a connection of aiohttp needs a socket."""

    async def hooked(self: object, request: Any, *given: object, **options: object) -> object:
        url = request.url
        if _ORIGINS.find(url.scheme, url.host, url.port) is not None:
            raise RuntimeError(
                f"requests of aiohttp's client cannot be intercepted, so {url.origin()} was not called: "
                "let the shop call payment_sandbox.base_url in tests, or use httpx"
            )
        return await connect(self, request, *given, **options)

    return hooked


def _handling(handle: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    with LOADING:
        from payment_sandbox.testing.clients.with_httpx import answered

    def hooked(self: Any, request: Any) -> Any:
        at = _ORIGINS.find(request.url.scheme, request.url.host, request.url.port)
        return handle(self, request) if at is None else answered(at, request, request.read())

    return hooked


def _handling_async(handle: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    with LOADING:
        from payment_sandbox.testing.clients.with_httpx import answered
        from payment_sandbox.testing.loops import run_blocking

    async def hooked(self: Any, request: Any) -> Any:
        at = _ORIGINS.find(request.url.scheme, request.url.host, request.url.port)
        if at is None:
            return await handle(self, request)
        return await run_blocking(answered, at, request, await request.aread())

    return hooked
