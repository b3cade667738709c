"""Markdown to HTML: heading anchors, links between pages, scrollable tables."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.anchors import anchors_plugin

PAGE_LINK: Final = re.compile(r"^([a-z-]+)\.md(#.*)?$")
FOCUSABLE: Final = 'tabindex="0"'  # scrollable elements must be reachable by keyboard
LISTED: Final = ("h2", "h3")


class Heading(NamedTuple):
    """A heading of a page, for its table of contents."""

    level: str
    anchor: str
    text: str


class Rendered(NamedTuple):
    """A page as HTML, and its headings."""

    html: str
    headings: Sequence[Heading]


def render(text: str, docs_path: str) -> Rendered:
    """Render a page; ``docs_path``, such as ``/docs/``, is the prefix of its links."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table").use(anchors_plugin, max_level=3)
    markdown.add_render_rule("fence", _fence)
    markdown.add_render_rule("table_open", _table_open)
    markdown.add_render_rule("table_close", _table_close)
    tokens = markdown.parse(text)
    for token in _all(tokens):
        link = PAGE_LINK.match(str(token.attrGet("href") or ""))
        if link is not None:
            token.attrSet("href", f"{docs_path}{link[1]}/{link[2] or ''}")
    return Rendered(markdown.renderer.render(tokens, markdown.options, {}), list(_headings(tokens)))


def _headings(tokens: Sequence[Token]) -> Iterator[Heading]:
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open" and opening.tag in LISTED:
            words = "".join(child.content for child in inline.children or ())
            yield Heading(opening.tag, str(opening.attrGet("id")), words)


def _all(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _all(token.children or ())


def _fence(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return str(self.fence(tokens, index, options, env)).replace("<pre>", f"<pre {FOCUSABLE}>", 1)


def _table_open(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return f'<div class="wide" {FOCUSABLE}><table>\n'


def _table_close(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return "</table></div>\n"
