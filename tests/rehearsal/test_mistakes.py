"""Mistakes that are planted in the sock shop are found by their variations.

``make rehearse`` searches for all of them without a given variation, which takes a quarter of an hour."""

from pathlib import Path

import pytest

from tests.rehearsal.mistakes import MISTAKES
from tests.rehearsal.planting import plant_mistake, run_suite

FOUND_BY = {
    "handles the same status twice": ("unchanged", "a mail twice"),
    "decides before it reads the order": ("webhook:1:together", "a mail twice"),
    "refunds twice after a double click": ("press:3:twice", "€19.90 was refunded instead of €9.95"),
    "refunds again after a lost response": ("change:2:answer-lost", "but the customer received €19.90"),
    "waits forever": ("create:1:silent", "the call has no timeout"),
    "forgets the first attempt": ("action:1:pays-both", "the customer paid 2 times, €49.00 in total"),
    "authorizes for too short a time": (
        "action:1:three-days",
        "the authorization expired before the shop shipped",
    ),
    "fails on unknown orders": (
        "create:1:early",
        "Your shop answered the webhook with an error",
    ),
    "exposes the key in its responses": ("read:1:unavailable", "contains a key"),
    "reads an order only once in its job": (
        "webhook:2:lost+read:2:unavailable",
        "the shop does not mark it as paid",
    ),
}


FAST_MISTAKE = "handles the same status twice"


@pytest.mark.parametrize(
    "mistake",
    [name if name == FAST_MISTAKE else pytest.param(name, marks=pytest.mark.prove) for name in FOUND_BY],
)
def test_a_mistake_is_found(mistake: str, tmp_path: Path) -> None:
    """The happy tests pass with the mistake, and one variation reports its effect."""
    variation, effect = FOUND_BY[mistake]
    option = "--payment-rehearse-only=" + (variation if ":" in variation else "webhook:1:lost")
    folder = plant_mistake(tmp_path, mistake)
    assert run_suite(folder).code == 0, "the happy tests find it"
    result = run_suite(folder, option)
    assert result.code == 1, result.text[-3000:]
    assert any(effect in finding["sentence"] for finding in result.findings), result.text[-3000:]


@pytest.mark.prove
def test_a_change_to_a_job_after_the_test_is_tried(tmp_path: Path) -> None:
    """A variation of a later job is continued, although the run is a duplicate until then."""
    folder = plant_mistake(tmp_path, "reads an order only once in its job")
    result = run_suite(folder, "--payment-rehearse", "--payment-rehearse-budget=30s", "-k", "test_a_transfer")
    (finding,) = result.findings
    assert "the shop does not mark it as paid" in finding["sentence"]
    assert finding["variation"] == FOUND_BY["reads an order only once in its job"][0]


def test_every_mistake_can_be_planted(tmp_path: Path) -> None:
    """The shop has all lines that the mistakes replace."""
    for number, mistake in enumerate(MISTAKES):
        plant_mistake(tmp_path / str(number), mistake)
    assert len(MISTAKES) > 30


def test_the_sock_shop_survives(tmp_path: Path) -> None:
    """The sock shop has no findings within a small budget; ``make rehearse`` has a larger one."""
    result = run_suite(plant_mistake(tmp_path, None), "--payment-rehearse", "--payment-rehearse-budget=4s")
    assert (result.code, result.findings) == (0, []), result.text[-3000:]
