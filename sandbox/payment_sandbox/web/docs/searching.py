"""Searches the documentation: an index of all sections, made once."""

from functools import cache
from typing import Final, NamedTuple

from payment_sandbox.forms import Form, Text
from payment_sandbox.web.docs.library import NAMES, title

WORDS_LENGTH_MAX: Final = 200
FOUND_MAX: Final = 30
AROUND: Final = 80  # characters on each side of what was found
ENDINGS: Final = ("ies", "ing", "ed", "es", "s", "y")
STEM_MIN: Final = 4
IN_TITLE: Final = 3
IN_HEADING: Final = 2


class SearchQuery(Form):
    """What to search for."""

    q = Text(about="Words; sections that have all of them are found.")


class Section(NamedTuple):
    """A part of a page under one heading."""

    page: str
    page_title: str
    anchor: str
    heading: str
    text: str


class Found(NamedTuple):
    """A section that has all the words, with the text around the first one."""

    section: Section
    score: int
    excerpt: str


def search(words: str) -> list[Found]:
    """The sections with all the words, best first."""
    wanted = [_stem(word) for word in words.casefold().split()]
    if not wanted:
        return []
    found = [_found(section, wanted) for section in index() if _has_all(section, wanted)]
    return sorted(found, key=lambda item: -item.score)[:FOUND_MAX]


@cache
def index() -> tuple[Section, ...]:
    """All sections of all pages."""
    from payment_sandbox.web.docs.contents import page  # imported late: faster startup
    from payment_sandbox.web.docs.rendering import sections

    return tuple(
        Section(name, title(name), anchor, heading, text)
        for name in NAMES
        for anchor, heading, text in sections(page(name).text)
    )


def _stem(word: str) -> str:
    """The word without an ending, so that ``retry`` also finds ``retries``."""
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= STEM_MIN:
            return word.removesuffix(ending)
    return word


def _has_all(section: Section, wanted: list[str]) -> bool:
    text = f"{section.page_title}\n{section.heading}\n{section.text}".casefold()
    return all(word in text for word in wanted)


def _found(section: Section, wanted: list[str]) -> Found:
    title_, heading = section.page_title.casefold(), section.heading.casefold()
    score = sum(IN_TITLE * (word in title_) + IN_HEADING * (word in heading) + 1 for word in wanted)
    at = max(0, section.text.casefold().find(wanted[0]))
    begin = max(0, at - AROUND)
    cut = " ".join(section.text[begin : at + AROUND].split())
    return Found(section, score, f"{'…' if begin else ''}{cut}…")
