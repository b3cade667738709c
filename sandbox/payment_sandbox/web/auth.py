"""Access control: the API key selects the project; calls from other sites' pages are refused."""

import logging
from functools import lru_cache
from ipaddress import ip_address
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

from flask import Response
from werkzeug.datastructures import Authorization

from payment_sandbox.kernel.masking import Masking
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.registry import DamagedProject
from payment_sandbox.web.browsers import redirect
from payment_sandbox.web.call import Call
from payment_sandbox.web.error_bodies import RequestRefused

CHALLENGE = {"WWW-Authenticate": 'Basic realm="payment orders sandbox", charset="UTF-8"'}


@lru_cache(maxsize=1024)
def parse_api_key(header: str | None) -> str | None:
    """Parse the user name in a Basic header; cached, because clients repeat the same header."""
    if header is None or not header.isascii():
        return None
    try:
        authorization = Authorization.from_header(header)
    except ValueError:  # Werkzeug before 2.3.5 raises it for some invalid base64
        return None
    if authorization is None or authorization.type != "basic":
        return None
    return authorization.username


def _sent_key(call: Call) -> str | None:
    return parse_api_key(call.request.environ.get("HTTP_AUTHORIZATION"))


def find_damaged(call: Call) -> DamagedProject | None:
    """Find the project of the API key, if it cannot be read."""
    return call.site.registry.find_damaged(_sent_key(call) or "")


def find_project(call: Call) -> Project | None:
    """Find the project of the API key, if any."""
    return call.site.registry.find(_sent_key(call) or "")


def require_project(call: Call) -> None:
    """Find the project by its API key, the user name of HTTP Basic (AUTH-01, AUTH-02).

    Raises:
        RequestRefused: 401 if the header is missing or malformed, or the key is unknown.
    """
    api_key = parse_api_key(call.request.environ.get("HTTP_AUTHORIZATION"))
    if not api_key:
        raise RequestRefused(401, "send 'Authorization: Basic' with your API key as the user name", CHALLENGE)
    project = call.site.registry.find(api_key)
    if project is None:
        if (damaged := call.site.registry.find_damaged(api_key)) is not None:
            about = f"project {damaged.project_id} is damaged, and its records stay as they are"
            raise RequestRefused(503, f"{about}: {damaged.problem}; DELETE /control/project/ deletes it")
        raise RequestRefused(401, "no project has this API key", CHALLENGE)
    call.project = project
    project.masking.api_key = api_key
    project.note_use()


def redirect_without_secrets(call: Call) -> Response | None:
    """Redirect to the same page without secrets in the query, because pages contain their URL."""
    project = call.site.registry.find_by_id(call.values.get("project_id", ""))
    masking = project.masking.without_short_key() if project is not None else Masking()
    request = call.request
    sent = list(request.args.items(multi=True))
    harmless = [(name, text) for name, text in sent if masking.mask_record({name: text}) == {name: text}]
    if request.method != "GET" or harmless == sent or masking.mask_text(request.path) != request.path:
        return None
    query = f"?{urlencode(harmless)}" if harmless else ""
    return redirect(f"{call.site.base_path}{quote(request.path)}{query}")


PROBLEM_LENGTH_MAX: Final = 300

log = logging.getLogger(__name__)


def _sent_host(call: Call) -> str:
    """Return the Host header; Werkzeug drops one with an underscore, such as a Compose service."""
    host: str = call.request.environ.get("HTTP_HOST") or call.request.host
    return host


def has_known_host(call: Call) -> bool:
    """Whether the Host is an address, or one of the names of this server."""
    host = _host_name(call.request.environ.get("HTTP_HOST") or call.request.host)
    return host in call.site.hosts or _is_literal(host) or host.endswith(".localhost")


def is_from_here(call: Call) -> bool:
    """Whether the client is on this machine."""
    try:
        address = ip_address(call.request.environ.get("REMOTE_ADDR", ""))
    except ValueError:  # a Unix socket, through which a proxy may send others' calls
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def refuse_foreign_host(call: Call) -> None:
    """Refuse an unknown Host, which web pages would send after DNS rebinding.

    IP addresses are safe, because DNS rebinding needs a host name.

    Raises:
        RequestRefused: 403.
    """
    if not has_known_host(call):
        host = _host_name(_sent_host(call))
        problem = (
            f"unknown host name {host!r}; to allow it, start the server with --allow-host {host or 'NAME'}"
        )
        if call.site.server_context.on_refused is None:
            _log_once(problem[:PROBLEM_LENGTH_MAX])
        raise RequestRefused(403, problem)


def refuse_cross_site(call: Call) -> None:
    """Refuse an unknown Host, and the Origin of another site's page.

    Raises:
        RequestRefused: 403.
    """
    refuse_foreign_host(call)
    request = call.request
    origin = request.headers.get("Origin")
    own = (_sent_host(call).lower(), _url_part("netloc", call.site.public_url).lower())
    if origin is not None and _url_part("netloc", origin).lower() not in own:
        raise RequestRefused(403, f"pages from {origin!r} may not call this server")


@lru_cache(maxsize=128)
def _log_once(problem: str) -> None:
    """Log a refusal once, because the caller may not see it, for example behind a proxy."""
    log.warning("a request was refused: %s", problem)


@lru_cache(maxsize=256)
def _is_literal(host: str) -> bool:
    try:
        return bool(ip_address(host))
    except ValueError:
        return False


@lru_cache(maxsize=256)
def _host_name(host: str) -> str:
    return _url_part("hostname", f"//{host}").removesuffix(".")


def _url_part(name: str, address: str) -> str:
    try:
        return getattr(urlsplit(address), name) or ""
    except ValueError:
        return ""
