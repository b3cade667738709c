"""The pages in reading order, the overview and the skill."""

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
    "Begin": (FIRST_PAGE, "dashboard", "test-values"),
    "Ways to pay": (
        "hosted-page",
        "redirect",
        "authorization-and-capture",
        "one-click-and-recurring",
        "pay-later",
        "bank-transfer",
        "bank-qr",
        "refunds",
    ),
    "Simulation": ("time", "webhooks", "scenarios", "faults"),
    "Frameworks": ("django", "fastapi", "flask", "async", "celery", "unittest", "shops"),
    "Tools and guides": (
        "pytest",
        "rehearsal",
        "mistakes",
        "production",
        "verify",
        "languages",
        "agents",
        "ci",
        "command-line",
        "company",
        "https",
        "settings",
        "security",
    ),
    "Reference": (
        "troubleshooting",
        "merchant-api",
        "control-api",
        "python",
        "errors",
        "fidelity",
        "versions",
    ),
    "Development": ("contributing",),
}
PAGE_NAMES: Final = tuple(name for names in PAGE_GROUPS.values() for name in names)


BLOCK_COMMENT: Final = re.compile(r"^<!-- .* -->\n\n?", re.MULTILINE)
"""The beginning or the end of a generated block."""


@cache
def read_source(name: str) -> str:
    """Return a page as Markdown, as shipped in the package."""
    return BLOCK_COMMENT.sub("", read_packaged(f"web/docs/pages/{name}.md").decode())


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


RECOMMENDED_PAGES: Final = ("agents", FIRST_PAGE, "webhooks", "mistakes", "pytest")
"""The recommended pages for coding agents, in reading order."""

READING_LIST: Final = """## Read these five pages

Read them in this order, and look up the others when you need them. In languages other than Python, read
"Other languages" instead of "pytest". `payment-sandbox skill` prints the first page as a skill, and
`payment-sandbox mcp` offers the sandbox as tools.
"""


def overview(address: str) -> str:
    """List all pages with their summaries, as Markdown; ``address`` is the URL of the documentation."""

    def format_list(names: Iterable[str]) -> str:
        return "\n".join(f"- [{title(name)}]({address}{name}.md): {summary(name)}" for name in names)

    others = {
        group: [name for name in names if name not in RECOMMENDED_PAGES]
        for group, names in PAGE_GROUPS.items()
    }
    groups = [f"## {group}\n\n{format_list(names)}" for group, names in others.items()]
    return (
        "\n\n".join([INTRODUCTION.rstrip(), READING_LIST.rstrip(), format_list(RECOMMENDED_PAGES), *groups])
        + "\n"
    )


SKILL_HEADER: Final = """---
name: payment-orders
description: Integrate a shop with the payment-orders API, and test it against its sandbox. Use for code that
  creates payment orders, handles their webhooks, captures, voids or refunds.
---

"""
PAGE_LINK: Final = re.compile(r"\]\(([a-z-]+)\.md")


def skill() -> str:
    """Return the skill for coding agents: steps of an integration with checks, and mistakes to avoid."""
    return SKILL_HEADER + PAGE_LINK.sub(rf"]({SAMPLE_URL}/docs/\1.md", read_source("agents"))


def summary(name: str) -> str:
    """Return the summary of a page: its first sentence, without links."""
    paragraph = read_source(name).split("\n\n")[1].replace("\n", " ")
    sentence = LINK.sub(r"\1", paragraph).partition(". ")[0].rstrip(".:")
    return f"{sentence}."
