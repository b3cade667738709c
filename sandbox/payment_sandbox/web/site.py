"""The context of all calls: projects, URLs, access rules, and the server around the application."""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from ipaddress import IPv6Address, ip_address
from math import ceil
from threading import Lock
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from payment_sandbox.projects.clock import RealTime
from payment_sandbox.projects.registry import Registry
from payment_sandbox.projects.slots import Slots

OnRefused = Callable[[str, str, int, str], None]
"""Receives refused requests that no journal records: method, path, status and reason."""

SIGN_IN_FAILURES_MAX: Final = 10  # from one address without a pause
SIGN_IN_PAUSE_SECONDS: Final = 6.0  # for each further failure
SIGN_IN_ADDRESSES_MAX: Final = 1000
LOOPBACK_HOSTS: Final = ("127.0.0.1", "localhost", "::1")


class ServerContext(NamedTuple):
    """The server around an application."""

    on_refused: OnRefused | None = None
    speaks_tls: bool = False  # if false, a proxy terminates TLS for an https URL


NO_SERVER: Final = ServerContext()
REFUSED_CALLS_MAX: Final = 100


class SignInFailures:
    """Limits guesses of keys and tokens by client address: some at once, then one in each pause.

    A success neither counts nor resets the count, so a valid API key does not help to guess others.
    """

    def __init__(self, real: RealTime) -> None:
        self._real = real
        self._free_at: OrderedDict[str, float] = OrderedDict()  # when all failures are forgotten, by network
        self._lock = Lock()

    def admit(self, address: str) -> int:
        """Count an attempt as a failure, unless there were too many; return the seconds to wait, or 0."""
        network, now = _network_of(address), self._real.monotonic_seconds()
        with self._lock:
            free_at = max(self._free_at.get(network, now), now) + SIGN_IN_PAUSE_SECONDS
            excess_seconds = free_at - now - SIGN_IN_FAILURES_MAX * SIGN_IN_PAUSE_SECONDS
            if excess_seconds > 0:
                return ceil(excess_seconds)
            self._free_at[network] = free_at
            self._free_at.move_to_end(network)
            if len(self._free_at) > SIGN_IN_ADDRESSES_MAX:
                self._free_at.popitem(last=False)
            return 0

    def forgive(self, address: str) -> None:
        """Remove the failure that ``admit`` counted before the sign-in succeeded."""
        network = _network_of(address)
        with self._lock:
            if network in self._free_at:
                self._free_at[network] -= SIGN_IN_PAUSE_SECONDS


def _network_of(address: str) -> str:
    """Return an address, or the network of an IPv6 address, because one client may have all its addresses."""
    with suppress(ValueError):
        parsed = ip_address(address)
        if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is None:
            return parsed.exploded[:19]
    return address


class Site:
    """One application: its projects, its URLs, and its access rules."""

    def __init__(
        self,
        registry: Registry,
        public_url: str,
        control_token: str | None,
        allow_hosts: Iterable[str],
        server_context: ServerContext,
    ) -> None:
        """Accept calls at loopback addresses, at the public URL and at ``allow_hosts``."""
        self.registry = registry
        self.control_token = control_token
        self.server_context = server_context
        self.sign_in_failures = SignInFailures(registry.services.real)
        self.refused: deque[tuple[datetime, str]] = deque(maxlen=REFUSED_CALLS_MAX)
        """The newest calls to the merchant API without a project, in sentences, with their real time."""
        self.slots = Slots()  # data that the faces share across projects
        self.hosts = frozenset(name.lower() for name in (*LOOPBACK_HOSTS, *allow_hosts))
        self.change_public_url(public_url)

    @property
    def forgery_secret(self) -> bytes:
        """Signs forms and cookies; the same at each server with this state and this control token."""
        return sha256(self.registry.salt + (self.control_token or "").encode()).digest()

    @property
    def public_url(self) -> str:
        """The URL for merchants and payers, without a trailing slash."""
        return self.registry.services.public_url

    def change_public_url(self, public_url: str) -> None:
        """Change the public URL; URLs in earlier responses do not change."""
        self.registry.services.public_url = public_url
        self.base_path = urlsplit(public_url).path  # for a server behind a proxy; usually empty
        self.hosts |= {(urlsplit(public_url).hostname or "").lower()}
