"""Reports the payment coverage of a suite: the cases covered by its tests, similar to code coverage."""

import json
from collections import defaultdict
from collections.abc import Collection
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from payment_sandbox.operations.coverage import (
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
from payment_sandbox.operations.review import review
from pytest_payment_sandbox.rehearsal.report import JSON, page, save

if TYPE_CHECKING:
    from payment_sandbox.client.client import SandboxClient
    from payment_sandbox.testing.project import PaymentSandbox

TESTS_SHOWN: Final = 3


def lines(coverage: Matrix) -> list[str]:
    """Format the matrix for a terminal: one line per row, with the uncovered cases."""
    rows = [*coverage.methods, *coverage.others]
    width = max((len(row.title) for row in rows), default=0)
    shown = [f"  {row.title:{width}}  {_share(row):>14}{_missing(row)}" for row in rows]
    if not coverage.is_chosen:
        shown.append("  only methods used by the suite; set payment_methods to list all methods of your shop")
    return [*shown, f"  all methods: {coverage.percent:.0f}%"]


def _share(row: CoverageGroup) -> str:
    count = len(row.cells)
    return f"{row.covered} of {count}, {100 * row.covered / count:3.0f}%"


def _missing(row: CoverageGroup) -> str:
    uncovered = f"  never: {', '.join(row.missing)}" if row.missing else ""
    return uncovered + (f"  answered wrongly: {', '.join(row.wrong)}" if row.wrong else "")


def write(path: Path, coverage: Matrix) -> None:
    """Write the matrix to an .html or a .json file."""
    save(path, _json(coverage) if path.suffix == JSON else html(coverage))


def _json(coverage: Matrix) -> str:
    rows: list[dict[str, Any]] = [
        {
            "row": row.title,
            "cells": {name: list(cell.right) for name, cell in row.cells.items()},
            "wrong": {name: list(cell.wrong) for name, cell in row.cells.items() if cell.wrong},
        }
        for row in (*coverage.methods, *coverage.others)
    ]
    return json.dumps({"percent": round(coverage.percent, 1), "rows": rows}, indent=1)


def html(coverage: Matrix) -> str:
    """Return the matrix as an HTML page without scripts; each cell lists the tests that cover it."""
    heading = f"Payment coverage: {coverage.percent:.0f}%"
    return page("Payment coverage", heading, map(_section, (*coverage.methods, *coverage.others)))


def _section(row: CoverageGroup) -> str:
    return f"<h2>{escape(row.title)}: {_share(row)}</h2><ul>{_list_items(row)}</ul>"


def _list_items(row: CoverageGroup) -> str:
    return "".join(f"<li>{_cell(name, cell)}</li>" for name, cell in row.cells.items())


def _cell(name: str, cell: Occurrences) -> str:
    tests = cell.right or cell.wrong
    if not tests:
        return f"<strong>{escape(name)}: never</strong>"
    if not cell.right:
        name = f"{name}, answered wrongly"
    others = f" and {len(tests) - TESTS_SHOWN} more" if len(tests) > TESTS_SHOWN else ""
    return f"{escape(name)}: <span class='test'>{escape(', '.join(tests[:TESTS_SHOWN]))}{others}</span>"


PROPERTY: Final = "payment_coverage"
EXIT_TOO_LOW: Final = 1


def add_coverage(report: pytest.TestReport, project: "PaymentSandbox", expect: Collection[str]) -> None:
    """Add the coverage of a test's project to the test's report, even if the server is in another process.

    Violations of the rules in ``expect`` are intended.
    """
    own = project.server.project_of(project.api_key)
    if own is not None:
        findings = [each for each in review(own.epoch) if each.rule not in expect]
        met, methods = covered_cells(own, findings), enabled_methods(own)
    else:
        met, methods = _read_coverage(project.client)
    summary = {
        "right": sorted(list(case) for case, cell in met.items() if cell.right or cell.by_hand),
        "wrong": sorted(list(case) for case, cell in met.items() if cell.wrong),
        "methods": methods,
    }
    report.user_properties.append((PROPERTY, summary))


def _read_coverage(client: "SandboxClient") -> tuple[dict[CellKey, Occurrences], list[str]]:
    """Read the coverage of a project from its server."""
    answer = client.call("GET", "/control/coverage/")
    met = {
        cell_key(row["group"], row["name"], cell["what"]): Occurrences(
            cell["met_by"], cell["wrong"], cell["by_hand"]
        )
        for row in answer["items"]
        for cell in row["cells"]
    }
    methods = [row["name"] for row in answer["items"] if row["group"] == METHOD]
    return met, methods if answer["is_chosen"] else []


class CoverageOfSuite:
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
            if name == PROPERTY and isinstance(value, dict):
                self._methods |= set(value["methods"])
                for tests, cases in ((self._right, value["right"]), (self._wrong, value["wrong"])):
                    for case in cases:
                        tests[CellKey(*case)].append(report.nodeid)

    @property
    def _covered(self) -> Matrix:
        known = {*self._right, *self._wrong}
        cells = {case: Occurrences(self._right.get(case, ()), self._wrong.get(case, ())) for case in known}
        return build_matrix(cells, self._methods)

    @property
    def _is_too_low(self) -> bool:
        return self._covered.percent < self._fail_under

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run whose coverage is too low."""
        if self._is_too_low and not session.exitstatus:
            session.exitstatus = EXIT_TOO_LOW

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the matrix, and write it to a file."""
        terminalreporter.write_line("payment coverage:")
        for line in lines(self._covered):
            terminalreporter.write_line(line)
        if self._is_too_low:
            terminalreporter.write_line(f"  this is below the required {self._fail_under:g}%", red=True)
        if self._file:
            write(Path(self._file), self._covered)
            terminalreporter.write_line(f"  {self._file} lists the tests of each case")
