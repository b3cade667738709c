"""Intercepts requests to a provider's address in several HTTP libraries.

The connections of ``http.client`` (and of urllib3, requests and urllib.request, which are built on it) get a
socket in memory before each request. The transports of httpx are hooked at ``handle_request``. Whatever goes
round these methods is refused by the guard (``guard.py``), and never reaches the provider. The hooks stay
after the last interception, and refuse calls that an open connection or a proxy would take to the provider.
"""

import sys
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from functools import wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from threading import Lock
from types import ModuleType
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import urllib3.connection  # noqa: F401 (its classes are hooked)

from payment_sandbox.kernel.masking import MASK, mask
from payment_sandbox.serving.binding import DEFAULT_PORTS
from payment_sandbox.serving.server import Server
from payment_sandbox.testing.clients.guard import GUARD, PATCHING_LIBRARIES, canonical_host, obstacles
from payment_sandbox.testing.clients.in_process import (
    InProcess,
    SandboxResponse,
    basic_authorization,
    secure_url,
)
from payment_sandbox.testing.clients.memory_socket import MemorySocket
from payment_sandbox.testing.clients.with_httpx import answer_request
from payment_sandbox.testing.environments import Pairs
from payment_sandbox.testing.loops import run_blocking
from payment_sandbox.web.error_bodies import MERCHANT_PATHS


class ImportWatcher(MetaPathFinder):
    """Calls a function for each library: at once for loaded libraries, otherwise on import."""

    def __init__(self, names: Collection[str], on_loaded: Callable[[ModuleType], None]) -> None:
        self._waiting = set(names)
        self._on_loaded = on_loaded

    def start(self) -> None:
        """Handle loaded libraries, and watch for imports."""
        sys.meta_path.insert(0, self)
        for name in sorted(self._waiting & sys.modules.keys()):
            self._on_load(sys.modules[name])

    def stop(self) -> None:
        """Stop watching for imports."""
        self._waiting.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a library as usual, and arrange a callback after its import."""
        if fullname not in self._waiting:
            return None
        self._waiting.discard(fullname)  # to avoid infinite recursion
        spec = find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        self._waiting.add(fullname)
        execute = spec.loader.exec_module

        def execute_and_report(module: ModuleType) -> None:
            execute(module)
            self._on_load(module)

        spec.loader.exec_module = execute_and_report  # type: ignore[method-assign]
        return spec

    def _on_load(self, module: ModuleType) -> None:
        if module.__name__ in self._waiting:
            self._waiting.discard(module.__name__)
            self._on_loaded(module)


UNAUTHORIZED: Final = 401
NOT_FOUND: Final = 404
KEY_CHARACTERS_SHOWN: Final = 4
EXAMPLE_ADDRESS: Final = "https://api.provider.example"


class Origin(NamedTuple):
    """The scheme, host and port of a provider."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, scheme: str, host: str, port: int | None) -> "Origin":
        """Return the origin of a connection."""
        return cls(scheme, canonical_host(host), port or DEFAULT_PORTS[scheme])


class Provider(NamedTuple):
    """A provider to intercept: its origin, and the path prefix of its API."""

    origin: Origin
    prefix: str

    @classmethod
    def parse(cls, url: str) -> "Provider":
        """Parse an address.

        Raises:
            ValueError: the address is not an HTTP address.
        """
        problem = f"intercept takes an address with its scheme, such as {EXAMPLE_ADDRESS}, not {url!r}"
        if not isinstance(url, str):
            raise ValueError(problem)
        parts = urlsplit(url)
        if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
            raise ValueError(problem)
        try:
            origin = Origin.of(parts.scheme, parts.hostname, parts.port)
        except ValueError as error:  # the port is invalid
            raise ValueError(f"{problem}: {error}") from None
        return cls(origin, parts.path.rstrip("/"))


