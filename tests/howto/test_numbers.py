"""The numbers in the documentation are those of the code."""

import re
from pathlib import Path

import pytest

from payment_sandbox.delivery.outbox import EXTRA_DELIVERIES_MAX
from payment_sandbox.judge.evidence import NUMBER_WORDS
from payment_sandbox.methods import ALL_METHODS
from payment_sandbox.operations.advance import EVENTS_MAX, TIMEOUT_SECONDS
from payment_sandbox.orders.webhooks import ATTEMPTS_MAX
from payment_sandbox.orders.webhooks import TIMEOUT_SECONDS as ANSWER_SECONDS
from payment_sandbox.serving.gateway import SLOW_MAX, SLOW_MAX_PER_PROJECT, Limits
from payment_sandbox.ui.docs.library import MENU_NAMES, read_source
from payment_sandbox.web.bodies import BODY_BYTES_MAX, STATE_BYTES_MAX
from pytest_payment_sandbox.plugin_options import BUDGET_SECONDS
from tests.documentation.parts import BLOCK
from tests.support.documentation import read_page

README = Path(__file__).parents[2] / "README.md"
WORDS = [*NUMBER_WORDS, "eleven", "twelve"]
ORDINALS = ["", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
LIMITS = Limits()
SENTENCES: list[tuple[str, str]] = [
    ("contributing", f"{SLOW_MAX} threads, {SLOW_MAX_PER_PROJECT} for each project"),
    ("contributing", f"{LIMITS.waiting:,} threads, two thirds for each project"),
    ("troubleshooting", f"more than {LIMITS.waiting:,} calls wait already"),
    ("troubleshooting", f"the body is larger than {BODY_BYTES_MAX >> 20} MiB"),
    ("troubleshooting", f"a snapshot may have up to {STATE_BYTES_MAX >> 20} MiB"),
    (
        "time",
        f"`max_events`, by default {EVENTS_MAX:,}, and `timeout` in real seconds, by default {TIMEOUT_SECONDS:.0f}",
    ),
    ("time", f"for up to {EXTRA_DELIVERIES_MAX} more that handlers cause"),
    ("webhooks", f"a timeout ({WORDS[int(ANSWER_SECONDS)]} seconds, or"),
    ("webhooks", f"After the {ORDINALS[ATTEMPTS_MAX]} failed attempt"),
    ("troubleshooting", f"no answer within {ANSWER_SECONDS:.0f} seconds"),
    ("rehearsal", f"the time limit for all variations; {BUDGET_SECONDS:.0f} seconds by default"),
]


@pytest.mark.parametrize(("page", "sentence"), SENTENCES)
def test_a_page_has_the_number_of_the_code(page: str, sentence: str) -> None:
    """Each number on a page equals the constant in the code."""
    assert sentence in " ".join(read_source(page).split())


def test_the_readme_counts_the_methods() -> None:
    """The first paragraph has the number of payment methods, and names each of them."""
    _, paragraph, *_ = README.read_text(encoding="utf-8").split("\n\n")
    assert f"orders in {WORDS[len(ALL_METHODS)]} payment methods" in paragraph
    assert {f"`{method.name}`" for method in ALL_METHODS} <= set(re.findall(r"`[a-z-]+`", paragraph))


def written(name: str) -> str:
    """Return a page without its generated blocks."""
    return BLOCK.sub("", read_page(name))


PAGES_MAX = 25
WORDS_MAX = 20_000
"""The words of the README and of the pages in the menu, without generated blocks; lower it when they fall."""


def test_the_documentation_does_not_grow() -> None:
    """The pages and words that users have to read stay within their limits."""
    words = sum(len(text.split()) for text in (README.read_text(encoding="utf-8"), *map(written, MENU_NAMES)))
    assert len(MENU_NAMES) <= PAGES_MAX
    assert words <= WORDS_MAX


TERMS_MAX = 10
TERMS = {
    # each term of ours, and the page that explains it
    "project": "quick-start",
    "control API": "quick-start",
    "scenario": "test-values",
    "sandbox time": "time",
    "agenda": "time",
    "timeline": "pytest",
    "review": "pytest",
    "fault": "scenarios",
    "rehearsal": "rehearsal",
    "variation": "rehearsal",
}
NOT_PROSE = re.compile(r"^```.*?^```$|`[^`]*`|(?<=\])\([^)]*\)", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("term", TERMS)
def test_a_term_is_explained_where_it_is_met_first(term: str) -> None:
    """In reading order, the first mention of a term is its explanation, in bold, or a link."""
    assert len(TERMS) <= TERMS_MAX
    named = re.compile(rf"(\*\*|\[)?\b{term}", re.IGNORECASE)
    mentions = (named.search(NOT_PROSE.sub("", written(name))) for name in MENU_NAMES)
    first = next(filter(None, mentions))
    assert first[1] is not None, (
        f"{first.string[max(0, first.start() - 60) : first.end()]!r} has no explanation"
    )
    assert re.search(rf"\*\*{term}", written(TERMS[term]), re.IGNORECASE)
