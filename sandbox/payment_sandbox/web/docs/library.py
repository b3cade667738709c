"""The list of pages, in reading order."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

FIRST: Final = "quick-start"
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
    "Make it happen": ("time", "webhooks", "scenarios", "faults"),
    "In your framework": ("django", "fastapi", "flask", "async", "celery", "unittest"),
    "Use it": (
        "pytest",
        "rehearsal",
        "mistakes",
        "production",
        "verify",
        "languages",
        "ci",
        "command-line",
        "company",
        "https",
        "settings",
        "security",
    ),
    "Look it up": ("troubleshooting", "merchant-api", "control-api", "python", "errors", "fidelity"),
    "Work on it": ("contributing",),
}
NAMES: Final = tuple(name for names in GROUPS.values() for name in names)


@cache
def written(name: str) -> str:
    """The Markdown of a page, as shipped in the package."""
    return files("payment_sandbox.web.docs").joinpath("pages", f"{name}.md").read_text(encoding="utf-8")


def title(name: str) -> str:
    """A page's title: its first line."""
    return written(name).splitlines()[0].removeprefix("# ")