class Route:
    """One interception: a server that replaces a provider."""

    def __init__(
        self,
        server: Server,
        provider: Provider,
        rejections: list[str],
        keys: Mapping[str, str] | None = None,
    ) -> None:
        """Create an interception; ``keys`` maps the shop's hard-coded keys to project keys."""
        self.provider = provider
        self._keys = dict(keys or {})
        self._server = server
        self._in_process = InProcess(server)
        self._rejections = rejections

    def is_known_key(self, key: str) -> bool:
        """Return whether a key belongs to a project on this server."""
        return key in self._keys or self._server.registry.find(key) is not None

    def match_length(self, target: str) -> int:
        """Return the length of the provider's path prefix in the target; -1 if the prefix differs."""
        prefix, path = self.provider.prefix, _path_of(target)
        return len(prefix) if path == prefix or path.startswith(f"{prefix}/") else -1

    def send(
        self, method: str, target: str, headers: Pairs, body: bytes, key: str, timeout_seconds: float | None
    ) -> SandboxResponse:
        """Make one call; ``target`` is a path with its query, or a whole URL.

        Raises:
            CutOff, ResponseTimeout: as in ``InProcess.send``.
        """
        path = _path_of(target)
        api_path = path.removeprefix(self.provider.prefix) if self.match_length(target) >= 0 else path
        _, mark, query = target.partition("?")
        without_host = [(name, value) for name, value in headers if name.lower() != "host"]
        if key in self._keys:
            key = self._keys[key]
            without_host = [(name, value) for name, value in without_host if name.lower() != "authorization"]
            without_host.append(("Authorization", basic_authorization(key)))
        answer = self._in_process.send(
            method, f"{self._server.url}{api_path}{mark}{query}", without_host, body, key, timeout_seconds
        )
        if answer.status_code in (UNAUTHORIZED, NOT_FOUND):
            host = self.provider.origin.host
            request = mask(f"{method} {api_path} for {host} -> {answer.status_code}", key or None)
            if answer.status_code == UNAUTHORIZED:
                unknown = f"the API key {key[:KEY_CHARACTERS_SHOWN]}{MASK} belongs to no project"
                problem = unknown if key else "the request had no Basic key"
                self._rejections.append(
                    f"{request}: {problem}; the shop needs payment_sandbox.api_key, or intercept(…, key=…)"
                )
            elif not api_path.startswith(MERCHANT_PATHS):
                self._rejections.append(
                    f"{request}: paths begin with {MERCHANT_PATHS}; intercept the address before it"
                )
        return answer

    def report(self, message: str) -> None:
        """Add a message to the report of the test."""
        self._rejections.append(message)


def _path_of(target: str) -> str:
    without_query = target.partition("?")[0]
    return urlsplit(without_query).path if "://" in without_query else without_query


HTTPS_SCHEME: Final = "https"


class Interceptions:
    """The interceptions of one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._endings: dict[Route, list[Callable[[], None]]] = {}
        self.rejections: list[str] = []  # messages about requests with an unknown key or path

    def add(self, url: str, keys: Mapping[str, str] | None = None) -> Route:
        """Intercept requests to this address; see ``Route`` for ``keys``.

        The guard refuses the address afterwards, unless it is the server's own.
        A shop that calls the provider over https also opens payment pages over https, so for such an address,
        https requests to the server itself are intercepted, too. If a step fails, nothing is intercepted.

        Raises:
            ValueError: the address is not an HTTP address.
        """
        route = Route(self._server, Provider.parse(url), self.rejections, keys)
        origin = route.provider.origin
        stays = origin != Provider.parse(self._server.url).origin
        guarding = GUARD.add(origin.host, origin.port, self.rejections.append, stays=stays)
        endings = self._endings[route] = [guarding]
        try:
            endings.append(_ORIGINS.add(route))
            if origin.scheme == HTTPS_SCHEME:
                pages = Provider.parse(secure_url(self._server.url))
                endings.append(_ORIGINS.add(Route(self._server, pages, self.rejections, keys)))
        except BaseException:
            self.remove(route)
            raise
        self.rejections += obstacles()
        return route

    @staticmethod
    def check(*urls: str) -> None:
        """Check addresses before any of them is intercepted.

        Raises:
            ValueError: an address is not an HTTP address.
        """
        for url in urls:
            Provider.parse(url)

    def remove(self, route: Route) -> None:
        """End an interception; ending it twice has no effect."""
        for end in reversed(self._endings.pop(route, [])):
            end()

    def stop_all(self) -> None:
        """End all interceptions."""
        for route in list(self._endings):
            self.remove(route)


class _OriginRoutes:
    """The interceptions of one origin, newest last."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.routes: list[Route] = []

    def send(
        self, method: str, target: str, headers: Pairs, body: bytes, key: str, timeout_seconds: float | None
    ) -> SandboxResponse:
        """Answer a request through the most specific route, preferring servers that know the key."""
        routes = list(self.routes)
        if not routes:  # they ended while the client was sending
            GUARD.refuse((self.origin.host, self.origin.port))
        route = max(
            enumerate(routes),
            key=lambda each: (each[1].match_length(target), each[1].is_known_key(key), each[0]),
        )[1]
        return route.send(method, target, headers, body, key, timeout_seconds)


