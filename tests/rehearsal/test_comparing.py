"""A run is compared with the unchanged one: charges, refunds and shipments that it has in addition."""

import pytest

from payment_sandbox.testing.project import PaymentSandbox
from pytest_payment_sandbox.rehearsal.changes import parse_changed_step
from pytest_payment_sandbox.rehearsal.comparing import (
    RecurringCharges,
    count_recurring_charges,
    find_extra_charges,
    find_repeated_moves,
)

CENTS = 999
TWO = RecurringCharges(2, 2)


def pay(sandbox: PaymentSandbox, **details: str) -> str:
    """Create a card payment; its order."""
    attempt = {"payment_method": "credit-card", "payment_method_details": details}
    body = {"currency": "EUR", "amount": CENTS, "transactions": [attempt]}
    answer = sandbox.session.post(f"{sandbox.base_url}/v1/orders/", json=body, timeout=5)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def test_charges_of_stored_cards_are_counted(payment_sandbox: PaymentSandbox) -> None:
    """All but the first payment, and but failed ones."""
    project = payment_sandbox.server.project_of(payment_sandbox.api_key)
    assert project is not None
    first = pay(payment_sandbox, recurring_type="first")
    order = payment_sandbox.act(first)
    token = order["transactions"][0]["payment_method_details"]["vault_token"]
    assert count_recurring_charges(project) == (0, 0)
    pay(payment_sandbox, recurring_type="recurring", vault_token=token)
    pay(payment_sandbox)
    assert count_recurring_charges(project) == (1, 1)
    payment_sandbox.scenario({"name": "declines", "rules": [{"then": {"processor": "fails"}}]})
    failed = pay(payment_sandbox, recurring_type="recurring", vault_token=token)
    payment_sandbox.clock.advance("PT1H")
    assert project.find_order(failed).status == "error"
    assert count_recurring_charges(project) == (2, 1)


@pytest.mark.parametrize(
    ("changes", "is_problem"),
    [
        (["create:2:answer-lost"], True),
        (["webhook:1:late", "read:1:unavailable"], True),
        (["webhook:1:late", "time:1:day-more"], False),
        (["press:1:twice"], False),
        (["change:1:captured"], False),
    ],
)
def test_lost_calls_and_webhooks_are_no_reason_to_charge_again(changes: list[str], is_problem: bool) -> None:
    """More time, and more purchases, are."""
    steps = list(map(parse_changed_step, changes))
    problems = [problem.sentence for problem in find_extra_charges(RecurringCharges(3, 3), TWO, steps)]
    assert problems == (["the shop made 3 charges to stored cards instead of 2"] if is_problem else [])
    for others in (
        TWO,
        RecurringCharges(2, 3),
        RecurringCharges(3, 2),
    ):  # one fails after the end of the test
        assert not list(find_extra_charges(others, TWO, steps))


def test_what_moves_again_is_named() -> None:
    """By amount and kind."""
    problems = find_repeated_moves((2000, 500, 1000), (1000, 500, 2000))
    assert [each.sentence for each in problems] == ["€20.00 was charged instead of €10.00"]
