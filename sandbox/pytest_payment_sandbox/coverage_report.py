"""Reports the payment coverage of a suite: the cases that its tests cover, analogous to code coverage."""

from collections import defaultdict
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from payment_sandbox.judge import review
from payment_sandbox.judge.coverage import (
    METHOD,
    CellKey,
    CoverageGroup,
    Matrix,
    Occurrences,
    build_matrix,
    cell_key,
    covered_cells,
    enabled_methods,
)
from pytest_payment_sandbox.rehearsal.report import save

if TYPE_CHECKING:
    from payment_sandbox.client.client import SandboxClient
    from payment_sandbox.testing.project_fixture import PaymentSandbox


def format_matrix(coverage: Matrix) -> list[str]:
    """Format the matrix for a terminal: one line per row, with the uncovered cases."""
    rows = [*coverage.methods, *coverage.others]
    width = max((len(group.title) for group in rows), default=0)
    shown = [f"  {group.title:{width}}  {_format_share(group):>14}{_format_missing(group)}" for group in rows]
    if not coverage.is_chosen:
        shown.append("  only methods used by the suite; set payment_methods to list all methods of your shop")
    return [*shown, f"  all methods: {coverage.percent:.0f}%"]


def _format_share(group: CoverageGroup) -> str:
    count = len(group.cells)
    return f"{group.covered} of {count}, {100 * group.covered / count:3.0f}%"


def _format_missing(group: CoverageGroup) -> str:
    uncovered = f"  never: {', '.join(group.missing)}" if group.missing else ""
    return uncovered + (f"  handled incorrectly: {', '.join(group.wrong)}" if group.wrong else "")


def _matrix_report(coverage: Matrix) -> dict[str, Any]:
    rows: list[dict[str, Any]] = [
        {
            "row": group.title,
            "cells": {name: list(cell.right) for name, cell in group.cells.items()},
            "wrong": {name: list(cell.wrong) for name, cell in group.cells.items() if cell.wrong},
        }
        for group in (*coverage.methods, *coverage.others)
    ]
    return {"percent": round(coverage.percent, 1), "rows": rows}


COVERAGE_PROPERTY: Final = "payment_coverage"
EXIT_TOO_LOW: Final = 1


def add_coverage(report: pytest.TestReport, project: "PaymentSandbox", expect: Collection[str]) -> None:
    """Add the coverage of a test's project to the test's report, even if the server is in another process.

    Violations of the rules in ``expect`` are intended.
    """
    own = project.server.project_of(project.api_key)
    if own is not None:
        findings = [each for each in review(own.epoch) if each.rule not in expect]
        covered, methods = covered_cells(own, findings), enabled_methods(own)
    else:
        covered, methods = _read_coverage(project.client)
    summary = {
        "right": sorted(list(case) for case, cell in covered.items() if cell.right or cell.by_hand),
        "wrong": sorted(list(case) for case, cell in covered.items() if cell.wrong),
        "methods": methods,
    }
    report.user_properties.append((COVERAGE_PROPERTY, summary))


def _read_coverage(client: "SandboxClient") -> tuple[dict[CellKey, Occurrences], list[str]]:
    """Read the coverage of a project from its server."""
    answer = client.coverage()
    covered = {
        cell_key(group["group"], group["name"], cell["what"]): Occurrences(
            cell["met_by"], cell["wrong"], cell["by_hand"]
        )
        for group in answer["items"]
        for cell in group["cells"]
    }
    methods = [group["name"] for group in answer["items"] if group["group"] == METHOD]
    return covered, methods if answer["is_chosen"] else []


class SuiteCoverage:
    """Collects the coverage of all tests, including tests on pytest-xdist workers, and prints the matrix."""

    def __init__(self, fail_under: float, file: str | None) -> None:
        self._fail_under = fail_under
        self._file = file
        self._right: dict[CellKey, list[str]] = defaultdict(list)
        self._wrong: dict[CellKey, list[str]] = defaultdict(list)
        self._methods: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the coverage of one test."""
        for name, value in report.user_properties:
            if name == COVERAGE_PROPERTY and isinstance(value, dict):
                self._methods |= set(value["methods"])
                for tests, cases in ((self._right, value["right"]), (self._wrong, value["wrong"])):
                    for case in cases:
                        tests[CellKey(*case)].append(report.nodeid)

    @property
    def _matrix(self) -> Matrix:
        known = {*self._right, *self._wrong}
        cells = {case: Occurrences(self._right.get(case, ()), self._wrong.get(case, ())) for case in known}
        return build_matrix(cells, self._methods)

    @property
    def _is_too_low(self) -> bool:
        return self._matrix.percent < self._fail_under

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run whose coverage is too low."""
        if self._is_too_low and not session.exitstatus:
            session.exitstatus = EXIT_TOO_LOW

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the matrix, and write it to a file."""
        terminalreporter.write_line("payment coverage:")
        for line in format_matrix(self._matrix):
            terminalreporter.write_line(line)
        if self._is_too_low:
            terminalreporter.write_line(f"  this is below the required {self._fail_under:g}%", red=True)
        if self._file:
            save(Path(self._file), _matrix_report(self._matrix))
            terminalreporter.write_line(f"  {self._file} lists the tests of each case")