class _Origins:
    """All intercepted origins; the libraries are hooked from the first interception on."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_origin: dict[Origin, _OriginRoutes] = {}
        self._unhook: list[Callable[[], None]] = []

    def add(self, route: Route) -> Callable[[], None]:
        """Add a route; return a function that removes it.

        The libraries are hooked again if it is the only route, because others may have undone the hooks.
        """
        origin = route.provider.origin
        watching: ImportWatcher | None = None
        with self._lock:
            if not self._by_origin:
                for unhook in self._unhook:
                    unhook()
                watching = ImportWatcher(LIBRARY_HOOKS, self._hook)
                self._unhook = [watching.stop]
                for hook in _methods_to_hook():
                    self._unhook.append(_replace_method(*hook))
            self._by_origin.setdefault(origin, _OriginRoutes(origin)).routes.append(route)
        if watching is not None:
            watching.start()

        def remove() -> None:
            with self._lock:
                at = self._by_origin[origin]
                at.routes.remove(route)
                if not at.routes:
                    del self._by_origin[origin]

        return remove

    def _hook(self, library: Any) -> None:
        with self._lock:
            for owner, name, hook in LIBRARY_HOOKS[library.__name__]:
                self._unhook.append(_replace_method(getattr(library, owner), name, hook))

    def find(self, scheme: str, host: str, port: int | None) -> _OriginRoutes | None:
        """Return the interceptions of an origin, if any.

        Raises:
            AddressIntercepted: the address is not intercepted, but guarded.
        """
        if scheme not in DEFAULT_PORTS:
            return None
        origin = Origin.of(scheme, host, port)
        at = self._by_origin.get(origin)
        if at is None:
            GUARD.check((origin.host, origin.port))
        return at

    def report(self, message: str) -> None:
        """Add a message to the reports of all tests with an interception."""
        for at in list(self._by_origin.values()):
            at.routes[-1].report(message)


_ORIGINS: Final = _Origins()
Hook = Callable[[Any], Any]
"""Wraps a method of a library."""


def _replace_method(owner: type, name: str, hook: Hook) -> Callable[[], None]:
    """Wrap a method, which may be inherited, with a hook; return a function that removes the hook.

    If another library has wrapped the hook in the meantime, the hook remains, and passes all calls on.
    """
    is_inherited = name not in owner.__dict__
    before = getattr(owner, name)
    wrapper = wraps(before)(hook(before))
    setattr(owner, name, wrapper)

    def remove() -> None:
        if owner.__dict__.get(name) is not wrapper:
            return
        if is_inherited:
            delattr(owner, name)
        else:
            setattr(owner, name, before)

    return remove


def _methods_to_hook() -> Iterator[tuple[type, str, Hook]]:
    """Yield the methods to hook in ``http.client``, and in all loaded classes that are built on it.

    The modules may name other classes, because a cassette replaces them there.
    """
    (plain,) = (
        each
        for each in object.__subclasses__()
        if (each.__module__, each.__qualname__) == ("http.client", "HTTPConnection")
    )
    yield plain, "putrequest", _request_hook
    classes = [plain]
    for each in classes:
        classes += [known for known in each.__subclasses__() if known not in classes]
        if "connect" in each.__dict__:
            yield each, "connect", _connect_hook


def _request_hook(putrequest: Callable[..., None]) -> Callable[..., None]:
    def replacement(self: Any, method: str, url: str, *arguments: object, **options: object) -> None:
        """Replace the socket of a connection from before the interception, or to a proxy."""
        at = _find_for_connection(self, url)
        if at is not None and not isinstance(self.sock, MemorySocket):
            before, self.sock = self.sock, MemorySocket(at, self.timeout)
            if before is not None:
                before.close()
        putrequest(self, method, url, *arguments, **options)

    return replacement


def _connect_hook(connect: Callable[[Any], None]) -> Callable[[Any], None]:
    def replacement(self: Any) -> None:
        at = _find_for_connection(self)
        if at is None:
            connect(self)
            return
        self.sock = MemorySocket(at, self.timeout)
        self.is_verified = True  # to prevent a warning from urllib3

    return replacement


def _find_for_connection(connection: Any, url: str = "") -> _OriginRoutes | None:
    """Return the interceptions of a connection's target, which may be behind a proxy."""
    tunnel = getattr(connection, "_tunnel_host", None)
    if tunnel:
        return _ORIGINS.find(HTTPS_SCHEME, tunnel, connection._tunnel_port)
    if "://" in url:  # a proxy gets the whole URL
        parts = urlsplit(url)
        return _ORIGINS.find(parts.scheme, parts.hostname or "", parts.port)
    scheme = HTTPS_SCHEME if connection.default_port == DEFAULT_PORTS[HTTPS_SCHEME] else "http"
    return _ORIGINS.find(scheme, connection.host, connection.port)


