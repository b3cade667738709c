"""What a suite has met, as code coverage tells which lines it ran."""

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from payment_sandbox.operations.coverage import METHOD, Covered, Met, covered, enabled_methods, met_by, met_of
from payment_sandbox.rehearsal.covered import lines, write

if TYPE_CHECKING:
    from payment_sandbox.client.client import SandboxClient
    from payment_sandbox.testing.project import PaymentSandbox

PROPERTY: Final = "payment_coverage"
TOO_LITTLE: Final = 1


def note(report: pytest.TestReport, project: "PaymentSandbox") -> None:
    """Note what happened in the project of a test, also on a server in another process."""
    found = project.server.project_of(project.api_key)
    if found is not None:
        met, methods = set(met_by(found)), enabled_methods(found)
    else:
        met, methods = _asked(project.client)
    report.user_properties.append((PROPERTY, {"met": sorted(map(list, met)), "methods": methods}))


def _asked(client: "SandboxClient") -> tuple[set[Met], list[str]]:
    """What a server tells of a project."""
    told = client.call("GET", "/control/coverage/")
    met = {
        met_of(row["group"], row["name"], cell["what"])
        for row in told["items"]
        for cell in row["cells"]
        if cell["count"]
    }
    methods = [row["name"] for row in told["items"] if row["group"] == METHOD]
    return met, methods if told["is_chosen"] else []


class CoverageOfSuite:
    """Collects what all tests have met, also on workers of pytest-xdist, and tells it at the end."""

    def __init__(self, fail_under: float, file: str | None) -> None:
        self._fail_under = fail_under
        self._file = file
        self._met: dict[Met, list[str]] = defaultdict(list)
        self._methods: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect what one test has met."""
        for name, told in report.user_properties:
            if name == PROPERTY and isinstance(told, dict):
                self._methods |= set(told["methods"])
                for one in told["met"]:
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
