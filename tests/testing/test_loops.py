"""Tests that need a thread without an event loop, whereas Playwright keeps one on the test thread."""

import sys
from pathlib import Path

from tests.support.documentation import ROOT, run_command

FILE = str(Path(__file__).with_name("on_loops.py"))


def test_applications_and_tests_on_event_loops() -> None:
    """The tests on event loops pass in a separate process."""
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "python_files=on_*.py"]
    result = run_command([sys.executable, "-m", "pytest", *options, FILE], ROOT)
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-1000:]