def _pool_hook(take: Callable[..., object]) -> Callable[..., object]:
    def replacement(self: object, request: Any, *arguments: object, **options: object) -> object:
        url = request.url
        scheme, host = (part.decode() if isinstance(part, bytes) else part for part in (url.scheme, url.host))
        at = _ORIGINS.find(scheme, host or "", url.port)
        if at is not None:
            GUARD.refuse((at.origin.host, at.origin.port))
        return take(self, request, *arguments, **options)

    return replacement


def _cassette_hook(enter: Callable[[object], object]) -> Callable[[object], object]:
    def replacement(self: object) -> object:
        _ORIGINS.report(PATCHING_LIBRARIES["vcr"])
        return enter(self)

    return replacement


def _httpx_hook(handle: Callable[..., object]) -> Callable[..., object]:
    def replacement(self: object, request: Any) -> object:
        at = _ORIGINS.find(request.url.scheme, request.url.host, request.url.port)
        return handle(self, request) if at is None else answer_request(at, request, request.read())

    return replacement


def _async_httpx_hook(handle: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
    async def replacement(self: object, request: Any) -> object:
        at = _ORIGINS.find(request.url.scheme, request.url.host, request.url.port)
        if at is None:
            return await handle(self, request)
        return await run_blocking(answer_request, at, request, await request.aread())

    return replacement


HTTPX_HOOKS: Final = (
    ("HTTPTransport", "handle_request", _httpx_hook),
    ("AsyncHTTPTransport", "handle_async_request", _async_httpx_hook),
)
LIBRARY_HOOKS: Final[Mapping[str, Sequence[tuple[str, str, Hook]]]] = {
    "httpx": HTTPX_HOOKS,
    "httpx2": HTTPX_HOOKS,
    "aiohttp": (("BaseConnector", "connect", _pool_hook),),
    "httpcore": (
        ("ConnectionPool", "handle_request", _pool_hook),
        ("AsyncConnectionPool", "handle_async_request", _pool_hook),
    ),
    "vcr.cassette": (("CassetteContextDecorator", "__enter__", _cassette_hook),),
}
"""The methods to hook in each module; a pool may hand out an open connection past the interception."""
