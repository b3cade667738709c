"""Ports and addresses; importing this loads no HTTP server."""

import socket
from typing import Final
from urllib.parse import SplitResult

EVERYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104 (recognized, not bound)
SOMEBODY_ELSE: Final = "192.0.2.1"  # reserved for documentation: it belongs to nobody
CONNECTIONS_QUEUED: Final = 1024
DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class PortTaken(Exception):
    """The address cannot be bound."""


def bind(host: str, port: int) -> socket.socket:
    """Listen on an address; ``port`` 0 takes any free one. Connections wait until somebody accepts them.

    Raises:
        PortTaken: the address is in use or does not belong to this host.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small packets at once only if the protocol is named
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(CONNECTIONS_QUEUED)
        bound.setblocking(False)
    except (OSError, OverflowError) as error:
        bound.close()
        raise PortTaken(f"cannot listen on {host}:{port}: {error}") from error
    return bound


def port_of(parts: SplitResult) -> int:
    """The port of a URL, also if it does not say one."""
    return parts.port or DEFAULT_PORTS.get(parts.scheme, 80)


def url_of(host: str, port: int) -> str:
    """The address of a server on this host and port."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def reachable_url(host: str, port: int) -> str:
    """The address at which other devices reach a server that listens everywhere; else that of its host."""
    return url_of(_own_address() if host in EVERYWHERE else host, port)


def _own_address() -> str:
    """This machine's address in its network; loopback if it has none. Nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((SOMEBODY_ELSE, 9))
        except OSError:
            return "127.0.0.1"
        address: str = probe.getsockname()[0]
        return address
