"""Each check of the attacks detects its problem."""

from typing import Any

import pytest

from tests.attack import Failed, Report, Size
from tests.attack.chaos import AMOUNT, _check_books
from tests.attack.probe import READ, Waits, _report

AT_REST = Waits({READ: [2.0] * 100, "create": [3.0] * 100}, {})


class ProjectBooks:
    """A project with one order and the given entries and amounts."""

    def __init__(self, entries: list[dict[str, Any]], amounts: dict[str, int], refunded: int = 0) -> None:
        refund = {"id": "b", "refunds": [], "transactions": [], "amount_cents": refunded}
        order = {
            "id": "a",
            "refunds": [{"refund_id": "b"}],
            "transactions": [{"authorization": {"entries": entries} if entries else None}],
            "refund_of_order_id": None,
        }
        self._state = {"orders": [order, {**refund, "refund_of_order_id": "a"}]}
        self._amounts = amounts

    def expect(self, method: str, path: str) -> Any:
        """Return the state, or the amounts of an order."""
        return self._state if path == "/control/state/" else {"amount_details": self._amounts}


def entry(cents: int, taken: str = "captured") -> dict[str, Any]:
    """Return one entry of an authorization."""
    return {"amount_cents": cents, "taken": taken}


@pytest.mark.parametrize(
    ("books", "problem"),
    [
        (ProjectBooks([entry(AMOUNT), entry(1, "voided")], {"captured": 1}), "no more is taken"),
        (ProjectBooks([entry(5)], {"captured": 1}, refunded=6), "no more is refunded"),
        (ProjectBooks([entry(5)], {"captured": -1}), "no amount is negative"),
        (ProjectBooks([entry(5)], {}), "no amount is negative"),
        (ProjectBooks([], {"captured": 1}), "there are authorizations"),
    ],
)
def test_inconsistent_books_are_reported(books: Any, problem: str) -> None:
    """Inconsistent amounts fail the attack, and so does a project without authorizations."""
    report = Report("chaos", Size())
    _check_books(books, report)
    with pytest.raises(Failed, match=problem):
        report.end()


def test_consistent_books_pass() -> None:
    """Consistent amounts pass the check."""
    report = Report("chaos", Size())
    _check_books(ProjectBooks([entry(5)], {"captured": 5}, refunded=5), report)  # type: ignore[arg-type]
    report.end()


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
