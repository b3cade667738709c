"""Serves the documentation; it needs no network."""

from importlib.resources import files
from typing import Final

from flask import Blueprint, Response, render_template

from payment_sandbox.orders.refusals import Unknown
from payment_sandbox.web.addresses import base_path
from payment_sandbox.web.browsers import HTML
from payment_sandbox.web.carried import application
from payment_sandbox.web.docs.library import FIRST, GROUPS, NAMES, title
from payment_sandbox.web.routes import route

STYLE: Final = "docs.css"
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

docs = Blueprint("docs", __name__, template_folder="templates")


@docs.after_request
def secure(response: Response) -> Response:
    """Set security headers that allow only text and styles."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


@route(docs, "GET", "/docs/", media_type="text/html", errors=(), slow=True)
def get_first_page() -> Response:
    """Show the quick start."""
    return get_page(FIRST)


@route(docs, "GET", "/docs/<name>/", media_type="text/html", errors=(404,), slow=True)
def get_page(name: str) -> Response:
    """Show a page of the documentation."""
    if name not in NAMES:
        raise Unknown(f"the documentation has no page {name!r}", NAMES)
    made = application().docs
    if name not in made:
        made[name] = _page(name)
    return Response(made[name], content_type=HTML)


@route(docs, "GET", f"/docs/{STYLE}", media_type="text/css", errors=())
def get_style() -> Response:
    """Get the stylesheet of the documentation."""
    text = files("payment_sandbox.web.docs").joinpath("assets", STYLE).read_bytes()
    return Response(text, mimetype="text/css", headers={"Cache-Control": "max-age=3600"})


def _page(name: str) -> str:
    from payment_sandbox.web.docs.contents import page  # imported late: faster startup
    from payment_sandbox.web.docs.rendering import render

    shown = page(name, application().public_url)
    here = f"{base_path()}/docs/"
    groups = {group: [(other, title(other)) for other in names] for group, names in GROUPS.items()}
    body = render(shown.text, here)
    return render_template("docs/page.html", page=shown, body=body, groups=groups, docs=here)
