"""A guard below all HTTP clients: once an address is intercepted, no Python code of the process reaches it.

An audit hook sees each name that is resolved and each socket that is connected, by whichever client and
however the client is patched. It is installed with the first interception. An address stays guarded after its
interception, because a thread may outlive its test. Clients that are written in C (pycurl, grpc, uvloop)
raise no audit events.
"""

import os
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from threading import Lock
from types import FrameType
from typing import Any, Final, NoReturn
from unittest import TestCase

LOCALHOST: Final = "localhost"
SERVICE_PORTS: Final = {"http": 80, "https": 443}
RESOLVING_EVENTS: Final = ("socket.getaddrinfo", "socket.gethostbyname")
CONNECTING_EVENTS: Final = ("socket.connect", "socket.sendto", "socket.sendmsg")
REMEDY: Final = (
    "Nothing was sent. The sandbox answers calls by requests, httpx, urllib3 and urllib; "
    "other clients need payment_sandbox.base_url"
)
STAYS_CLOSED: Final = (
    "An intercepted address stays closed until the session ends: stop what outlives its test, or intercept "
    "the address in the test that calls it"
)
UNNAMED_TEST: Final = "an earlier interception"
UNNAMED_CLIENT: Final = "asyncio, for example in aiohttp"
PATCHING_LIBRARIES: Final = {
    "vcr": "vcrpy is recording: exclude the address with ignore_hosts, or the cassette records the sandbox",
    "responses": "responses refuses calls without a stub: allow the address with responses.add_passthru",
    "requests_mock": "requests_mock refuses calls without a stub: allow the address with real_http=True",
    "respx": "respx refuses calls without a stub: allow the address with respx.route(host=…).pass_through()",
    "pook": "pook refuses calls without a stub: allow the address with pook.enable_network",
}
"""Test libraries that replace parts of HTTP clients, and what to do about each."""
PATCHED_PLACES: Final = (
    ("http.client", "HTTPConnection"),
    ("urllib3.connectionpool", "HTTPConnectionPool.urlopen"),
    ("requests", "Session.send"),
    ("requests.adapters", "HTTPAdapter.send"),
    ("httpx", "HTTPTransport.handle_request"),
    ("httpx", "AsyncHTTPTransport.handle_async_request"),
    ("httpcore", "ConnectionPool.handle_request"),
    ("httpcore", "AsyncConnectionPool.handle_async_request"),
)

Address = tuple[str, int]
"""A canonical host and a port."""


class AddressIntercepted(RuntimeError):
    """A client tried to reach an intercepted address past the interception.

    It is no ``OSError``, so that no client retries it or takes it for a failing network.
    """


class Guard:
    """The addresses that are intercepted, perhaps several times, and those that were."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._is_installed = False
        self._tests: dict[Address, str] = {}  # each guarded address, with the test that intercepted it last
        self._interceptions: Counter[Address] = Counter()
        self._reports: list[Callable[[str], None]] = []

    def add(
        self, host: str, port: int, report: Callable[[str], None], *, stays: bool = True
    ) -> Callable[[], None]:
        """Guard an address; return a function for the end of its interception.

        Then the address stays guarded if it ``stays``. Until then, ``report`` gets each attempt's message.
        """
        address = (canonical_host(host), port)
        with self._lock:
            self._tests[address] = _test()
            self._interceptions[address] += 1
            self._reports.append(report)
            if not self._is_installed:
                self._is_installed = True
                sys.addaudithook(self._check)

        def remove() -> None:
            with self._lock:
                self._interceptions[address] -= 1
                self._reports.remove(report)
                if not stays and not self._interceptions[address]:
                    del self._tests[address]

        return remove

    def _check(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not event.startswith("socket."):
            return
        address = None
        if event in RESOLVING_EVENTS:
            address = self._match(arguments[0], arguments[1] if len(arguments) > 1 else None, is_name=True)
        elif event in CONNECTING_EVENTS and isinstance(arguments[1], tuple):
            address = self._match(*arguments[1][:2], is_name=False)
        if address is not None:
            self.refuse(address)

    def _match(self, host: object, port: object, *, is_name: bool) -> Address | None:
        """Return the guarded address of a host and a port; a name without a port matches any port."""
        name, number = canonical_host(host), _port_number(port)
        if not is_name or number is not None:
            return (name, number) if number is not None and (name, number) in self._tests else None
        if name == LOCALHOST:  # other servers of this machine may be resolved
            return None
        return next((each for each in list(self._tests) if each[0] == name), None)

    def check(self, address: Address) -> None:
        """Refuse an attempt to reach an address if it is guarded.

        Raises:
            AddressIntercepted: the address is guarded.
        """
        if address in self._tests:
            self.refuse(address)

    def refuse(self, address: Address) -> NoReturn:
        """Report and refuse an attempt to reach an address.

        Raises:
            AddressIntercepted: always.
        """
        host, port = address
        is_replaced = self._interceptions[address] > 0
        verb, remedy = ("replaces", REMEDY) if is_replaced else ("replaced", f"{STAYS_CLOSED}. {REMEDY}")
        test = self._tests.get(address, UNNAMED_TEST)
        problem = (
            f"{_client()} tried to reach {host}:{port}, which payment_sandbox.intercept {verb} in {test}"
        )
        message = "; ".join([f"{problem}. {remedy}", *obstacles()])
        for report in list(self._reports):
            report(message)
        raise AddressIntercepted(message)


GUARD: Final = Guard()


def canonical_host(host: object) -> str:
    """Return a host in one spelling: lower case, punycode, without a final dot; loopback is ``localhost``."""
    name = host.decode("latin-1") if isinstance(host, bytes | bytearray) else str(host or LOCALHOST)
    name = name.strip("[]").rstrip(".").lower()
    try:
        name = name.encode("idna").decode() if not name.isascii() else name
        number = ip_address(socket.inet_aton(name)) if name[-1:].isdigit() else ip_address(name)
    except (OSError, ValueError):  # a name, or an IPv6 address that ends in a digit
        try:
            number = ip_address(name.partition("%")[0])
        except ValueError:
            return name
    number = getattr(number, "ipv4_mapped", None) or number
    return LOCALHOST if number.is_loopback or number.is_unspecified else str(number)


def _port_number(port: object) -> int | None:
    text = port.decode("latin-1") if isinstance(port, bytes) else str(port)
    return int(text) if text.isascii() and text.isdecimal() and int(text) else SERVICE_PORTS.get(text)


def _test() -> str:
    """Return the running test: the one that pytest names, or the innermost method of a ``TestCase``."""
    named_by_pytest = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not named_by_pytest:
        owner = frame.f_locals.get("self")
        if isinstance(owner, TestCase):
            return owner.id()
        frame = frame.f_back
    return named_by_pytest or UNNAMED_TEST


def _client() -> str:
    """Return the package that is connecting: the innermost one that is not in the standard library."""
    frame: FrameType | None = sys._getframe(1)
    ours = __name__.partition(".")[0]
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package != ours and package not in sys.stdlib_module_names:
            return package
        frame = frame.f_back
    return UNNAMED_CLIENT


def obstacles() -> Iterator[str]:
    """Yield what test libraries currently do to HTTP clients, each with a remedy."""
    owners = set()  # the packages that define the methods of clients, or their replacements
    for module, path in PATCHED_PLACES:
        value: object = sys.modules.get(module)
        for name in path.split("."):
            value = getattr(value, name, None)
        owners.add(str(getattr(value, "__module__", "")).partition(".")[0])
    yield from (PATCHING_LIBRARIES[library] for library in sorted(owners & PATCHING_LIBRARIES.keys()))
