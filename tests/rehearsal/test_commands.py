"""Every finding reproduces by the command that it prints."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.rehearsal.planting import plant_mistake, run_suite
from tests.rehearsal.test_cells import SUITE as CELLS
from tests.rehearsal.test_languages import NODE, only_options
from tests.rehearsal.test_languages import findings as language_findings
from tests.rehearsal.test_languages import rehearse as rehearse_language
from tests.rehearsal.test_rehearsing import rehearse_suite
from tests.rehearsal.test_suites import SUITE, rehearse
from tests.support.documentation import environment

BUDGETS = ("10s", "60s", "200s")  # a busy machine needs more time for a finding
REPRODUCED = (  # one mistake for each kind of change that finds it; all of them take a quarter of an hour
    *("handles the same status twice", "trusts the customer's return"),
    *("decides before it reads the order", "creates again after a lost response"),
)
WITHOUT_WEBHOOK = """
def test_without_a_webhook(payment_sandbox):
    payment_sandbox.act(place(payment_sandbox)["id"])
"""


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
    assert_reproduced(run_suite(tmp_path, "-k", "wrong").findings, tmp_path)


def test_a_finding_without_a_change_reproduces_in_the_folder_of_the_run(tmp_path: Path) -> None:
    """A finding of the unchanged test has a command, too: with the run's options, for the current folder."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "shop").mkdir()
    options = ("--payment-review", "error", "--payment-coverage", "--payment-rehearse-only=action:1:fails")
    code, report, output = rehearse_suite(tmp_path / "shop", WITHOUT_WEBHOOK, *options)
    assert (code, report["findings"][0]["variation"]) == (1, "unchanged"), output[-2000:]
    assert "--payment-coverage" not in report["findings"][0]["again"]
    assert_reproduced(report["findings"][:1], tmp_path / "shop")


def test_findings_of_a_suite_reproduce(tmp_path: Path) -> None:
    """The findings of a suite that is a plain program reproduce."""
    result = rehearse(tmp_path, "--only", "webhook:2:twice", "--json", suite=SUITE % True)
    assert_reproduced(json.loads(result.stdout)["tests"][0]["findings"], tmp_path)


def test_findings_of_named_tests_reproduce(tmp_path: Path) -> None:
    """The findings of a Node suite reproduce: each command selects its test."""
    folder, names = tmp_path / "suite", [mistake.name for mistake in NODE.mistakes]
    result = rehearse_language(NODE, folder, *only_options(NODE), "--json", mistakes=" ".join(names))
    assert_reproduced(language_findings(result), folder, MISTAKES=" ".join(names))
