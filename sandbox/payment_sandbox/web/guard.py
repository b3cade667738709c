"""Keeps web pages in the developer's browser from driving the sandbox."""

from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from flask import request

from payment_sandbox.web.carried import application
from payment_sandbox.web.errors import RequestRefused

LOOPBACK_HOSTS: Final = ("127.0.0.1", "localhost", "::1")


def known_hosts(public_url: str, allowed: Iterable[str]) -> frozenset[str]:
    """The host names under which this server may be called: loopback, the public URL's and ``allowed``."""
    public = urlsplit(public_url).hostname or ""
    return frozenset(name.lower() for name in (*LOOPBACK_HOSTS, public, *allowed))


def refuse_strangers() -> None:
    """Refuse an unknown Host (DNS rebinding) and a foreign Origin (another site's page).

    Raises:
        RequestRefused: 403.
    """
    hosts = application().hosts
    host = _part("hostname", f"//{request.host}")
    if host not in hosts:
        raise RequestRefused(
            403,
            f"unknown host name {host!r}; to allow it, start the server with --allow-host {host or 'NAME'}",
        )
    origin = request.headers.get("Origin")
    own = (request.host.lower(), _part("netloc", application().public_url).lower())
    if origin is not None and _part("netloc", origin).lower() not in own:
        raise RequestRefused(403, f"pages from {origin!r} may not call this server")


def _part(name: str, address: str) -> str:
    """A part of a URL; empty if the URL is invalid."""
    try:
        return getattr(urlsplit(address), name) or ""
    except ValueError:
        return ""
