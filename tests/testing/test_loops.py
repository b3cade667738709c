"""Tests that need a thread without an event loop, whereas Playwright keeps one on the test thread."""

import sys
from pathlib import Path

import pytest

from tests.support.documentation import ROOT, run_command

FILES = sorted(Path(__file__).parent.glob("on_*.py"))


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_applications_and_tests_on_event_loops(file: Path) -> None:
    """The tests on event loops pass in a separate process."""
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "python_files=on_*.py"]
    result = run_command([sys.executable, "-m", "pytest", *options, str(file)], ROOT)
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-1000:]
