"""Who is asking: the API key in the Basic header selects the project."""

from flask import current_app, g, request

from sandbox.projects.project import Project
from sandbox.projects.registry import Registry
from sandbox.web.errors import RequestRefused

CHALLENGE = {"WWW-Authenticate": 'Basic realm="payment orders sandbox", charset="UTF-8"'}


def registry() -> Registry:
    """All projects of this server."""
    found: Registry = current_app.extensions["registry"]
    return found


def project() -> Project:
    """The project of this request; ``require_project`` has found it."""
    found: Project = g.project
    return found


def require_project() -> None:
    """Find the request's project by its API key, the user name of HTTP Basic (AUTH-01, AUTH-02).

    Raises:
        RequestRefused: 401, without a header, with a broken one, or with a key that nobody has.
    """
    if request.routing_exception is not None:
        return  # an unknown path or method is told so, whoever asks
    authorization = request.authorization
    if authorization is None or authorization.type != "basic" or not authorization.username:
        raise RequestRefused(401, "send 'Authorization: Basic' with your API key as the user name", CHALLENGE)
    found = registry().find(authorization.username)
    if found is None:
        raise RequestRefused(401, "no project has this API key", CHALLENGE)
    g.project = found
