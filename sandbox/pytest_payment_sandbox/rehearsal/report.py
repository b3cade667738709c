"""Formats the report on a rehearsal: text for people, and a JSON file for programs."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from payment_sandbox.judge.lessons import (
    ACT_ONCE,
    CAPTURE_IN_TIME,
    GO_FORWARD,
    LOST_RESPONSE,
    NOTICE_PAYMENTS,
    READ_ORDER,
    Lesson,
    lesson_of,
    where_to_read,
)
from payment_sandbox.scenarios import risks
from payment_sandbox.scenarios.effects import Fault, WebhookEffect
from payment_sandbox.scenarios.variation import Repeat, Variation
from pytest_payment_sandbox.rehearsal.causes import is_mistake
from pytest_payment_sandbox.rehearsal.driver import RehearsalOutcome
from pytest_payment_sandbox.rehearsal.findings import RehearsalFinding
from pytest_payment_sandbox.rehearsal.judging import REVIEW_PREFIX, UNANSWERED_RULE
from pytest_payment_sandbox.rehearsal.places import SourceLine, innermost_decision, shop_lines
from pytest_payment_sandbox.rehearsal.reconciliation import CHECKS
from pytest_payment_sandbox.rehearsal.run_comparison import MOVE_KINDS

BUDGET_OPTION: Final = "--payment-rehearse-budget"
JSON_SUFFIX: Final = ".json"
SECTIONS_BY_RISK: Final = {
    risks.DUPLICATION: ACT_ONCE.section,
    risks.UNDONE_PAYMENT: GO_FORWARD.section,
    risks.DOUBLE_PAYMENT: LOST_RESPONSE.section,
    risks.UNSHIPPED: NOTICE_PAYMENTS.section,
}
"""The section about a mistake that a change with this risk reveals."""
KINDS_WITH_CAUSES: Final = (*CHECKS, *MOVE_KINDS, "unknown-money", "went-back", "captured-not-shipped")
KINDS_OF_EXCEPTIONS: Final = ("hangs", "not-judged", f"{REVIEW_PREFIX}{UNANSWERED_RULE}")
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
    seen_once = "; ".join(dict.fromkeys(outcome.seen_once))
    return {
        "test": name,
        "variations": outcome.tried,
        "left": outcome.untried,
        "notes": [*outcome.notes, *([f"seen once, but not again: {seen_once}"] if seen_once else [])],
        "findings": [_report_finding(each, rerun_command(each.name)) for each in outcome.findings],
    }


def _lesson_of(finding: RehearsalFinding) -> Lesson | None:
    """Return the lesson of a finding: the cost of its kind, and the section about its cause."""
    lesson = lesson_of(finding.problem.kind)
    if lesson is None or finding.problem.kind not in KINDS_WITH_CAUSES:
        return lesson
    if finding.cause:
        return lesson._replace(section=READ_ORDER.section) if is_mistake(finding.cause) else lesson
    sections = {_section_of(each.change, lesson) for each in finding.variation}
    return lesson._replace(section=sections.pop()) if len(sections) == 1 else lesson


def _section_of(change: Variation, lesson: Lesson) -> str:
    """Return the section about the mistake that a change reveals, or else the lesson's own."""
    if change.risk == risks.NO_CAPTURE:
        return CAPTURE_IN_TIME.section if lesson == READ_ORDER else lesson.section
    is_about_calls = isinstance(change.effect, Fault | WebhookEffect | Repeat)
    return SECTIONS_BY_RISK.get(change.risk, lesson.section) if is_about_calls else lesson.section


def _report_finding(finding: RehearsalFinding, rerun_command: str) -> dict[str, Any]:
    lesson = _lesson_of(finding)
    risk = f"Risk: {lesson.risk}. See {where_to_read(lesson.path)}" if lesson is not None else ""
    return {
        "kind": finding.problem.kind,
        "sentence": finding.sentence,
        "effect": finding.problem.sentence,
        "change": finding.cause or finding.change,
        "line": _line_of(finding),
        "smallest": finding.change if finding.cause else "",
        "shown_by": list(finding.shown_by),
        "lesson": risk,
        "section": lesson.path if lesson is not None else "",
        "variation": finding.name,
        "again": rerun_command,
        "timeline": finding.timeline,
    }


def _line_of(finding: RehearsalFinding) -> str:
    """Return the shop's line of the changed call; after an exception, the line that raised it."""
    raised = shop_line(f"{finding.problem.sentence}\n{finding.timeline}")
    changed = _format_line(finding.line) if finding.line is not None else ""
    return (raised or changed) if finding.problem.kind in KINDS_OF_EXCEPTIONS else (changed or raised)


def shop_line(text: str) -> str:
    """Return the shop's line in the tracebacks in a text, such as ``shop.py:31``, or ""."""
    line = innermost_decision(shop_lines(text))
    return _format_line(line) if line is not None else ""


def _format_line(source_line: SourceLine) -> str:
    file, line = source_line
    with suppress(ValueError):
        file = str(Path(file).relative_to(Path.cwd()))
    return f"{file}:{line}"


def _smallest_change(finding: Mapping[str, Any]) -> str:
    """Describe the smallest change with a finding, and how many other variations show it."""
    others = len(finding["shown_by"]) - 1
    shown = {0: "", 1: "; another variation shows it, too"}
    more = shown.get(others, f"; {others} other variations show it, too")
    return f"the smallest change that shows it: {finding['smallest']}{more}"


def lines_of(test: TestReport) -> list[str]:
    """Format the findings of a test as text."""
    lines: list[str] = []
    for finding in test["findings"]:
        rows = (
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
    """Format each mistake in one row: its effect, smallest change, line in the shop, tests and command.

    The same kind of problem at the same line, or after the same change, is one mistake.
    """
    mistakes: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for finding in (each for test in tests for each in test["findings"]):
        change = finding["smallest"] or finding["change"]
        mistakes.setdefault((finding["kind"], finding["line"] or change), []).append(finding)
    return [_row_of(*findings) for findings in mistakes.values()]


def _row_of(finding: Mapping[str, Any], *others: Mapping[str, Any]) -> str:
    count = len(others)
    more = f"also in {count} other finding{'s' if count > 1 else ''}" if count else ""
    line = f"at {finding['line']}" if finding["line"] else ""
    parts = (finding["effect"], finding["smallest"] or finding["change"], line, more, finding["again"])
    return " | ".join(filter(None, parts))


def save(path: Path, report: Mapping[str, Any]) -> None:
    """Write a report as JSON, atomically."""
    unfinished = path.with_name(f"{path.name}.part")
    unfinished.write_text(json.dumps(report, indent=1), encoding="utf-8")
    unfinished.replace(path)


def summary(tests: Reports) -> str:
    """Summarize a rehearsal in one line."""
    variations = sum(test["variations"] for test in tests)
    untried = sum(test["left"] for test in tests)
    findings = sum(len(test["findings"]) for test in tests)
    no_time = f", no time for {untried} more (increase {BUDGET_OPTION})" if untried else ""
    count = "1 test" if len(tests) == 1 else f"{len(tests)} tests"
    number = "1 finding" if findings == 1 else f"{findings or 'no'} findings"
    count_of_variations = "1 variation" if variations == 1 else f"{variations} variations"
    return f"{count} rehearsed in {count_of_variations}{no_time}: {number}"
