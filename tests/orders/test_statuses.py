"""Both transition tables, and the one function that sets a status."""

from datetime import UTC, datetime
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from payment_sandbox.orders.statuses import (
    ORDER_TRANSITIONS,
    TRANSACTION_TRANSITIONS,
    IllegalTransition,
    OrderStatus,
    TransactionStatus,
    Trigger,
    can_move,
    move,
)

NOW = datetime(2026, 3, 1, tzinfo=UTC)
TABLES = [(OrderStatus, ORDER_TRANSITIONS), (TransactionStatus, TRANSACTION_TRANSITIONS)]
CASES = [
    (table, status, trigger) for statuses, table in TABLES for status, trigger in product(statuses, Trigger)
]


def subject(table: Any, status: str) -> Any:
    """Return an object with a status."""
    return SimpleNamespace(TRANSITIONS=table, id="x", status=str(status), completed=None, modified=None)


@pytest.mark.rule("STA-01", "STA-18", "SET-35")
def test_the_tables_hold_every_status() -> None:
    """The tables have every status; only late money leaves a terminal status."""
    assert {str(status) for status in ORDER_TRANSITIONS} == {
        "new", "processing", "accepted", "completed", "cancelled", "expired", "error",
    }  # fmt: skip
    assert {str(status) for status in TRANSACTION_TRANSITIONS} == {
        "new", "processing", "pending", "accepted", "completed", "cancelled", "expired", "error",
    }  # fmt: skip
    for _, table in TABLES:
        assert table["error"] == {}
        assert set(table["cancelled"]) <= {Trigger.PAY, Trigger.PEND}


@pytest.mark.parametrize(("table", "status", "trigger"), CASES)
def test_only_transitions_in_the_tables_are_made(table: Any, status: str, trigger: Trigger) -> None:
    """A transition in the table is made; any other raises an error and changes nothing."""
    moved = subject(table, status)
    if can_move(moved, trigger):
        transition = move(moved, trigger, NOW)
        assert (transition.before, transition.after, transition.at) == (status, moved.status, NOW)
        assert moved.status in table
        assert (moved.completed is not None) == (moved.status == "completed")
    else:
        before = vars(moved).copy()
        with pytest.raises(IllegalTransition):
            move(moved, trigger, NOW)
        assert vars(moved) == before


def test_completion_keeps_its_first_time() -> None:
    """A later transition does not change the time of completion."""
    moved = subject(ORDER_TRANSITIONS, OrderStatus.NEW)
    move(moved, Trigger.PAY, NOW)
    assert moved.completed == NOW
    move(moved, Trigger.LAPSE, NOW.replace(year=2027))
    assert moved.completed == NOW
