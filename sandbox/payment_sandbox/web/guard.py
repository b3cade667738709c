"""Keeps web pages in the developer's browser from driving the sandbox."""

import logging
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from flask import request

from payment_sandbox.web.carried import application
from payment_sandbox.web.errors import RequestRefused

PROBLEM_LENGTH_MAX: Final = 300
LOOPBACK_HOSTS: Final = ("127.0.0.1", "localhost", "::1")

log = logging.getLogger(__name__)


def known_hosts(public_url: str, allowed: Iterable[str]) -> frozenset[str]:
    """The host names under which this server may be called: loopback, the public URL's and ``allowed``."""
    public = urlsplit(public_url).hostname or ""
    return frozenset(name.lower() for name in (*LOOPBACK_HOSTS, public, *allowed))


def refuse_foreign_host() -> None:
    """Refuse an unknown Host, which a web page would send after DNS rebinding.

    Literal addresses are safe: no page can have somebody else's as its name.

    Raises:
        RequestRefused: 403.
    """
    host = _part("hostname", f"//{request.host}")
    if host not in application().hosts and not _is_literal(host):
        problem = (
            f"unknown host name {host!r}; to allow it, start the server with --allow-host {host or 'NAME'}"
        )
        if application().on_refused is None:
            _log_once(problem[:PROBLEM_LENGTH_MAX])
        raise RequestRefused(403, problem)


def refuse_strangers() -> None:
    """Refuse an unknown Host, and a foreign Origin: another site's page.

    Raises:
        RequestRefused: 403.
    """
    refuse_foreign_host()
    origin = request.headers.get("Origin")
    own = (request.host.lower(), _part("netloc", application().public_url).lower())
    if origin is not None and _part("netloc", origin).lower() not in own:
        raise RequestRefused(403, f"pages from {origin!r} may not call this server")


@lru_cache(maxsize=128)
def _log_once(problem: str) -> None:
    """Log a refusal that the caller may not see, such as that of a proxy; once, because it comes again."""
    log.warning("a request was refused: %s", problem)


@lru_cache(maxsize=256)
def _is_literal(host: str) -> bool:
    try:
        return bool(ip_address(host))
    except ValueError:
        return False


def _part(name: str, address: str) -> str:
    """A part of a URL; empty if the URL is invalid."""
    try:
        return getattr(urlsplit(address), name) or ""
    except ValueError:
        return ""
