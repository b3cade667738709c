"""Each variation finds its mistake in a small shop, and passes in the correct shop."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.rehearsal.cells_suite import CASES, Case
from tests.support.suites import WITHOUT

SUITE = Path(__file__).parent / "cells_suite.py"


@pytest.fixture(scope="module")
def findings() -> dict[str, list[dict[str, Any]]]:
    """The findings of each case, by its test id."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copyfile(SUITE, folder / "test_shop.py")
        report = f"--payment-rehearse-report={folder / 'report.json'}"
        command = [sys.executable, "-m", "pytest", "-q", *WITHOUT, report]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=280, check=False)
        assert "no step for" not in result.stdout, result.stdout[-3000:]
        tests = json.loads((folder / "report.json").read_text())["tests"]
    return {test["test"].partition("[")[2].rstrip("]"): test["findings"] for test in tests}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.flow} {case.variation}")
def test_a_variation_finds_its_mistake_only(case: Case, findings: dict[str, list[dict[str, Any]]]) -> None:
    """A variation has a finding with its mistake, and no finding without it."""
    assert findings[f"{case.flow}-{case.variation}-right"] == []
    if case.mistake:
        wrong = findings[f"{case.flow}-{case.variation}-{case.mistake}"]
        sentences = [each["sentence"] for each in wrong if each["variation"] == case.variation]
        assert any(case.effect in sentence for sentence in sentences), wrong
