"""Who may call: the API key selects the project, and web pages of others are refused."""

import logging
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_address
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

from flask import Response, request
from werkzeug.datastructures import Authorization

from payment_sandbox.kernel.masking import Masking
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.registry import Registry
from payment_sandbox.web.addresses import base_path
from payment_sandbox.web.browsers import go
from payment_sandbox.web.carried import application, exchange
from payment_sandbox.web.errors import RequestRefused

CHALLENGE = {"WWW-Authenticate": 'Basic realm="payment orders sandbox", charset="UTF-8"'}


def registry() -> Registry:
    """All projects of this server."""
    return application().registry


def project() -> Project:
    """The project of this request, as found by ``require_project``."""
    project_here = exchange().project
    assert project_here is not None, "require_project has not run"
    return project_here


@lru_cache(maxsize=1024)
def api_key_in(header: str | None) -> str | None:
    """The user name in a Basic header; cached because clients repeat the same header."""
    if header is None or not header.isascii():
        return None
    try:
        authorization = Authorization.from_header(header)
    except ValueError:  # Werkzeug before 2.3.5 lets some invalid base64 through
        return None
    if authorization is None or authorization.type != "basic":
        return None
    return authorization.username


def _sent_key() -> str | None:
    header: str | None = exchange().request.environ.get("HTTP_AUTHORIZATION")
    return api_key_in(header)


def known_project() -> Project | None:
    """The project of this request's API key, or None."""
    return registry().find(_sent_key() or "")


def require_project() -> Project:
    """Find the request's project by its API key, the user name of HTTP Basic (AUTH-01, AUTH-02).

    Raises:
        RequestRefused: 401 if the header is missing or malformed, or the key is unknown.
    """
    api_key = _sent_key()
    if not api_key:
        raise RequestRefused(401, "send 'Authorization: Basic' with your API key as the user name", CHALLENGE)
    project = registry().find(api_key)
    if project is None:
        raise RequestRefused(401, "no project has this API key", CHALLENGE)
    exchange().project = project
    project.masking.api_key = api_key
    return project


def select_project() -> None:
    """Run ``require_project`` before each request of a blueprint."""
    require_project()


def drop_secrets() -> Response | None:
    """Lead to the same page without what has a secret in its query: pages repeat their address."""
    named = registry().find_by_id((request.view_args or {}).get("project_id", ""))
    masking = named.masking.of_long_keys() if named is not None else Masking()
    sent = list(request.args.items(multi=True))
    harmless = [pair for pair in sent if masking.record(pair) == pair]
    if request.method != "GET" or harmless == sent or masking.text(request.path) != request.path:
        return None
    query = f"?{urlencode(harmless)}" if harmless else ""
    return go(f"{base_path()}{quote(request.path)}{query}")


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
        if application().around.on_refused is None:
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
