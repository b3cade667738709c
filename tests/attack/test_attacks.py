"""The short form of each attack; ``make attack`` runs them at full size with limits for latencies."""

import subprocess
import sys

import pytest

from tests.attack import SHORT, Report
from tests.attack.all import ATTACKS
from tests.support.documentation import ROOT


@pytest.mark.timeout(1200)  # a dozen servers start in turn
@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_repelled(name: str) -> None:
    """An attack in its short form reports no problems."""
    report = Report(name, SHORT, print)
    ATTACKS[name](report)
    report.end()


def test_the_command_reports_and_succeeds() -> None:
    """The command runs a named attack in its short form, prints a report and succeeds."""
    command = [sys.executable, "-m", "tests.attack", "--short", "requests"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert result.returncode == 0, result.stdout + result.stderr[-2000:]
    assert result.stdout.startswith("requests\n")
    assert result.stdout.endswith("all attacks were repelled\n")
