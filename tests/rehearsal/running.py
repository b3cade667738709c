"""Runs a copy of a suite in a separate process, and reads the report of its rehearsal."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.documentation import run_command
from tests.support.suites import PLUGINS, run_pytest


class RehearsalResult(NamedTuple):
    """The result of a rehearsal."""

    code: int
    text: str
    tests: list[dict[str, Any]]

    @property
    def findings(self) -> list[dict[str, str]]:
        """The findings of all tests."""
        return [finding for test in self.tests for finding in test["findings"]]

    def count(self, name: str) -> int:
        """Return the sum of a counter over all tests."""
        return sum(test[name] for test in self.tests)


def run_suite(folder: Path, *options: str, **environment: str) -> RehearsalResult:
    """Rehearse the suite of a folder."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    options = ("-pno:cacheprovider", *options, f"--payment-rehearse-report={report}")
    result = run_pytest(folder, "-q", *options, **environment)
    tests = json.loads(report.read_text())["tests"] if report.exists() else []
    return RehearsalResult(result.returncode, result.stdout + result.stderr, tests)


def assert_reproduced(findings: list[dict[str, Any]], folder: Path) -> None:
    """Assert that the printed command of each finding prints its effect, when it is run in a shell.

    The sentence can differ: only several variations together show a common cause.
    """
    assert findings
    for finding in findings:
        result = run_command(
            ["sh", "-c", finding["again"]], folder, PYTEST_ADDOPTS="-pno:cacheprovider", **PLUGINS
        )
        assert (result.returncode, finding["effect"] in result.stdout) == (1, True), (
            finding["again"] + result.stdout[-3000:] + result.stderr[-1000:]
        )
