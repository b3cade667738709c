"""The documentation pages, which work without a network."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from werkzeug.wrappers import Response

from payment_sandbox.forms import Form, Text
from payment_sandbox.kernel.masking import mask
from payment_sandbox.loading import lazy
from payment_sandbox.orders.refusals import Unknown
from payment_sandbox.packaged import read_packaged
from payment_sandbox.projects.slots import Slot
from payment_sandbox.ui.docs.library import (
    FIRST_PAGE,
    MENU_NAMES,
    PAGE_GROUPS,
    PAGE_NAMES,
    overview,
    page,
    title,
)
from payment_sandbox.ui.templates import CACHE_HEADERS, render, serve_assets
from payment_sandbox.web.answers.records import OpenApi
from payment_sandbox.web.browsers import HTML, is_browser
from payment_sandbox.web.call import Call
from payment_sandbox.web.error_answers import answer_for, without_keys
from payment_sandbox.web.faces import Face, with_headers
from payment_sandbox.web.routes import RouteGroup, route

if TYPE_CHECKING:
    from payment_sandbox.ui.docs import rendering, sections
    from payment_sandbox.web import openapi
else:
    rendering = lazy("payment_sandbox.ui.docs.rendering")
    sections = lazy("payment_sandbox.ui.docs.sections")
    openapi = lazy("payment_sandbox.web.openapi")

WORDS_LENGTH_MAX: Final = 200


class SearchQuery(Form):
    """The search form."""

    q = Text(about="Words; a section must contain half of them.")


HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
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

FLOW_NAME: Final = re.compile("[a-z-]+")
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


@route(docs, "GET", "/docs/search/", query=SearchQuery, **PAGE_METADATA)
def get_search(call: Call) -> Response:
    """Search the documentation."""
    words = call.request.args.get("q", "")[:WORDS_LENGTH_MAX]
    return _page_response(
        call,
        "docs/search.html",
        title="Search",
        name="",
        words=mask(without_keys(call.site.registry, words)),
        results=sections.search(words),
    )


@route(docs, "GET", "/docs/flows/<name>.svg", media_type="image/svg+xml", errors=(404,), slow=True)
def get_flow(call: Call, name: str) -> Response:
    """Get the picture of a flow."""
    if not FLOW_NAME.fullmatch(name):
        raise Unknown(f"the documentation has no flow {name!r}")
    try:
        text = read_packaged(f"ui/docs/pages/flows/{name}.svg")
    except OSError:
        raise Unknown(f"the documentation has no flow {name!r}") from None
    return Response(text, mimetype="image/svg+xml", headers=CACHE_HEADERS)


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
    response = _page_response(
        call, "docs/nothing.html", title="Page not found", name="", path=call.request.path
    )
    response.status_code = NOT_FOUND
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _render_page(call: Call, name: str) -> str:
    body = rendering.render(page(name, call.site.public_url), f"{call.site.base_path}/docs/")
    place = PAGE_NAMES.index(name)
    before = PAGE_NAMES[place - 1] if place else None
    after = MENU_NAMES[place + 1] if place + 1 < len(MENU_NAMES) else None
    neighbours = [(other, title(other)) if other is not None else None for other in (before, after)]
    return _render_template(
        call, "docs/page.html", title=title(name), name=name, body=body, neighbours=neighbours
    )


def _page_response(call: Call, template: str, **more: Any) -> Response:
    return Response(_render_template(call, template, **more), content_type=HTML)


def _render_template(call: Call, template: str, **more: Any) -> str:
    groups = {group: [(other, title(other)) for other in names] for group, names in PAGE_GROUPS.items()}
    return render(call, template, groups=groups, docs=f"{call.site.base_path}/docs/", **more)
