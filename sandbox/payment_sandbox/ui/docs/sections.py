"""Sections of the pages, for the command ``docs``."""

from itertools import takewhile
from typing import NamedTuple

from payment_sandbox.orders.refusals import Unknown
from payment_sandbox.ui.docs.library import PAGE_NAMES, read_source
from payment_sandbox.ui.docs.rendering import anchors


class Section(NamedTuple):
    """A part of a page under one heading, without its subsections; the first one has no heading."""

    level: int  # the number of hash signs before the heading; 1 for the whole page
    anchor: str
    text: str


def section(reference: str) -> str:
    """Return a page or a section of one, such as ``mistakes#read-the-order``, as Markdown.

    Raises:
        Unknown: there is no such page or section.
    """
    name, _, anchor = reference.rpartition("/docs/")[2].replace("/#", "#").rstrip("/").partition("#")
    if name not in PAGE_NAMES:
        raise Unknown(f"there is no page {name!r}; the pages are: {', '.join(PAGE_NAMES)}")
    lines, is_code = read_source(name).splitlines(), False
    starts = [(0, 1)]
    for number, line in enumerate(lines):
        is_code ^= line.startswith("```")
        if line.startswith(("## ", "### ")) and not is_code:
            starts.append((number, line.index(" ")))
    ends = [number for number, _ in starts[1:]] + [len(lines)]
    sections = [
        Section(level, anchor, "\n".join(lines[start:end]))
        for (start, level), end, anchor in zip(starts, ends, ["", *anchors(read_source(name))], strict=True)
    ]
    at = next((index for index, each in enumerate(sections) if each.anchor == anchor), None)
    if at is None:
        known = ", ".join(each.anchor for each in sections[1:])
        raise Unknown(f"{name} has no section {anchor!r}; it has: {known}")
    inner = takewhile(lambda each: each.level > sections[at].level, sections[at + 1 :])
    return "\n".join(each.text for each in (sections[at], *inner)).rstrip()
