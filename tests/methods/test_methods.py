"""Tables of all methods: the steps at the start of an attempt, and at its end."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.methods import ALL_METHODS, METHODS_BY_NAME, behaviour_of
from payment_sandbox.methods.common import AttemptDraft, Move, ScheduleAction, Step, Terms
from payment_sandbox.orders.actions import Action
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


LAST_STEPS = """
credit-card      | processing | customer pay      |           | pay
credit-card      | processing | customer pay      | manual    | authorize
credit-card      | new        | customer fail     |           | fail
wallet-apple     | processing | customer cancel   |           | cancel
wallet-google    | processing | customer pay      |           | pay
pay-later-a      | processing | customer pay      | manual    | authorize
pay-later-a      | pending    | screening approve |           | pass
pay-later-a      | pending    | screening decline |           | decline
pay-later-a      | pending    | screening error   |           | fail
bank-redirect-nl | processing | customer fail     |           | fail
"""


@pytest.mark.parametrize("row", LAST_STEPS.strip().splitlines())
def test_the_last_steps(row: str) -> None:
    """The last steps depend on the method, status, action and capture mode; each action is allowed."""
    method, status, action, mode, expected = (part.strip() for part in row.split("|"))
    transaction = attempt(method, status, capture_mode=mode or None)
    actor, name = action.split()
    assert action in METHODS_BY_NAME[method].actions(transaction, terms())
    assert describe(METHODS_BY_NAME[method].finish(transaction, Action(actor, name), terms())) == expected


@pytest.mark.parametrize("method", [method.name for method in ALL_METHODS])
def test_a_finished_attempt_allows_no_action(method: str) -> None:
    """A finished attempt allows no action, except the credit of an expired live transfer."""
    for status in ("completed", "cancelled", "error", "accepted", "expired"):
        assert list(METHODS_BY_NAME[method].actions(attempt(method, status), terms())) == []
    assert list(
        METHODS_BY_NAME["bank-transfer"].actions(attempt("bank-transfer", "expired"), terms(False))
    ) == ["bank credit"]


def test_refunds_have_the_actions_of_the_processor() -> None:
    """Refunds of all methods have the actions of the processor."""
    refund = attempt("wallet-qr", "processing", credit_debit="debit")
    assert list(behaviour_of(refund).actions(refund, terms())) == [
        "processor settle",
        "processor fail",
    ]


@pytest.mark.parametrize("method", ALL_METHODS)
def test_every_method_checks_a_draft(method: Any) -> None:
    """Every method checks an empty draft without an error."""
    assert isinstance(method.check(AttemptDraft("transactions[0]", None, {}, None), terms()), list)
