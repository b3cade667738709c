"""The report on a rehearsal: text for people, and records for programs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from payment_sandbox.judge.books import BookProblem
from payment_sandbox.judge.lessons import lesson_of, where_to_read
from payment_sandbox.orders.amounts import euros

JSON_SUFFIX: Final = ".json"
SECONDS_OPTION: Final = "--payment-rehearse-seconds"
NO_BOOKS_NOTE: Final = "money and goods were not judged: no payment_books"
TestReport = dict[str, Any]
"""The report on a test: ``test``, ``variations``, ``left``, ``cut_off``, ``findings`` and ``notes``."""


def check_report(name: str) -> None:
    """Validate the file name of a report.

    Raises:
        ValueError: the file is not a JSON file, or its folder does not exist.
    """
    if Path(name).suffix != JSON_SUFFIX:
        raise ValueError(f"takes a .json file, not {name!r}")
    if not Path(name).absolute().parent.is_dir():
        raise ValueError(f"takes a file in an existing folder, not {name!r}")


def finding_record(
    problem: BookProblem, variation: str, change: str, timeline: str, again: str
) -> dict[str, Any]:
    """Report a problem, and the variation that shows it first; ``again`` is the command that reruns it."""
    lesson = lesson_of(problem.kind)
    amount = f"{euros(problem.cents)}: " if problem.cents else ""
    risk = f"Risk: {amount}{lesson.risk}. See {where_to_read(lesson.path)}" if lesson is not None else ""
    return {
        "kind": problem.kind,
        "sentence": f"{change}: {problem.sentence}",
        "effect": problem.sentence,
        "change": change,
        "order": problem.order_id,
        "amount": problem.cents,
        "lesson": risk,
        "section": lesson.path if lesson is not None else "",
        "variation": variation,
        "also_after": [],
        "again": again,
        "timeline": timeline,
    }


def lines_of(test: TestReport) -> list[str]:
    """Format the findings of a test as text, one block each."""
    lines: list[str] = []
    for finding in test["findings"]:
        also = ", ".join(finding["also_after"])
        rows = (("", finding["lesson"]), ("also after: ", also), ("rerun: ", finding["again"]))
        timeline = [f"  {line}" for line in finding["timeline"].splitlines()]
        lines += [
            finding["sentence"],
            *(f"  {label}{text}" for label, text in rows if text),
            "",
            *timeline,
            "",
        ]
    return [*lines, *cut_lines(test), *test["notes"]]


def cut_lines(test: TestReport) -> list[str]:
    """Name what was cut off by the time limit."""
    lines = [f"cut off before its end: {name} (increase {SECONDS_OPTION})" for name in test["cut_off"]]
    number = "1 variation was" if test["left"] == 1 else f"{test['left']} variations were"
    return [*lines, *([f"cut off: {number} not tried (increase {SECONDS_OPTION})"] if test["left"] else [])]


def summary(tests: Sequence[TestReport]) -> str:
    """Summarize a rehearsal in one line."""
    variations = sum(test["variations"] for test in tests)
    left = sum(test["left"] + len(test["cut_off"]) for test in tests)
    findings = sum(len(test["findings"]) for test in tests)
    count = "1 test" if len(tests) == 1 else f"{len(tests)} tests"
    played = "1 variation" if variations == 1 else f"{variations} variations"
    number = "1 finding" if findings == 1 else f"{findings or 'no'} findings"
    cut = f", cut off before {left} more (increase {SECONDS_OPTION})" if left else ""
    return f"{count} rehearsed in {played}{cut}: {number}"
