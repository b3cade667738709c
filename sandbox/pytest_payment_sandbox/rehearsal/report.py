"""Formats the report on a rehearsal: text for people, and a JSON file for programs."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from payment_sandbox.operations.review.lessons import lesson_of, where_to_read
from pytest_payment_sandbox.rehearsal.driver import RehearsalOutcome
from pytest_payment_sandbox.rehearsal.findings import RehearsalFinding
from pytest_payment_sandbox.rehearsal.places import shop_lines

JSON_SUFFIX: Final = ".json"
TestReport = dict[str, Any]
"""The report on a test: ``test``, ``variations``, ``left``, ``findings`` and more, as JSON."""
Reports = Sequence[TestReport]


def check_report(name: str) -> None:
    """Validate the file name of a report.

    Raises:
        ValueError: the file is not a JSON file, or its folder does not exist.
    """
    if Path(name).suffix != JSON_SUFFIX:
        raise ValueError(f"takes a .json file, not {name!r}")
    if not Path(name).absolute().parent.is_dir():
        raise ValueError(f"takes a file in an existing folder, not {name!r}")


def report_of(name: str, outcome: RehearsalOutcome, rerun_command: Callable[[str], str]) -> TestReport:
    """Create the report on one test; ``rerun_command`` returns the command that reruns a variation."""
    return {
        "test": name,
        "variations": outcome.tried,
        "left": outcome.untried,
        "alike": outcome.duplicates,
        "repeated": outcome.repeated,
        "notes": [*outcome.notes, *(f"seen once, but not again: {each}" for each in outcome.seen_once)],
        "findings": [_report_finding(each, rerun_command(each.name)) for each in outcome.findings],
    }


def _report_finding(finding: RehearsalFinding, rerun_command: str) -> dict[str, Any]:
    lesson = lesson_of(finding.problem.kind)
    risk = f"Risk: {lesson.risk}. See {where_to_read(lesson.path)}" if lesson is not None else ""
    return {
        "kind": finding.problem.kind,
        "sentence": finding.sentence,
        "effect": finding.problem.sentence,
        "change": finding.cause or finding.change,
        "line": shop_line(f"{finding.problem.sentence}\n{finding.timeline}"),
        "smallest": finding.change if finding.cause else "",
        "shown_by": list(finding.shown_by),
        "lesson": risk,
        "section": lesson.path if lesson is not None else "",
        "variation": finding.name,
        "again": rerun_command,
        "timeline": finding.timeline,
    }


def shop_line(text: str) -> str:
    """Return the shop's line in the first stack trace in a text, such as ``shop.mjs:31``, or ""."""
    file, line = next(iter(shop_lines(text)), ("", ""))
    with suppress(ValueError):
        file = str(Path(file).relative_to(Path.cwd()))
    return f"{file}:{line}" if line else ""


def _smallest_change(finding: Mapping[str, Any]) -> str:
    """Describe the smallest change with a finding, and how many other variations show it."""
    others = len(finding["shown_by"]) - 1
    shown = {0: "", 1: "; another variation shows it, too"}
    more = shown.get(others, f"; {others} other variations show it, too")
    return f"the smallest change that shows it: {finding['smallest']}{more}"


def lines_of(test: TestReport, *, with_name: bool = False) -> list[str]:
    """Format the findings of a test as text; ``with_name`` adds the test's name."""
    lines: list[str] = []
    for finding in test["findings"]:
        rows = (
            ("test: ", test["test"] if with_name else ""),
            ("at: ", finding["line"]),
            ("", _smallest_change(finding) if finding["smallest"] else ""),
            ("", finding["lesson"]),
            ("rerun: ", finding["again"]),
        )
        timeline = [f"  {line}" for line in finding["timeline"].splitlines()]
        details = [f"  {label}{text}" for label, text in rows if text]
        lines += [finding["sentence"], *details, "", *timeline, ""]
    return lines


def rows_of(tests: Reports) -> list[str]:
    """Format each finding in one row: its effect, smallest change, line in the shop, and command."""
    return [
        f"{finding['effect']} | {finding['smallest'] or finding['change']}"
        f"{' | at ' + finding['line'] if finding['line'] else ''} | {finding['again']}"
        for test in tests
        for finding in test["findings"]
    ]


def save(path: Path, report: Mapping[str, Any]) -> None:
    """Write a report as JSON, atomically."""
    unfinished = path.with_name(f"{path.name}.part")
    unfinished.write_text(json.dumps(report, indent=1), encoding="utf-8")
    unfinished.replace(path)


def summary(tests: Reports, budget_option: str) -> str:
    """Summarize a rehearsal in one line; ``budget_option`` names the option that increases the budget."""
    variations = sum(test["variations"] for test in tests)
    untried = sum(test["left"] for test in tests)
    findings = sum(len(test["findings"]) for test in tests)
    no_time = f", no time for {untried} more (increase {budget_option})" if untried else ""
    count = "1 test" if len(tests) == 1 else f"{len(tests)} tests"
    number = "1 finding" if findings == 1 else f"{findings or 'no'} findings"
    count_of_variations = "1 variation" if variations == 1 else f"{variations} variations"
    return f"{count} rehearsed in {count_of_variations}{no_time}: {number}"
