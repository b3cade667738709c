"""Tells what rehearsals found: in the report of each test, at the end of a run, and in a file."""

from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from payment_sandbox.rehearsal.exploring import Explored
from payment_sandbox.rehearsal.report import lines_of, summary, told, write

PROPERTY: Final = "payment_rehearsal"


def tell(report: pytest.TestReport, explored: Explored, item: pytest.Item) -> None:
    """Note what the variations of a test showed, and fail it for findings."""
    test = told(
        item.nodeid,
        explored,
        lambda finding: f'pytest "{item.nodeid}" --payment-rehearse-only="{finding.name}"',
    )
    report.user_properties.append((PROPERTY, test))
    if explored.findings:
        lines = [f"payment rehearsal: {summary([test])}", "", *lines_of(test), *explored.notes]
        report.outcome = "failed"
        report.longrepr = "\n".join(lines)


def summarize(config: pytest.Config, terminalreporter: Any) -> None:
    """Say at the end of a run what was rehearsed, and write the report."""
    tests = _rehearsed(terminalreporter)
    if not tests:
        return
    terminalreporter.write_line(f"payment rehearsal: {summary(tests)}")
    notes = Counter(note for test in tests for note in test["notes"])
    for note, count in sorted(notes.items()):
        terminalreporter.write_line(f"  in {count} tests {note}")
    file = config.getoption("payment_rehearse_report")
    if file:
        write(Path(file), tests)
        terminalreporter.write_line(f"  all of it is in {file}")


def _rehearsed(terminalreporter: Any) -> list[dict[str, Any]]:
    """What was told of every test, also by the workers of pytest-xdist."""
    reports = [report for found in terminalreporter.stats.values() for report in found]
    properties = [each for report in reports for each in getattr(report, "user_properties", ())]
    tests = {value["test"]: value for name, value in properties if name == PROPERTY}
    return [tests[name] for name in sorted(tests)]
