"""Renders Markdown as HTML, with heading anchors, links between pages, and scrollable tables."""

import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise
from typing import Any, Final, NamedTuple

from payment_sandbox import extensions
from payment_sandbox.extensions import markdown_it

PAGE_LINK: Final = re.compile(r"^([a-z-]+)\.md(#.*)?$")
RULE_ID: Final = re.compile("`?([A-Z]+-[0-9]+|A[0-9]+)`?")
FOCUSABLE: Final = 'tabindex="0"'  # scrollable elements must be reachable by keyboard
TOC_TAGS: Final = ("h2", "h3")


class Heading(NamedTuple):
    """A heading of a page, for its table of contents."""

    level: str
    anchor: str
    text: str


class RenderedPage(NamedTuple):
    """A page as HTML, and its headings."""

    html: str
    headings: Sequence[Heading]


def render(text: str, docs_path: str) -> RenderedPage:
    """Render a page; ``docs_path``, such as ``/docs/``, is the prefix of its links."""
    markdown = _markdown()
    markdown.add_render_rule("fence", _render_fence)
    markdown.add_render_rule("table_open", lambda *_: f'<div class="wide" {FOCUSABLE}><table>\n')
    markdown.add_render_rule("table_close", lambda *_: "</table></div>\n")
    tokens = markdown.parse(text)
    seen = set()
    for row, cell, content in zip(tokens, tokens[1:], tokens[2:], strict=False):
        rule = (
            RULE_ID.fullmatch(content.content) if row.type == "tr_open" and cell.type == "td_open" else None
        )
        if rule is not None and rule[1] not in seen:
            seen.add(rule[1])
            row.attrSet("id", rule[1].lower())
    for token in _walk(tokens):
        link = PAGE_LINK.match(str(token.attrGet("href") or ""))
        if link is not None:
            token.attrSet("href", f"{docs_path}{link[1]}/{link[2] or ''}")
    return RenderedPage(markdown.renderer.render(tokens, markdown.options, {}), list(_headings(tokens)))


def _markdown() -> "markdown_it.MarkdownIt":
    markdown = markdown_it.MarkdownIt("commonmark", {"html": False}).enable("table")
    return markdown.use(extensions.anchors.anchors_plugin, max_level=3)


def anchors(text: str) -> Iterator[str]:
    """Yield the anchor of each heading of a page, except for its title."""
    return (heading.anchor for heading in _headings(_markdown().parse(text)))


def _headings(tokens: "Sequence[markdown_it.token.Token]") -> Iterator[Heading]:
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open" and opening.tag in TOC_TAGS:
            words = "".join(child.content for child in inline.children or ())
            yield Heading(opening.tag, str(opening.attrGet("id")), words)


def _walk(tokens: "Sequence[markdown_it.token.Token]") -> "Iterator[markdown_it.token.Token]":
    for token in tokens:
        yield token
        yield from _walk(token.children or ())


def _render_fence(self: Any, tokens: Sequence[Any], index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    language, _, file = token.info.strip().partition(" ")
    code = escape(token.content)
    block = f'<pre {FOCUSABLE}><code class="language-{escape(language)}">{code}</code></pre>\n'
    if not file:
        return block
    return f'<figure class="file"><figcaption><code>{escape(file)}</code></figcaption>{block}</figure>\n'
