"""Sections of the documentation, for the command ``docs``."""

from payment_sandbox.fidelity.ledger import rule_texts
from payment_sandbox.judge.lessons import LESSONS
from payment_sandbox.orders.refusals import Unknown
from payment_sandbox.ui.docs.library import PAGE_NAMES, read_source, skill
from payment_sandbox.ui.docs.rendering import headings

__all__ = ["section", "skill"]


def section(reference: str) -> str:
    """Return a page, a section of one (``mistakes#read-the-order``) or a rule with its advice, as Markdown.

    Raises:
        Unknown: there is no such page, section or rule.
    """
    rule = reference.upper()
    texts = rule_texts()
    if rule in texts:
        lesson = LESSONS.get(rule)
        advice = f"\n\n{section(f'mistakes#{lesson.section}')}" if lesson is not None else ""
        return f"{rule}: {texts[rule]}{advice}"
    name, _, anchor = reference.rpartition("/docs/")[2].replace("/#", "#").rstrip("/").partition("#")
    if name not in PAGE_NAMES:
        raise Unknown(f"there is no page and no rule {name!r}; the pages are: {', '.join(PAGE_NAMES)}")
    sections = _sections(read_source(name))
    if anchor not in ("", *sections):
        raise Unknown(f"{name} has no section {anchor!r}; it has: {', '.join(sections)}")
    return sections[anchor] if anchor else read_source(name).rstrip()


def _sections(source: str) -> dict[str, str]:
    """Return the sections of a page by their anchors, each with its subsections."""
    starts, is_code = [], False
    lines = source.splitlines()
    for number, line in enumerate(lines):
        is_code ^= line.startswith("```")
        if line.startswith(("## ", "### ")) and not is_code:
            starts.append((number, line.index(" ")))
    sections = {}
    for (number, level), (anchor, _) in zip(starts, headings(source), strict=True):
        ends = (other for other, deep in starts if other > number and deep <= level)
        sections[anchor] = "\n".join(lines[number : next(ends, len(lines))]).rstrip()
    return sections
