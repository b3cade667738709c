"""The steps at the start of an attempt, as a table of all methods."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.methods import METHODS_BY_NAME
from payment_sandbox.methods.common import Move, ScheduleAction, Step, Terms
from payment_sandbox.orders.transaction import Transaction

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def terms(is_test: bool = True) -> Terms:
    """Return the terms of a project without features and vault."""
    return Terms(NOW, is_test, frozenset(), lambda token: None, Ids(1))


def attempt(method: str, status: str = "new", **changes: Any) -> Transaction:
    """Return an attempt with a status."""
    fields: dict[str, Any] = {
        "id": "t", "method": method, "payment_method": method, "amount_cents": 1000, "created": NOW,
        "modified": NOW, "expiration_period": "PT30M", "expires_at": NOW + timedelta(minutes=30), "brand": "x",
        "asked": {"issuer_id": "SBXANL2A"}, "status": status,
    }  # fmt: skip
    return Transaction(**{**fields, **changes})


def describe(steps: Any) -> str:
    """Describe moves and scheduled actions in words."""

    def word(step: Step) -> str:
        if isinstance(step, Move):
            return str(step.trigger)
        if isinstance(step, ScheduleAction):
            return f"{step.action.name} after {step.after}"
        return ""

    return ", ".join(filter(None, map(word, steps)))


FIRST_STEPS = """
credit-card      |                                          |
credit-card      | customer=pays after=PT1M                 | customer pay after PT1M
credit-card      | customer=waits                           |
credit-card      | customer=abandons                        | customer visit after PT0S
wallet-qr        | customer=fails                           | customer fail after PT0S
wallet-web       | customer=cancels after=PT5S              | customer cancel after PT5S
bank-redirect-nl | customer=pays                            | customer pay after PT0S
bank-transfer    |                                          | pend
pay-later-a      |                                          |
pay-later-a      | screening=passed customer=pays           | customer pay after PT0S
pay-later-a      | screening=declined                       | decline
pay-later-a      | screening=error                          | fail
pay-later-a      | screening=needs-time                     | pend, screening approve after PT10M
pay-later-a      | screening=needs-time then=declined after=P2D | pend, screening decline after P2D
invoice-later-b  |                                          | accept
invoice-later-b  | screening=declined                       | decline
"""


@pytest.mark.parametrize("row", FIRST_STEPS.strip().splitlines())
def test_the_first_steps(row: str) -> None:
    """The first steps depend on the method and the planned outcome."""
    method, plan, expected = (part.strip() for part in row.split("|"))
    steps = METHODS_BY_NAME[method].begin(
        attempt(method, plan=dict(item.split("=") for item in plan.split())), terms()
    )
    assert describe(steps) == expected
