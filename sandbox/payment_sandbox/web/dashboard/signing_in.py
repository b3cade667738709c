"""Who may see which projects: everybody on loopback without a control token, else whoever signed in."""

import hmac
from typing import Final

from flask import Response, request

from payment_sandbox.projects.project import Project
from payment_sandbox.web.addresses import base_path
from payment_sandbox.web.auth import registry
from payment_sandbox.web.carried import application

COOKIE: Final = "sandbox_dashboard"
ALL: Final = "*"
PROJECTS_MAX: Final = 20  # in one cookie
COOKIE_PATH: Final = "/dashboard"


def is_open() -> bool:
    """Whether nobody has to sign in: a server with a control token may be reached by others."""
    return application().control_token is None


def granted() -> frozenset[str]:
    """The ids of the projects that this browser has signed in to; ``*`` stands for all."""
    grants, _, sign = request.cookies.get(COOKIE, "").rpartition("|")
    if not hmac.compare_digest(sign.encode(), _sign(grants).encode()):
        return frozenset()
    return frozenset(grants.split(","))


def visible_projects() -> list[Project]:
    """The projects that this browser may see."""
    if is_open():
        return registry().all()
    grants = granted()
    return [project for project in registry().all() if ALL in grants or project.project_id in grants]


def may_see(project: Project) -> bool:
    """Whether this browser may see a project."""
    return is_open() or not granted().isdisjoint((ALL, project.project_id))


def grant_for(secret: str) -> str | None:
    """What a control token or an API key grants: all projects, one of them, or nothing."""
    token = application().control_token
    if token is not None and hmac.compare_digest(secret.encode(), token.encode()):
        return ALL
    project = registry().find(secret) if secret else None
    return project.project_id if project is not None else None


def sign_in(response: Response, grant: str) -> Response:
    """Remember a grant in a cookie that no script reads and no other site sends."""
    grants = ",".join([grant, *sorted(granted() - {grant, ""})[: PROJECTS_MAX - 1]])
    return _with_cookie(response, f"{grants}|{_sign(grants)}")


def sign_out(response: Response) -> Response:
    """Forget all grants."""
    return _with_cookie(response, "")


def form_token(project_id: str) -> str:
    """The token that the forms of a project's pages carry, against posts from elsewhere."""
    return _sign(f"form/{project_id}")


def is_own_form(project_id: str) -> bool:
    """Whether the post comes from one of our forms."""
    return hmac.compare_digest(request.form.get("token", "").encode(), form_token(project_id).encode())


def _with_cookie(response: Response, value: str) -> Response:
    path = f"{base_path()}{COOKIE_PATH}"
    state = application()
    is_proxy_secure = state.public_url.startswith("https:") and not state.around.speaks_tls
    is_secure = request.is_secure or is_proxy_secure
    if value:
        response.set_cookie(COOKIE, value, path=path, httponly=True, samesite="Strict", secure=is_secure)
    else:
        response.delete_cookie(COOKIE, path=path, httponly=True, samesite="Strict", secure=is_secure)
    return response


def _sign(text: str) -> str:
    return hmac.new(application().forgery_secret, f"dashboard {text}".encode(), "sha256").hexdigest()
