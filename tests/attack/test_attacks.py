"""A short form of each attack; ``make attack`` runs them at full size, and limits latencies, too."""

import pytest

from tests.attack import SHORT, Report
from tests.attack.all import ATTACKS


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_repelled(name: str) -> None:
    """Nothing that it looks for goes wrong."""
    report = Report(name, SHORT, print)
    ATTACKS[name](report)
    report.end()
