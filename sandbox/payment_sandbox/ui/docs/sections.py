"""Sections of the documentation, for the command ``docs`` and the search."""

from collections.abc import Sequence
from functools import cache
from itertools import islice, takewhile
from typing import Final, NamedTuple

from payment_sandbox.fidelity.ledger import rule_texts
from payment_sandbox.judge.lessons import LESSONS
from payment_sandbox.orders.refusals import Unknown
from payment_sandbox.ui.docs.library import PAGE_NAMES, read_source, title
from payment_sandbox.ui.docs.rendering import headings

RESULTS_MAX: Final = 30
WORDS_MAX: Final = 20  # all pages are read for each word
STOP_WORDS: Final = ("a", "an", "and", "for", "how", "in", "is", "of", "on", "or", "the", "to", "with")
WORD_ENDINGS: Final = ("ies", "ing", "ed", "es", "s", "y")
STEM_LENGTH_MIN: Final = 4
TITLE_SCORE: Final = 3
HEADING_SCORE: Final = 2


class Section(NamedTuple):
    """A part of a page under one heading, without its subsections; the first one has no heading."""

    page: str
    page_title: str
    level: int  # the number of hash signs before the heading; 1 for the whole page
    anchor: str
    heading: str
    text: str


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
    sections = _sections(name)
    at = next((index for index, each in enumerate(sections) if each.anchor == anchor), None)
    if at is None:
        known = ", ".join(each.anchor for each in sections[1:])
        raise Unknown(f"{name} has no section {anchor!r}; it has: {known}")
    inner = takewhile(lambda each: each.level > sections[at].level, sections[at + 1 :])
    return "\n".join(each.text for each in (sections[at], *inner)).rstrip()


def _sections(name: str) -> list[Section]:
    """Return the sections of a page; code may contain hash signs."""
    lines, is_code = read_source(name).splitlines(), False
    starts = [(0, 1)]
    for number, line in enumerate(lines):
        is_code ^= line.startswith("```")
        if line.startswith(("## ", "### ")) and not is_code:
            starts.append((number, line.index(" ")))
    ends = [number for number, _ in starts[1:]] + [len(lines)]
    return [
        Section(name, title(name), level, anchor, heading, "\n".join(lines[start:end]))
        for (start, level), end, (anchor, heading) in zip(
            starts, ends, [("", ""), *headings(read_source(name))], strict=True
        )
    ]


@cache
def search_index() -> Sequence[tuple[Section, str]]:
    """Return all sections of all pages with their texts in lower case, built on the first search."""
    return [(each, each.text.casefold()) for name in PAGE_NAMES for each in _sections(name)]


def search(words: str) -> list[Section]:
    """Find the sections that contain at least half of the first words, best first."""
    typed = (_stem(word) for word in words.casefold().split() if word not in STOP_WORDS)
    stems = list(islice(dict.fromkeys(typed), WORDS_MAX))
    scored = [(_score(each, text, stems), each) for each, text in search_index()]
    matching = [(score, each) for score, each in scored if score[0] and score[0] * 2 >= len(stems)]
    return [each for _, each in sorted(matching, key=lambda item: item[0], reverse=True)][:RESULTS_MAX]


def _stem(word: str) -> str:
    """Return the stem of a word, so that ``retry`` also finds ``retries``."""
    for ending in WORD_ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= STEM_LENGTH_MIN:
            return word.removesuffix(ending)
    return word


def _score(section: Section, text: str, stems: list[str]) -> tuple[int, int]:
    """Count the words in a section, and weigh those in the title and the heading."""
    title_, heading = section.page_title.casefold(), section.heading.casefold()
    weights = [TITLE_SCORE * (word in title_) + HEADING_SCORE * (word in heading) for word in stems]
    count = sum(bool(weight) or word in text for word, weight in zip(stems, weights, strict=True))
    return count, sum(weights)
