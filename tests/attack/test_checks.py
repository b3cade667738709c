"""Each check of the attacks fails when what it looks for is there."""

from typing import Any

import pytest

from tests.attack import SHORT, Failed, Report, Size
from tests.attack.chaos import AMOUNT, _check_books
from tests.attack.probe import READ, Waits, _report
from tests.attack.servers import finds_lost_lock
from tests.support.postgres import needs_postgres

REST = Waits({READ: [2.0] * 100, "create": [3.0] * 100}, {})


class Books:
    """A project with one order, whose books are as they are told to be."""

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
        """The state, or an order."""
        return self._state if path == "/control/state/" else {"amount_details": self._amounts}


def entry(cents: int, taken: str = "captured") -> dict[str, Any]:
    """One entry of an authorization."""
    return {"amount_cents": cents, "taken": taken}


@pytest.mark.parametrize(
    ("books", "problem"),
    [
        (Books([entry(AMOUNT), entry(1, "voided")], {"captured": 1}), "no more is taken"),
        (Books([entry(5)], {"captured": 1}, refunded=6), "no more is refunded"),
        (Books([entry(5)], {"captured": -1}), "no amount is negative"),
        (Books([entry(5)], {}), "no amount is negative"),
        (Books([], {"captured": 1}), "there are authorizations"),
    ],
)
def test_wrong_books_are_found(books: Any, problem: str) -> None:
    """Also books of which nothing can be checked."""
    report = Report("chaos", Size())
    _check_books(books, report)
    with pytest.raises(Failed, match=problem):
        report.end()


def test_right_books_are_right() -> None:
    """Nothing is found."""
    report = Report("chaos", Size())
    _check_books(Books([entry(5)], {"captured": 5}, refunded=5), report)  # type: ignore[arg-type]
    report.end()


@pytest.mark.parametrize(
    ("waits", "problem"),
    [
        (Waits({READ: [2.0] * 100, "create": [3.0] * 99 + [300.0]}, {}), r"longest wait .*\(create\)"),
        (Waits({READ: [2.0] * 95 + [50.0] * 5, "create": [3.0]}, {}), "99th percentile"),
        (Waits(REST.took, {"wait: 503": 1}), "another project is answered"),
    ],
)
def test_a_bystander_who_waits_is_noticed(waits: Waits, problem: str) -> None:
    """In any kind of call, in a part of the reads, or because it is refused."""
    report = Report("shares", Size())
    _report(report, "", REST, waits)
    with pytest.raises(Failed, match=problem):
        report.end()


def test_a_bystander_who_waits_for_nobody_is_fine() -> None:
    """The same figures as at rest."""
    report = Report("shares", Size())
    _report(report, "", REST, REST)
    report.end()


@needs_postgres
def test_servers_without_a_fence_are_noticed() -> None:
    """A server that stood still writes on what another one has taken over meanwhile."""
    assert finds_lost_lock(Report("servers", SHORT))
