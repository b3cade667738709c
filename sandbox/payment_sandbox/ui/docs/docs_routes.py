"""The documentation pages, which work without a network."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
    read_source,
    title,
)
from payment_sandbox.ui.templates import render
from payment_sandbox.web.answers.records import OpenApi
from payment_sandbox.web.browsers import HTML, is_browser
from payment_sandbox.web.call import Call
from payment_sandbox.web.error_answers import answer_for, without_keys
from payment_sandbox.web.faces import Face, with_headers
from payment_sandbox.web.routes import RouteGroup, route

if TYPE_CHECKING:
    from payment_sandbox.ui.docs import rendering
    from payment_sandbox.web import openapi
else:
    rendering = lazy("payment_sandbox.ui.docs.rendering")
    openapi = lazy("payment_sandbox.web.openapi")

WORDS_LENGTH_MAX: Final = 200
RESULTS_MAX: Final = 30
STOP_WORDS: Final = ("a", "an", "and", "for", "how", "in", "is", "of", "on", "or", "the", "to", "with")
WORD_ENDINGS: Final = ("ies", "ing", "ed", "es", "s", "y")
STEM_LENGTH_MIN: Final = 4
TITLE_SCORE: Final = 3
HEADING_SCORE: Final = 2


class SearchQuery(Form):
    """The search form."""

    q = Text(about="Words; a title with its heading must contain half of them.")


class Section(NamedTuple):
    """A part of a page under one heading."""

    page: str
    page_title: str
    anchor: str
    heading: str


def search(words: str) -> list[Section]:
    """Find the sections whose titles and headings contain most of the words, best first."""
    return matching_sections(search_index(), words)


def search_text(words: str) -> list[Section]:
    """Find the sections whose texts contain at least half of the words, best first."""
    stems = [_stem(word) for word in words.casefold().split() if word not in STOP_WORDS]
    scored = []
    for name in PAGE_NAMES:
        for heading, text in _split_page(read_source(name)):
            count = sum(stem in text for stem in stems)
            if count and count * 2 >= len(stems):
                scored.append((count, Section(name, title(name), "", heading)))
    return [section for _, section in sorted(scored, key=lambda each: each[0], reverse=True)][:RESULTS_MAX]


def _split_page(source: str) -> Iterator[tuple[str, str]]:
    """Yield each heading of a page with the text below it in lower case; code may contain hash signs."""
    heading, lines, is_code = "", list[str](), False
    for line in source.splitlines():
        is_code ^= line.startswith("```")
        if line.startswith("#") and not is_code:
            yield heading, "\n".join(lines).casefold()
            heading, lines = line.lstrip("# "), []
        lines.append(line)
    yield heading, "\n".join(lines).casefold()


def matching_sections(sections: Iterable[Section], words: str) -> list[Section]:
    """Return the sections whose title and heading contain at least half of the words, best first."""
    stems = [_stem(word) for word in words.casefold().split() if word not in STOP_WORDS]
    scored = [(_score(section, stems), section) for section in sections]
    matching = [(score, section) for score, section in scored if score[0] and score[0] * 2 >= len(stems)]
    return [section for _, section in sorted(matching, key=lambda item: item[0], reverse=True)][:RESULTS_MAX]


class DirectAnswer(NamedTuple):
    """The answer to a search for a feature that the service lacks, and the page to read instead."""

    text: str
    page: str
    anchor: str = ""


NO_IDEMPOTENCY_KEYS: Final = DirectAnswer(
    "The service has no idempotency keys. After a lost response, look for the order before you call again.",
    "mistakes",
    "after-a-lost-response",
)
NO_DISPUTES: Final = DirectAnswer(
    "The service has no chargebacks and no disputes: only refunds return money.", "refunds"
)
NO_SIGNATURES: Final = DirectAnswer(
    "Webhooks have no signature and no status. Read the order, and trust only the response.",
    "mistakes",
    "read-the-order",
)
ANSWERS_BY_PREFIX: Final = {
    "idempoten": NO_IDEMPOTENCY_KEYS,
    "chargeback": NO_DISPUTES,
    "dispute": NO_DISPUTES,
    "signature": NO_SIGNATURES,
    "signed": NO_SIGNATURES,
    "hmac": NO_SIGNATURES,
    "ideal": DirectAnswer(
        "There is no method named iDEAL. Dutch customers pay at their bank with bank-redirect-nl.",
        "hosted-page",
        "redirect",
    ),
    "klarna": DirectAnswer(
        "There is no method named Klarna. Customers who pay later use pay-later-a or invoice-later-b.",
        "authorization-and-capture",
        "pay-later",
    ),
}
"""The answers, by the prefix of a search word."""


def direct_answers(words: str) -> list[DirectAnswer]:
    """Return the direct answers to these search words, without duplicates."""
    typed = words.casefold().split()
    answers = (
        answer for name, answer in ANSWERS_BY_PREFIX.items() if any(word.startswith(name) for word in typed)
    )
    return list(dict.fromkeys(answers))


@cache
def search_index() -> Sequence[Section]:
    """Return all sections of all pages, built on the first search."""
    return [
        Section(name, title(name), anchor, heading)
        for name in PAGE_NAMES
        for anchor, heading in [("", ""), *rendering.headings(read_source(name))]
    ]


def _stem(word: str) -> str:
    """Return the stem of a word, so that ``retry`` also finds ``retries``."""
    for ending in WORD_ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= STEM_LENGTH_MIN:
            return word.removesuffix(ending)
    return word


def _score(section: Section, stems: list[str]) -> tuple[int, int]:
    """Count the words in the title or the heading, and weigh them."""
    title_, heading = section.page_title.casefold(), section.heading.casefold()
    weights = [TITLE_SCORE * (word in title_) + HEADING_SCORE * (word in heading) for word in stems]
    return sum(map(bool, weights)), sum(weights)


ASSETS: Final = {"docs.css": "text/css", "docs.js": "text/javascript"}
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
CACHE_HEADERS: Final = {"Cache-Control": "max-age=3600"}
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
    results = search(words)
    return _page_response(
        call,
        "docs/search.html",
        title="Search",
        name="",
        words=mask(without_keys(call.site.registry, words)),
        results=results,
        answers=direct_answers(words),
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


@route(docs, "GET", "/docs/assets/<name>", media_type="text/css", errors=(404,))
def get_asset(call: Call, name: str) -> Response:
    """Get the stylesheet or the script of the documentation."""
    if name not in ASSETS:
        raise Unknown(f"there is no asset {name!r}")
    text = read_packaged(f"ui/docs/assets/{name}")
    return Response(text, mimetype=ASSETS[name], headers=CACHE_HEADERS)


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
