"""The list of pages, in reading order."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Final

FIRST: Final = "quick-start"
WRITTEN_FOR: Final = "http://127.0.0.1:8080"
"""The server that the pages name."""

LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")
GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "Begin": (FIRST, "dashboard", "test-values"),
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
NAMES: Final = tuple(name for names in GROUPS.values() for name in names)


@cache
def written(name: str) -> str:
    """The Markdown of a page, as shipped in the package."""
    return files("payment_sandbox.web.docs").joinpath("pages", f"{name}.md").read_text(encoding="utf-8")


def title(name: str) -> str:
    """A page's title: its first line."""
    return written(name).splitlines()[0].removeprefix("# ")


ABOUT: Final = """# Payment orders sandbox

> A server that behaves like the payment-orders API, for tests of shops: orders, payment pages, captures,
> refunds, stored cards and webhooks. Whoever runs it decides what happens, and moves its clock.

The merchant API is at /v1/ (HTTP Basic: the API key, and no password), the control API at /control/, and the
OpenAPI description of both at /openapi.json. The first project has the key sandbox-key.
"""


TO_READ: Final = ("agents", FIRST, "webhooks", "mistakes", "pytest")
"""The pages that a program reads first, in this order."""

READING: Final = """## Read these five pages

In this order, and look up the rest when you need it. In other languages than Python, read "Other languages"
instead of "pytest". `payment-sandbox skill` prints the first as a skill, and `payment-sandbox mcp` offers the
sandbox as tools.
"""


def overview(address: str) -> str:
    """All pages with what they are about, as Markdown; ``address`` is where the documentation is."""

    def listed(names: Iterable[str]) -> str:
        return "\n".join(f"- [{title(name)}]({address}{name}.md): {about(name)}" for name in names)

    rest = {group: [name for name in names if name not in TO_READ] for group, names in GROUPS.items()}
    groups = [f"## {group}\n\n{listed(names)}" for group, names in rest.items()]
    return "\n\n".join([ABOUT.rstrip(), READING.rstrip(), listed(TO_READ), *groups]) + "\n"


SKILL: Final = """---
name: payment-orders
description: Integrate a shop with the payment-orders API, and prove it against its sandbox. Use for code that
  creates payment orders, handles their webhooks, captures, voids or refunds.
---

"""
PAGE: Final = re.compile(r"\]\(([a-z-]+)\.md")


def skill() -> str:
    """A skill for coding agents: how to integrate, how to check each step, and what must never be done."""
    return SKILL + PAGE.sub(rf"]({WRITTEN_FOR}/docs/\1.md", written("agents"))


def about(name: str) -> str:
    """The first sentence of a page, without its links."""
    paragraph = written(name).split("\n\n")[1].replace("\n", " ")
    sentence = LINK.sub(r"\1", paragraph).partition(". ")[0].rstrip(".:")
    return f"{sentence}."
