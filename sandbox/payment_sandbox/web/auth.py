"""Authentication: the API key in the Basic header selects the project."""

from functools import lru_cache

from werkzeug.datastructures import Authorization

from payment_sandbox.projects.project import Project
from payment_sandbox.projects.registry import Registry
from payment_sandbox.web.carried import application, exchange
from payment_sandbox.web.errors import RequestRefused

CHALLENGE = {"WWW-Authenticate": 'Basic realm="payment orders sandbox", charset="UTF-8"'}


def registry() -> Registry:
    """All projects of this server."""
    return application().registry


def project() -> Project:
    """The project of this request, as found by ``require_project``."""
    found = exchange().project
    assert found is not None, "require_project has not run"
    return found


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
    found = registry().find(api_key)
    if found is None:
        raise RequestRefused(401, "no project has this API key", CHALLENGE)
    exchange().project = found
    found.masking.api_key = api_key
    return found


def select_project() -> None:
    """Run ``require_project`` before each request of a blueprint."""
    require_project()
