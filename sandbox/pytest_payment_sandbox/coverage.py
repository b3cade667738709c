"""What a suite has met, as code coverage tells which lines it ran."""

import json
from collections import defaultdict
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from payment_sandbox.operations.coverage import (
    METHOD,
    CoverageGroup,
    Covered,
    Met,
    covered,
    enabled_methods,
    met_by,
    met_of,
)
from pytest_payment_sandbox.rehearsal.report import JSON, page, save

if TYPE_CHECKING:
    from payment_sandbox.client.client import SandboxClient
    from payment_sandbox.testing.project import PaymentSandbox

TESTS_SHOWN: Final = 3


def lines(coverage: Covered) -> list[str]:
    """The matrix for a terminal: a line for each row, with what is missing."""
    rows = [*coverage.methods, *coverage.others]
    width = max((len(row.title) for row in rows), default=0)
    shown = [f"  {row.title:{width}}  {_share(row):>14}{_missing(row)}" for row in rows]
    if not coverage.is_chosen:
        shown.append("  only methods that the suite has used; set payment_methods to see all that you offer")
    return [*shown, f"  methods, in all: {coverage.percent:.0f} %"]


def _share(row: CoverageGroup) -> str:
    count = len(row.cells)
    return f"{row.met} of {count}, {100 * row.met / count:3.0f} %"


def _missing(row: CoverageGroup) -> str:
    return f"  never: {', '.join(row.missing)}" if row.missing else ""


def write(path: Path, coverage: Covered) -> None:
    """Write the matrix into an .html or a .json file."""
    save(path, _json(coverage) if path.suffix == JSON else html(coverage))


def _json(coverage: Covered) -> str:
    rows: list[dict[str, Any]] = [
        {"row": row.title, "cells": {name: list(tests) for name, tests in row.cells.items()}}
        for row in (*coverage.methods, *coverage.others)
    ]
    return json.dumps({"percent": round(coverage.percent, 1), "rows": rows}, indent=1)


def html(coverage: Covered) -> str:
    """The matrix as a page without scripts: each cell names the tests that met it."""
    heading = f"Payment coverage: {coverage.percent:.0f} %"
    return page("Payment coverage", heading, map(_section, (*coverage.methods, *coverage.others)))


def _section(row: CoverageGroup) -> str:
    return f"<h2>{escape(row.title)}: {_share(row)}</h2><ul>{_items(row)}</ul>"


def _items(row: CoverageGroup) -> str:
    return "".join(f"<li>{_cell(name, tests)}</li>" for name, tests in row.cells.items())


def _cell(name: str, tests: Sequence[str]) -> str:
    if not tests:
        return f"<strong>{escape(name)}: never</strong>"
    more = f" and {len(tests) - TESTS_SHOWN} more" if len(tests) > TESTS_SHOWN else ""
    return f"{escape(name)}: <span class='test'>{escape(', '.join(tests[:TESTS_SHOWN]))}{more}</span>"


PROPERTY: Final = "payment_coverage"
TOO_LITTLE: Final = 1


def note(report: pytest.TestReport, project: "PaymentSandbox") -> None:
    """Note what happened in the project of a test, also on a server in another process."""
    own = project.server.project_of(project.api_key)
    if own is not None:
        met, methods = set(met_by(own)), enabled_methods(own)
    else:
        met, methods = _asked(project.client)
    report.user_properties.append((PROPERTY, {"met": sorted(map(list, met)), "methods": methods}))


def _asked(client: "SandboxClient") -> tuple[set[Met], list[str]]:
    """What a server tells of a project."""
    answer = client.call("GET", "/control/coverage/")
    met = {
        met_of(row["group"], row["name"], cell["what"])
        for row in answer["items"]
        for cell in row["cells"]
        if cell["count"]
    }
    methods = [row["name"] for row in answer["items"] if row["group"] == METHOD]
    return met, methods if answer["is_chosen"] else []


class CoverageOfSuite:
    """Collects what all tests have met, also on workers of pytest-xdist, and tells it at the end."""

    def __init__(self, fail_under: float, file: str | None) -> None:
        self._fail_under = fail_under
        self._file = file
        self._met: dict[Met, list[str]] = defaultdict(list)
        self._methods: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect what one test has met."""
        for name, value in report.user_properties:
            if name == PROPERTY and isinstance(value, dict):
                self._methods |= set(value["methods"])
                for one in value["met"]:
                    self._met[Met(*one)].append(report.nodeid)

    @property
    def _covered(self) -> Covered:
        return covered(self._met, self._methods)

    @property
    def _is_too_little(self) -> bool:
        return self._covered.percent < self._fail_under

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run that met too little."""
        if self._is_too_little and not session.exitstatus:
            session.exitstatus = TOO_LITTLE

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Tell the matrix."""
        terminalreporter.write_line("payment coverage:")
        for line in lines(self._covered):
            terminalreporter.write_line(line)
        if self._is_too_little:
            terminalreporter.write_line(f"  that is under the {self._fail_under:g} % asked for", red=True)
        if self._file:
            write(Path(self._file), self._covered)
            terminalreporter.write_line(f"  by which tests, is in {self._file}")
