"""Kills under load lose no acknowledged change."""

import os
import subprocess
import sys
from typing import Final

from tests.attack import Report

FULL: Final = (30, 26)  # runs, and kills in each
SECONDS_MAX: Final = 1500


def attack(report: Report) -> None:
    """Run the test of kills at many times its size; the short form runs as a separate test."""
    runs, kills = FULL
    if not report.size.strict:
        report.note("kills", "see tests/storage/test_killed.py")
        return
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "", "tests/storage/test_killed.py"],
        env={**os.environ, "SANDBOX_KILL_RUNS": str(runs)},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    report.note("kills", runs * kills)
    report.expect("no acknowledged change is lost", result.returncode == 0, result.stdout[-2000:])
