"""The documentation pages, which work without a network."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from werkzeug.wrappers import Response

from payment_sandbox.loading import lazy
from payment_sandbox.orders.refusals import Unknown
from payment_sandbox.projects.slots import Slot
from payment_sandbox.ui.docs.library import FIRST_PAGE, PAGE_GROUPS, PAGE_NAMES, overview, page, title
from payment_sandbox.ui.templates import render, serve_assets
from payment_sandbox.web.answers.records import OpenApi
from payment_sandbox.web.browsers import HTML, is_browser
from payment_sandbox.web.call import Call
from payment_sandbox.web.error_answers import answer_for
from payment_sandbox.web.faces import Face, with_headers
from payment_sandbox.web.routes import RouteGroup, route

if TYPE_CHECKING:
    from payment_sandbox.ui.docs import rendering
    from payment_sandbox.web import openapi
else:
    rendering = lazy("payment_sandbox.ui.docs.rendering")
    openapi = lazy("payment_sandbox.web.openapi")

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
NOT_FOUND: Final = 404
HTML_TYPE: Final = "text/html"
MARKDOWN_TYPE: Final = "text/markdown"
CONTROL_API: Final = "/control/"
PAGE_METADATA: Final[Mapping[str, Any]] = {"media_type": "text/html", "errors": (404,), "slow": True}

docs = RouteGroup("docs")

RENDER_CACHE: Final[Slot[dict[str, str]]] = Slot(dict)
"""A cache of rendered pages, by name."""


def show_error(call: Call, error: Exception) -> Response:
    """Show browsers a page for an unknown path; return JSON to programs."""
    page = show_unknown_path(call) if isinstance(error, Unknown) else None
    return page or answer_for(call, error)


FACE: Final = Face(docs, (with_headers(HEADERS),), show_error)

description = RouteGroup("description")


@route(description, "GET", "/openapi.json", answers=OpenApi, errors=(), slow=True)
def get_openapi(call: Call) -> Response:
    """Get the OpenAPI 3.1 description of both APIs."""
    return Response(openapi.openapi_text(call.site), mimetype="application/json")


DESCRIPTION: Final = Face(description, (), answer_for)


@route(docs, "GET", "/docs/", **PAGE_METADATA)
def get_first_page(call: Call) -> Response:
    """Show the first page, which is the quick start."""
    return get_page(call, FIRST_PAGE)


serve_assets(docs, "/docs/assets/", "docs", ("docs.css", "docs.js"))


@route(docs, "GET", "/docs/<name>.md", media_type="text/markdown", errors=(404,), slow=True)
def get_page_as_markdown(call: Call, name: str) -> Response:
    """Get a page of the documentation as Markdown, for programs."""
    _refuse_unknown(name)
    return Response(page(name, call.site.public_url), mimetype=MARKDOWN_TYPE)


@route(docs, "GET", "/llms.txt", media_type="text/plain", errors=(), slow=True)
def get_overview(call: Call) -> Response:
    """List the pages with their summaries, for programs."""
    return Response(overview(f"{call.site.public_url}/docs/"), mimetype="text/plain")


def _refuse_unknown(name: str) -> None:
    if name not in PAGE_NAMES:
        raise Unknown(f"the documentation has no page {name!r}", PAGE_NAMES)


@route(docs, "GET", "/docs/<name>/", **PAGE_METADATA)
def get_page(call: Call, name: str) -> Response:
    """Show a page of the documentation."""
    _refuse_unknown(name)
    if call.request.accept_mimetypes.best_match([HTML_TYPE, MARKDOWN_TYPE]) == MARKDOWN_TYPE:
        return get_page_as_markdown(call, name)
    cache = call.site.slots.of(RENDER_CACHE)
    if name not in cache:
        cache[name] = _render_page(call, name)
    return Response(cache[name], content_type=HTML, headers={"Vary": "Accept"})


def show_unknown_path(call: Call) -> Response | None:
    """Show browsers a page with links for an unknown path; return None for programs."""
    if not is_browser(call.request) or call.request.path.startswith(CONTROL_API):
        return None
    text = _render_template(
        call, "docs/nothing.html", title="Page not found", name="", path=call.request.path
    )
    response = Response(text, NOT_FOUND, content_type=HTML)
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _render_page(call: Call, name: str) -> str:
    body = rendering.render(page(name, call.site.public_url), f"{call.site.base_path}/docs/")
    return _render_template(call, "docs/page.html", title=title(name), name=name, body=body)


def _render_template(call: Call, template: str, **more: Any) -> str:
    groups = {group: [(other, title(other)) for other in names] for group, names in PAGE_GROUPS.items()}
    return render(call, template, groups=groups, docs=f"{call.site.base_path}/docs/", **more)
