"""The report of a rehearsal: one HTML file for people, or JSON for programs."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from payment_sandbox.operations.review.lessons import lesson_of
from pytest_payment_sandbox.rehearsal.exploring import Explored, RehearsalFinding

JSON: Final = ".json"

STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2.5rem; }
pre { background: #f2f5f4; overflow-x: auto; padding: 0.75rem; font-size: 0.8rem; }
code { background: #f2f5f4; } .test { color: #4d5c5a; } svg { max-width: 100%; height: auto; }
"""

Tests = Sequence[Mapping[str, Any]]
"""The rehearsed tests: ``test``, ``variations``, ``left`` and ``findings``, each with its texts."""


def report_of(name: str, explored: Explored, again: Callable[[RehearsalFinding], str]) -> dict[str, Any]:
    """What the variations of one test showed; ``again`` is the command that plays a finding again."""
    return {
        "test": name,
        "variations": explored.tried,
        "left": explored.untried,
        "alike": explored.alike,
        "repeated": explored.repeated,
        "notes": explored.notes,
        "findings": [
            {
                "kind": finding.problem.kind,
                "sentence": finding.sentence,
                "smallest": finding.smallest,
                "shown_by": list(finding.shown_by),
                "lesson": _lesson(finding),
                "variation": finding.name,
                "again": again(finding) if finding.variation else "",
                "timeline": finding.timeline,
                "picture": finding.picture,
            }
            for finding in explored.findings
        ],
    }


def _lesson(finding: RehearsalFinding) -> str:
    lesson = lesson_of(finding.problem.kind)
    return f"Risk: {lesson.risk}. See {lesson.page}" if lesson is not None else ""


def _seen_in(finding: Mapping[str, Any]) -> str:
    """Where a finding shows whose cause is not the change itself."""
    others = len(finding["shown_by"]) - 1
    return f"the smallest change that shows it: {finding['smallest']}; {others} more show it, too"


def lines_of(test: Mapping[str, Any]) -> list[str]:
    """The findings of a test for people."""
    lines: list[str] = []
    for finding in test["findings"]:
        again = [f"  again: {finding['again']}"] if finding["again"] else []
        again = [f"  {finding['lesson']}", *again] if finding["lesson"] else again
        again = [f"  {_seen_in(finding)}", *again] if finding["smallest"] else again
        timeline = [f"  {line}" for line in finding["timeline"].splitlines()]
        lines += [finding["sentence"], *again, "", *timeline, ""]
    return lines


def write(path: Path, tests: Tests) -> None:
    """Write the report of a rehearsal."""
    save(path, json.dumps({"tests": list(tests)}, indent=1) if path.suffix == JSON else html(tests))


def save(path: Path, text: str) -> None:
    """Write a file whole or not at all, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.part")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)


def html(tests: Tests) -> str:
    """The report as a page without scripts."""
    findings = [(test, finding) for test in tests for finding in test["findings"]]
    parts = [f"<p>{summary(tests)}</p>", *(_finding(test, finding) for test, finding in findings)]
    return page("Payment rehearsal", "Payment rehearsal", parts)


def page(title: str, heading: str, parts: Iterable[str]) -> str:
    """A page in one file."""
    head = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>'
    )
    return "\n".join([head, f"<h1>{heading}</h1>", *parts, "</body></html>"])


def summary(tests: Tests, of: str = "test") -> str:
    """The rehearsal in one line."""
    variations = sum(test["variations"] for test in tests)
    untried = sum(test["left"] for test in tests)
    findings = sum(len(test["findings"]) for test in tests)
    no_time = f", no time for {untried} more" if untried else ""
    count = f"1 {of}" if len(tests) == 1 else f"{len(tests)} {of}s"
    number = "1 finding" if findings == 1 else f"{findings or 'no'} findings"
    ways = "1 variation" if variations == 1 else f"{variations} variations"
    return f"{count} rehearsed in {ways}{no_time}: {number}"


def _finding(test: Mapping[str, Any], finding: Mapping[str, Any]) -> str:
    again = f"<p><code>{escape(finding['again'])}</code></p>" if finding["again"] else ""
    seen = f"<p>{escape(_seen_in(finding))}</p>" if finding["smallest"] else ""
    return (
        f"<h2>{escape(finding['sentence'])}</h2><p class='test'>{escape(test['test'])}</p>"
        f"{seen}<p>{escape(finding['lesson'])}</p>{again}"
        f"{finding['picture']}<details><summary>Timeline</summary><pre>{escape(finding['timeline'])}</pre></details>"
    )
