"""Ports and addresses; importing this module loads no HTTP server."""

import errno
import socket
from contextlib import suppress
from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult

ALL_INTERFACES: Final = ("0.0.0.0", "::")  # noqa: S104 (compared, not bound)
LOOPBACK: Final = "127.0.0.1"
RESERVED_ADDRESSES: Final = (  # reserved for documentation, so no host has them
    (socket.AF_INET, "192.0.2.1"),
    (socket.AF_INET6, "2001:db8::1"),
)
CONNECTIONS_QUEUED: Final = 1024
DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class PortInUse(Exception):
    """The address cannot be bound."""


def bind(host: str, port: int) -> socket.socket:
    """Listen on an address; ``port`` 0 picks a free one. Connections wait in the backlog.

    Raises:
        PortInUse: the address is in use or does not belong to this host.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm only if the protocol is given
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host.encode(), port))  # text would load an encoding of host names
        bound.listen(CONNECTIONS_QUEUED)
        bound.setblocking(False)
    except (OSError, OverflowError) as error:
        bound.close()
        raise PortInUse(_explain_bind_error(host, port, error)) from error
    return bound


def _explain_bind_error(host: str, port: int, error: Exception) -> str:
    """Explain why an address cannot be bound, with a remedy."""
    problem = f"cannot listen on {url_of(host, port).partition('://')[2]}"
    number = getattr(error, "errno", None)
    if number == errno.EADDRINUSE:
        return f"{problem}: port {port} is in use; free it, or use another one: --port 0, make run PORT=8090"
    if number == errno.EACCES:
        allowed = f"sudo sysctl net.ipv4.ip_unprivileged_port_start={port}"
        return (
            f"{problem}: this user may not use port {port}; use one over 1023, or a free one with --port 0; "
            f"on Linux, {allowed} allows it"
        )
    if number == errno.EADDRNOTAVAIL:
        return f"{problem}: {host} is not an address of this machine; 127.0.0.1 and 0.0.0.0 always are"
    if isinstance(error, socket.gaierror):
        return f"{problem}: the host name {host!r} cannot be resolved; 127.0.0.1 and 0.0.0.0 always work"
    return f"{problem}: {getattr(error, 'strerror', None) or error}"


def port_of(parts: SplitResult) -> int:
    """Return the port of a URL, by default that of its scheme."""
    return DEFAULT_PORTS.get(parts.scheme, 80) if parts.port is None else parts.port


def url_of(host: str, port: int, scheme: str = "http") -> str:
    """Build the URL of a server on this host and port."""
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def reachable_url(host: str, port: int, scheme: str = "http") -> str:
    """Build the URL for other devices if the server listens on all addresses, otherwise for its host."""
    return url_of(next(iter(own_addresses()), LOOPBACK) if host in ALL_INTERFACES else host, port, scheme)


def own_addresses() -> list[str]:
    """List this machine's network addresses, the default address first, without sending a packet."""
    addresses = [_address_towards(family, other) for family, other in RESERVED_ADDRESSES]
    with suppress(OSError):
        addresses += [str(item[4][0]) for item in socket.getaddrinfo(socket.gethostname(), None)]
    return [address for address in dict.fromkeys(addresses) if address and _is_reachable(address)]


def _address_towards(family: socket.AddressFamily, other: str) -> str | None:
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((other, 9))
        except OSError:
            return None
        return str(probe.getsockname()[0])


def is_local(host: str) -> bool:
    """Return whether a host is this machine: a loopback address, or a name that always resolves to one."""
    if f".{host.removesuffix('.')}".endswith(".localhost"):
        return True
    try:
        parsed = ip_address(host)
    except ValueError:
        return False
    return parsed.is_loopback or parsed.is_unspecified


def _is_reachable(address: str) -> bool:
    """Return whether other machines can use the address; a link-local address needs an interface name."""
    parsed = ip_address(address.partition("%")[0])
    return not (parsed.is_loopback or parsed.is_link_local or parsed.is_unspecified)
