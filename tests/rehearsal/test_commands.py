"""Every finding reproduces by the command that it prints."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.rehearsal.planting import plant_mistake, run_suite
from tests.rehearsal.test_cells import SUITE as CELLS
from tests.support.documentation import environment

BUDGETS = ("10s", "60s", "200s")  # a busy machine needs more time for a finding
REPRODUCED = (  # one mistake for each kind of change that finds it; all of them take a quarter of an hour
    *("handles the same status twice", "trusts the customer's return"),
    *("decides before it reads the order", "forgets the first attempt"),
)


def assert_reproduced(findings: list[dict[str, Any]], folder: Path, **more: str) -> None:
    """Assert that the printed command of each finding prints its effect, when it is run in a shell.

    The sentence can differ: only several variations together show a common cause.
    """
    assert findings
    for finding in findings:
        result = subprocess.run(
            finding["again"],
            cwd=folder,
            env=environment(**more),
            shell=True,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (result.returncode, finding["effect"] in result.stdout) == (1, True), (
            finding["again"] + result.stdout[-3000:] + result.stderr[-1000:]
        )


@pytest.mark.prove
@pytest.mark.timeout(900)
@pytest.mark.parametrize("mistake", REPRODUCED)
def test_findings_of_a_mistake_reproduce(mistake: str, tmp_path: Path) -> None:
    """All findings of a shop with a planted mistake reproduce."""
    folder = plant_mistake(tmp_path, mistake)
    rehearsals = (
        run_suite(folder, "--payment-rehearse", f"--payment-rehearse-budget={budget}").findings
        for budget in BUDGETS
    )
    assert_reproduced(next(filter(None, rehearsals), []), folder)


@pytest.mark.prove
@pytest.mark.timeout(900)
def test_findings_of_each_variation_reproduce(tmp_path: Path) -> None:
    """The finding of each small shop reproduces, although its test's marker selects a variation, too."""
    shutil.copyfile(CELLS, tmp_path / "test_shop.py")
    assert_reproduced(run_suite(tmp_path, "-k", "not right").findings, tmp_path)
