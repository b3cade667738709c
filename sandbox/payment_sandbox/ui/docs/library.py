"""The pages in reading order and the overview."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from payment_sandbox.packaged import read_packaged

FIRST_PAGE: Final = "quick-start"
SAMPLE_URL: Final = "http://127.0.0.1:8080"
"""The server address in the commands of the pages."""

LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")
PAGE_GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "Start": (FIRST_PAGE, "test-values", "webhooks", "time", "pytest"),
    "Ways to pay": (
        "hosted-page",
        "authorization-and-capture",
        "one-click-and-recurring",
        "bank-transfer",
        "refunds",
    ),
    "Frameworks and languages": ("flask", "django", "fastapi", "node", "php", "languages"),
    "Tools": ("dashboard", "mistakes", "rehearsal", "scenarios", "agents"),
    "Reference": ("troubleshooting", "operation", "security", "reference"),
}
"""The menu, for people who test a shop."""

UNLISTED_PAGES: Final = ("fidelity", "versions", "works-with", "contributing")
"""Pages that other pages link to."""

MENU_NAMES: Final = tuple(name for names in PAGE_GROUPS.values() for name in names)
PAGE_NAMES: Final = (*MENU_NAMES, *UNLISTED_PAGES)


BLOCK_COMMENT: Final = re.compile(r"^<!-- .* -->\n\n?", re.MULTILINE)
"""The beginning or the end of a generated block."""


@cache
def read_source(name: str) -> str:
    """Return a page as Markdown, as shipped in the package."""
    return BLOCK_COMMENT.sub("", read_packaged(f"ui/docs/pages/{name}.md").decode())


def page(name: str, public_url: str) -> str:
    """Return a page as Markdown with ready-to-run commands for the server at ``public_url``."""
    return read_source(name).replace(SAMPLE_URL, public_url)


def title(name: str) -> str:
    """Return a page's title, which is its first line."""
    return read_source(name).splitlines()[0].removeprefix("# ")


INTRODUCTION: Final = """# Payment orders sandbox

> A server that behaves like the payment-orders API, for tests of shops: orders, payment pages, captures,
> refunds, stored cards and webhooks. You decide what happens, and control its clock.

The merchant API is at /v1/ (HTTP Basic: the API key, and no password), the control API at /control/, and the
OpenAPI description of both at /openapi.json. The first project has the key sandbox-key.
"""


READING_LIST: Final = """## Read these five pages

Read them in this order, and look up the others when you need them. In languages other than Python, read
"Node", "PHP" or "Other languages" instead of "pytest". `payment-sandbox mcp` offers the sandbox as tools.
"""


def overview(address: str) -> str:
    """List all pages with their summaries, as Markdown; ``address`` is the URL of the documentation."""

    def format_list(names: Iterable[str]) -> str:
        return "\n".join(f"- [{title(name)}]({address}{name}.md): {summary(name)}" for name in names)

    start, *others = PAGE_GROUPS
    groups = [f"## {group}\n\n{format_list(PAGE_GROUPS[group])}" for group in others]
    return (
        "\n\n".join([INTRODUCTION.rstrip(), READING_LIST.rstrip(), format_list(PAGE_GROUPS[start]), *groups])
        + "\n"
    )


def summary(name: str) -> str:
    """Return the summary of a page: its first sentence, without links."""
    paragraph = read_source(name).split("\n\n")[1].replace("\n", " ")
    sentence = LINK.sub(r"\1", paragraph).partition(". ")[0].rstrip(".:")
    return f"{sentence}."
