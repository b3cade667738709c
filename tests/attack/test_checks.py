"""Each check of the attacks detects its problem."""

import pytest

from tests.attack import Failed, Report, Size
from tests.attack.probe import READ, Waits, _report

AT_REST = Waits({READ: [2.0] * 100, "create": [3.0] * 100}, {})


@pytest.mark.parametrize(
    ("waits", "problem"),
    [
        (Waits({READ: [2.0] * 100, "create": [3.0] * 99 + [300.0]}, {}), r"longest wait .*\(create\)"),
        (Waits({READ: [2.0] * 95 + [50.0] * 5, "create": [3.0]}, {}), "99th percentile"),
        (Waits(AT_REST.durations_ms, {"wait: 503": 1}), "another project is answered"),
    ],
)
def test_a_bystander_who_waits_is_noticed(waits: Waits, problem: str) -> None:
    """A long call, slow reads, or a failed call of another project fail the attack."""
    report = Report("shares", Size())
    _report(report, "", AT_REST, waits)
    with pytest.raises(Failed, match=problem):
        report.end()


def test_a_bystander_without_delays_passes() -> None:
    """The same durations as at rest pass the check."""
    report = Report("shares", Size())
    _report(report, "", AT_REST, AT_REST)
    report.end()
