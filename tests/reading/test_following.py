"""Limits of the calls and modules of a request; a separate commit raises a limit and gives the reason."""

import json
import subprocess
import sys

import pytest

from tests.support.documentation import ROOT

LIMITS = {
    "creation": {"calls": 410, "modules": 62, "changes of folder": 132},
    "payment": {"calls": 1312, "modules": 78, "changes of folder": 360},  # two calls and two webhooks
}


@pytest.fixture(scope="module")
def call_counts() -> dict[str, dict[str, int]]:
    """The calls and modules of one creation and one payment, in a fresh process."""
    command = [sys.executable, "-m", "tests.reading.following"]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    counts: dict[str, dict[str, int]] = json.loads(completed.stdout)
    return counts


@pytest.mark.parametrize("journey", LIMITS)
def test_a_request_takes_few_calls(call_counts: dict[str, dict[str, int]], journey: str) -> None:
    """A request takes few calls; ``python -m tests.reading.following --list`` prints them."""
    exceeded = {what: count for what, count in call_counts[journey].items() if count > LIMITS[journey][what]}
    assert exceeded == {}
    assert all(call_counts[journey][what] > limit / 2 for what, limit in LIMITS[journey].items()), (
        "lower the limit"
    )
    assert call_counts["webhooks"]["delivered"] >= 2
