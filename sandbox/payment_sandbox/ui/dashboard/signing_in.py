"""Access to projects: open if the server has no control token, by sign-in if it has one."""

import hmac
from typing import Final

from flask import Response

from payment_sandbox.projects.project import Project
from payment_sandbox.web.auth import is_from_here
from payment_sandbox.web.call import Call

COOKIE: Final = "sandbox_dashboard"
ALL_PROJECTS: Final = "*"
PROJECTS_MAX: Final = 20  # the limit for one cookie
COOKIE_SECONDS: Final = 12 * 60 * 60
COOKIE_PATH: Final = "/dashboard"
START_ID_LENGTH: Final = 8
OLD_FORM: Final = "The server was restarted. Load the page and click again."
OTHER_FORM: Final = "This form belongs to another project. Load the page of this project and click again."
FOREIGN_FORM: Final = (
    "This form does not come from this sandbox. Open the sandbox's own page and click there."
)


def is_open(call: Call) -> bool:
    """Whether the dashboard needs no sign-in: on this machine, unless the server has a control token."""
    return call.site.control_token is None and is_from_here(call)


def _grants(call: Call) -> dict[str, int]:
    """Return the projects of the cookie, ``*`` for all, with the second at which each grant expires."""
    grants, _, signature = call.request.cookies.get(COOKIE, "").rpartition("|")
    if not hmac.compare_digest(signature.encode(), _sign(call, f"cookie/{grants}").encode()):
        return {}
    expiries = {
        grant: int(second) for grant, _, second in (part.rpartition(".") for part in grants.split(","))
    }
    return {grant: second for grant, second in expiries.items() if second > _now_second(call)}


def _now_second(call: Call) -> int:
    return int(call.site.registry.services.real.wall_now().timestamp())


def visible_projects(call: Call) -> list[Project]:
    """Return the projects visible to the browser."""
    if is_open(call):
        return call.site.registry.all()
    grants = _grants(call)
    return [
        project
        for project in call.site.registry.all()
        if ALL_PROJECTS in grants or project.project_id in grants
    ]


def may_see(call: Call, project: Project) -> bool:
    """Whether the browser may see a project."""
    return is_open(call) or not _grants(call).keys().isdisjoint((ALL_PROJECTS, project.project_id))


def may_create(call: Call) -> bool:
    """Whether the browser may create projects: on an open server, or with the control token."""
    return is_open(call) or ALL_PROJECTS in _grants(call)


def grant_for(call: Call, secret: str) -> str | None:
    """Return the grant for a control token or an API key: all projects, one project, or None."""
    token = call.site.control_token
    if token is not None and hmac.compare_digest(secret.encode(), token.encode()):
        return ALL_PROJECTS
    project = call.site.registry.find(secret) if secret else None
    return project.project_id if project is not None else None


def sign_in(call: Call, response: Response, grant: str) -> Response:
    """Add a grant to the cookie, which scripts cannot read and other sites cannot send."""
    others = sorted((other, second) for other, second in _grants(call).items() if other != grant)
    newest = (grant, _now_second(call) + COOKIE_SECONDS)
    grants = ",".join(f"{name}.{second}" for name, second in [newest, *others[: PROJECTS_MAX - 1]])
    return _with_cookie(call, response, f"{grants}|{_sign(call, f'cookie/{grants}')}")


def sign_out(call: Call, response: Response) -> Response:
    """Delete the cookie with all grants."""
    return _with_cookie(call, response, "")


def form_token(call: Call, project_id: str) -> str:
    """Return the anti-forgery token for a project's forms."""
    return f"{_server_start_id(call)}.{_sign(call, f'form/{project_id}')}"


def form_problem(call: Call, project_id: str) -> str:
    """Explain the refusal of a cross-site post; empty for the project's own forms."""
    token = call.request.form.get("token", "")
    if hmac.compare_digest(token.encode(), form_token(call, project_id).encode()):
        return ""
    start_id, _, signature = token.partition(".")
    if not signature:
        return FOREIGN_FORM
    return OTHER_FORM if start_id == _server_start_id(call) else OLD_FORM


def _server_start_id(call: Call) -> str:
    """Return a value for each start of the server, to recognize older pages."""
    return _sign(call, "start")[:START_ID_LENGTH]


def _with_cookie(call: Call, response: Response, value: str) -> Response:
    path = f"{call.site.base_path}{COOKIE_PATH}"
    state = call.site
    is_proxy_secure = state.public_url.startswith("https:") and not state.server_context.speaks_tls
    is_secure = call.request.is_secure or is_proxy_secure
    if value:
        response.set_cookie(
            COOKIE,
            value,
            max_age=COOKIE_SECONDS,
            path=path,
            httponly=True,
            samesite="Strict",
            secure=is_secure,
        )
    else:
        response.delete_cookie(COOKIE, path=path, httponly=True, samesite="Strict", secure=is_secure)
    return response


def _sign(call: Call, text: str) -> str:
    return hmac.new(call.site.forgery_secret, f"dashboard {text}".encode(), "sha256").hexdigest()
