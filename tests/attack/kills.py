"""Kills under load: nothing that was acknowledged is lost."""

import os
import subprocess
import sys
from typing import Final

from tests.attack import Report

FULL: Final = (30, 26)  # runs, and kills in each
SECONDS_MAX: Final = 1500


def attack(report: Report) -> None:
    """The test of kills, at many times its size; its short form runs as a test of its own."""
    runs, kills = FULL
    if not report.size.strict:
        report.note("kills", "see tests/storage/test_killed.py")
        return
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "", "tests/storage/test_killed.py"],
        env={**os.environ, "SANDBOX_KILL_RUNS": str(runs)},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    report.note("kills", runs * kills)
    report.expect("nothing acknowledged is lost", ran.returncode == 0, ran.stdout[-2000:])
