"""Writes the results of ``make compat`` into a table, which the page "Works with" shows."""

import csv
from pathlib import Path
from typing import Final

import pytest

RESULTS: Final = Path(__file__).parent / "results.tsv"
TOOL: Final = "tool"


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print and store the result of each tool that was met; those of other tools remain."""
    met = {}
    if terminalreporter.config.option.markexpr != "compat":  # CI runs some of these tests, too
        return
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, ()):
            for kind, tool, version, result in [
                value for name, value in report.user_properties if name == TOOL
            ]:
                met[kind, tool] = (version, result if outcome == "passed" else outcome)
    if not met:
        return
    with RESULTS.open(encoding="utf-8", newline="") as file:
        rows = {(kind, tool): tuple(more) for kind, tool, *more in csv.reader(file, delimiter="\t")} | met
    with RESULTS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerows((*key, *more) for key, more in sorted(rows.items()))
    terminalreporter.section("tools")
    for (kind, tool), (version, result) in sorted(rows.items()):
        terminalreporter.line(f"{kind:12}{tool:44}{version:14}{result}")
