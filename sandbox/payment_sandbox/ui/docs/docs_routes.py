"""The documentation pages, which work without a network."""

from collections.abc import Mapping
from typing import Any, Final

from flask import Response, current_app, render_template, request

from payment_sandbox.orders.refusals import Unknown
from payment_sandbox.projects.slots import Slot
from payment_sandbox.ui.docs import rendering
from payment_sandbox.ui.docs.library import FIRST_PAGE, PAGE_GROUPS, PAGE_NAMES, overview, page, title
from payment_sandbox.ui.templates import asset_answer
from payment_sandbox.web import openapi
from payment_sandbox.web.answers.records import OpenApiShape
from payment_sandbox.web.browsers import HTML, is_browser
from payment_sandbox.web.call import Call
from payment_sandbox.web.error_answers import answer_for
from payment_sandbox.web.routes import stated

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
PAGE_METADATA: Final[Mapping[str, Any]] = {"group": "docs", "media_type": "text/html", "errors": (404,)}

RENDER_CACHE: Final[Slot[dict[str, str]]] = Slot(dict)
"""A cache of rendered pages, by name."""


def admit_call(call: Call) -> None:
    """Admit every call: the documentation is public."""


def finish_call(call: Call, response: Response) -> Response:
    """Add the headers."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def answer_error(call: Call, error: Exception) -> Response:
    """Show browsers a page for an unknown page; return JSON to programs."""
    is_for_people = isinstance(error, Unknown) and is_browser(call.request)
    return nothing_page(call) if is_for_people else answer_for(call, error)


@stated(group="description", answers=OpenApiShape, errors=())
def get_openapi(call: Call) -> Response:
    """Get the OpenAPI 3.1 description of both APIs."""
    return Response(openapi.openapi_text(current_app), mimetype="application/json")


@stated(**PAGE_METADATA)
def get_first_page(call: Call) -> Response:
    """Show the first page, which is the quick start."""
    return get_page(call, FIRST_PAGE)


@stated(group="docs", media_type="text/css", errors=(404,))
def get_asset(call: Call, name: str) -> Response:
    """Get the stylesheet or the script."""
    return asset_answer("docs", ("docs.css", "docs.js"), name)


@stated(group="docs", media_type="text/markdown", errors=(404,))
def get_page_as_markdown(call: Call, name: str) -> Response:
    """Get a page of the documentation as Markdown, for programs."""
    _refuse_unknown(name)
    return Response(page(name, call.site.public_url), mimetype=MARKDOWN_TYPE)


@stated(group="docs", media_type="text/plain", errors=())
def get_overview(call: Call) -> Response:
    """List the pages with their summaries, for programs."""
    return Response(overview(f"{call.site.public_url}/docs/"), mimetype="text/plain")


def _refuse_unknown(name: str) -> None:
    if name not in PAGE_NAMES:
        raise Unknown(f"the documentation has no page {name!r}", PAGE_NAMES)


@stated(**PAGE_METADATA)
def get_page(call: Call, name: str) -> Response:
    """Show a page of the documentation."""
    _refuse_unknown(name)
    if call.request.accept_mimetypes.best_match([HTML_TYPE, MARKDOWN_TYPE]) == MARKDOWN_TYPE:
        return get_page_as_markdown(call, name)
    cache = call.site.slots.of(RENDER_CACHE)
    if name not in cache:
        body = rendering.render(page(name, call.site.public_url), f"{call.site.base_path}/docs/")
        cache[name] = _render_template("docs/page.html", title=title(name), name=name, body=body)
    return Response(cache[name], content_type=HTML, headers={"Vary": "Accept"})


def nothing_page(call: Call) -> Response:
    """Build a page with links for an unknown path."""
    text = _render_template("docs/nothing.html", title="Page not found", name="", path=call.request.path)
    return finish_call(call, Response(text, NOT_FOUND, content_type=HTML))


def _render_template(template: str, **more: Any) -> str:
    groups = {group: [(other, title(other)) for other in names] for group, names in PAGE_GROUPS.items()}
    return render_template(template, groups=groups, docs=f"{request.script_root}/docs/", **more)
