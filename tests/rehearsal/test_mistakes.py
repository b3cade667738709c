"""Mistakes that are planted in the sock shop: the variation that finds each passes in the right shop.

``make rehearse`` looks for all of them without knowing the variation, which takes a quarter of an hour.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rehearsal.mistakes import MISTAKES
from tests.rehearsal.planting import planted, rehearse
from tests.support.documentation import ROOT

FOUND_BY = {
    "counts the same news twice": ("as it is", "a mail twice"),
    "looks before it reads, and acts afterwards": ("webhook:1:together", "a mail twice"),
    "refunds on both of two clicks": ("press:3:twice", "€19.90 was refunded instead of €9.95"),
    "refunds again after a lost response": ("change:2:answer-lost", "but the customer received €19.90"),
    "waits for ever": ("create:1:silent", "the call has no timeout"),
    "forgets the first try": ("action:1:pays-both", "the customer paid 2 times"),
    "authorizes for too short": ("action:1:three-days", "the authorization expired before the shop shipped"),
    "fails on orders that it does not know": (
        "create:1:early",
        "Your shop answered the webhook with an error",
    ),
    "tells the key in its answers": ("read:1:unavailable", "contains a key"),
    "looks only once in its job": ("webhook:2:lost+read:2:unavailable", "the shop does not mark it as paid"),
}


FAST = "counts the same news twice"
UNTOLD = ("looks before it reads, and acts afterwards", "forgets the first try")
"""A rehearsal has to find these without being told where to look."""


@pytest.mark.parametrize(
    "mistake", [name if name == FAST else pytest.param(name, marks=pytest.mark.prove) for name in FOUND_BY]
)
def test_a_mistake_is_found(mistake: str, tmp_path: Path) -> None:
    """The happy tests pass with it; one variation tells its effect."""
    variation, effect = FOUND_BY[mistake]
    option = "--payment-rehearse-only=" + (variation if ":" in variation else "webhook:1:lost")
    wrong = planted(tmp_path, mistake)
    assert rehearse(wrong).code == 0, "the happy tests find it"
    done = rehearse(wrong, option)
    assert done.code == 1, done.text[-3000:]
    assert any(effect in finding["sentence"] for finding in done.findings), done.text[-3000:]


@pytest.mark.prove
@pytest.mark.parametrize("mistake", UNTOLD)
def test_a_rehearsal_finds_a_mistake_by_itself(mistake: str) -> None:
    """As ``make rehearse`` looks for all of them."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.rehearsal.planting", mistake],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr[-2000:]
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [(line["mistake"], line["found"]) for line in lines[:3]] == [
        (None, False),
        (None, False),
        (mistake, True),
    ]
    assert lines[-1]["with_books"] == 1


@pytest.mark.prove
def test_a_change_of_a_job_after_the_test_is_played(tmp_path: Path) -> None:
    """Though the run is like another one until the job runs."""
    wrong = planted(tmp_path, "looks only once in its job")
    done = rehearse(wrong, "--payment-rehearse", "--payment-rehearse-budget=30s", "-k", "test_a_transfer")
    (finding,) = done.findings
    assert "the shop does not mark it as paid" in finding["sentence"]
    assert finding["variation"] == FOUND_BY["looks only once in its job"][0]


def test_every_mistake_can_be_planted(tmp_path: Path) -> None:
    """The shop has the lines that they change."""
    for number, mistake in enumerate(MISTAKES):
        planted(tmp_path / str(number), mistake)
    assert len(MISTAKES) > 30


def test_the_sock_shop_survives(tmp_path: Path) -> None:
    """Its happy tests, in what six seconds let through; ``make rehearse`` says the rest."""
    done = rehearse(planted(tmp_path, None), "--payment-rehearse", "--payment-rehearse-budget=4s")
    assert (done.code, done.findings) == (0, []), done.text[-3000:]
