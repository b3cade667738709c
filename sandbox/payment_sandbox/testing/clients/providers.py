"""A provider's address, and the sandbox in its place."""

from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from payment_sandbox.kernel.masking import MASK, mask
from payment_sandbox.serving.binding import DEFAULT_PORTS
from payment_sandbox.testing.clients.in_process import Answer, InProcess
from payment_sandbox.testing.environments import Pairs

if TYPE_CHECKING:
    from payment_sandbox.serving.server import Server

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

    def __init__(self, server: "Server", provider: Provider, rejections: Rejections) -> None:
        self.provider = provider
        self._server = server
        self._in_process = InProcess(server)
        self._rejections = rejections

    def knows(self, key: str) -> bool:
        """Whether the key is that of a project of this server."""
        return self._server.registry.find(key) is not None

    def fits(self, target: str) -> int:
        """How much of the path is that of the provider; -1 if it is another."""
        prefix, path = self.provider.prefix, _path(target)
        return len(prefix) if path == prefix or path.startswith(f"{prefix}/") else -1

    def send(
        self, method: str, target: str, headers: Pairs, body: bytes, key: str, timeout_seconds: float | None
    ) -> Answer:
        """Make one call; ``target`` is a path with its query, or a whole URL.

        Raises:
            CutOff, TookTooLong: as ``InProcess.send``.
        """
        path = _path(target)
        own = path.removeprefix(self.provider.prefix) if self.fits(target) >= 0 else path
        _, mark, query = target.partition("?")
        without_host = [(name, value) for name, value in headers if name.lower() != "host"]
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
            self._rejections.add(f"{asked}: {whose}; the shop needs payment_sandbox.api_key")
        elif not path.startswith(API):
            self._rejections.add(f"{asked}: paths begin with {API}; intercept what comes before it")


def _path(target: str) -> str:
    """The path of a target."""
    bare = target.partition("?")[0]
    return urlsplit(bare).path if "://" in bare else bare
