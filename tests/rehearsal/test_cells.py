"""Each variation finds its mistake in a small shop, and passes in the correct shop; findings reproduce."""

from pathlib import Path
from typing import Any

import pytest

from tests.rehearsal.cells_suite import CASES, Case
from tests.rehearsal.running import assert_reproduced, copy_cells, read_report, run_suite
from tests.support.environments import made_once
from tests.support.samples import of_the_day


def rehearse_cells(folder: Path) -> None:
    """Rehearse the small shop in a folder, which gets the report."""
    copy_cells(folder)
    result = run_suite(folder)
    assert "no step for" not in result.text, result.text[-3000:]


@pytest.fixture(scope="module")
def findings(shared: Path) -> dict[str, list[dict[str, Any]]]:
    """The findings of each case, by its test id."""
    report = read_report(made_once(shared / "cells", rehearse_cells))
    return {test["test"].partition("[")[2].rstrip("]"): test["findings"] for test in report}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.flow} {case.variation}")
def test_a_variation_finds_its_mistake_only(case: Case, findings: dict[str, list[dict[str, Any]]]) -> None:
    """A variation has a finding with its mistake, and no finding without it."""
    assert findings[f"{case.flow}-{case.variation}-right"] == []
    if case.mistake:
        wrong = findings[f"{case.flow}-{case.variation}-{case.mistake}"]
        sentences = [each["sentence"] for each in wrong]
        assert any(case.effect in sentence for sentence in sentences), wrong


KINDS = sorted({case.variation.partition(":")[0] for case in CASES})


@pytest.mark.prove
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", KINDS)
def test_findings_of_each_variation_reproduce(
    findings: dict[str, list[dict[str, Any]]], tmp_path: Path, kind: str
) -> None:
    """The finding of a small shop reproduces, although its test's marker selects a variation, too."""
    copy_cells(tmp_path)
    found = [each for case in findings.values() for each in case if each["variation"].startswith(kind)]
    assert_reproduced(of_the_day(found, 2), tmp_path)
