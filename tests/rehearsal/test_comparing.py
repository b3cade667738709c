"""A run is compared with the unchanged one: extra charges, refunds and shipments are problems."""

import pytest

from payment_sandbox.scenarios.variation import ShopCall, Step
from payment_sandbox.testing.project_fixture import PaymentSandbox
from pytest_payment_sandbox.rehearsal.changes import parse_changed_step
from pytest_payment_sandbox.rehearsal.run_comparison import (
    Moved,
    RecurringCharges,
    count_recurring_charges,
    find_extra_charges,
    find_extra_money,
    find_extra_refunds,
    find_repeated_moves,
)
from tests.support.in_process import place, project_of

TWO_CHARGES = RecurringCharges(2, 2)


def create_card_payment(sandbox: PaymentSandbox, **details: str) -> str:
    """Create a card payment; return its order id."""
    attempt = {"payment_method": "credit-card", "payment_method_details": details}
    return place(sandbox, transactions=[attempt])


def test_charges_of_stored_cards_are_counted(payment_sandbox: PaymentSandbox) -> None:
    """Recurring charges are counted with and without failed ones; first payments are not."""
    project = project_of(payment_sandbox)
    first = create_card_payment(payment_sandbox, recurring_type="first")
    order = payment_sandbox.act(first)
    token = order["transactions"][0]["payment_method_details"]["vault_token"]
    assert count_recurring_charges(project) == (0, 0)
    create_card_payment(payment_sandbox, recurring_type="recurring", vault_token=token)
    create_card_payment(payment_sandbox)
    assert count_recurring_charges(project) == (1, 1)
    payment_sandbox.scenario({"name": "declines", "rules": [{"then": {"processor": "fails"}}]})
    failed = create_card_payment(payment_sandbox, recurring_type="recurring", vault_token=token)
    payment_sandbox.clock.advance("PT1H")
    assert project.find_order(failed).status == "error"
    assert count_recurring_charges(project) == (2, 1)


@pytest.mark.parametrize(
    ("changes", "is_problem"),
    [
        (["create:2:answer-lost"], True),
        (["webhook:1:late", "read:1:unavailable"], True),
        (["webhook:1:late", "time:1:day-more"], False),
        (["attempt:2:charge-later"], True),
        (["action:1:restarted"], True),
        (["action:1:pays-both"], False),
        (["press:1:twice"], False),
        (["change:1:captured"], False),
    ],
)
def test_lost_calls_and_slow_charges_do_not_justify_extra_charges(
    changes: list[str], is_problem: bool
) -> None:
    """Extra charges are a problem unless a change adds time or a purchase."""
    steps = list(map(parse_changed_step, changes))
    problems = [
        problem.sentence for problem in find_extra_charges(RecurringCharges(3, 3), TWO_CHARGES, steps)
    ]
    assert problems == (["the shop made 3 charges to stored cards instead of 2"] if is_problem else [])
    extra = list(find_extra_money(Moved(3000, 500), Moved(2000, 500), steps))
    assert [each.sentence for each in extra] == (
        ["€30.00 was charged instead of €20.00"] if is_problem else []
    )
    assert not list(find_extra_money(Moved(3000, 1500), Moved(2000, 500), steps)), "it was refunded"
    for charges in (
        TWO_CHARGES,
        RecurringCharges(2, 3),
        RecurringCharges(3, 2),
    ):  # in the others, a charge fails after the end of the test
        assert not list(find_extra_charges(charges, TWO_CHARGES, steps))


@pytest.mark.parametrize(
    ("changes", "is_problem"),
    [
        (["change:2:answer-lost"], True),
        (["change:2:answer-lost", "webhook:3:late"], True),
        (["change:2:unavailable"], False),
        (["change:2:answer-lost", "action:1:pays-both"], False),
        (["change:1:answer-lost"], False),  # a capture
    ],
)
def test_a_lost_response_does_not_justify_an_extra_refund(changes: list[str], is_problem: bool) -> None:
    """An extra refund of the same payments is a problem after a lost response, unless customers act."""
    changed, usual = list(map(parse_changed_step, changes)), Moved(1000, 500)
    calls = enumerate(("/v1/orders/1/captures/", "/v1/orders/1/refunds/"), start=1)
    steps = [Step("change", number, "a call", ShopCall("POST", path)) for number, path in calls]
    problems = [each.sentence for each in find_extra_refunds(Moved(1000, 1000), usual, changed, steps)]
    assert problems == (["€10.00 was refunded instead of €5.00"] if is_problem else [])
    assert not list(
        find_extra_refunds(Moved(2000, 1000), usual, changed, steps)
    )  # a second payment was returned
    assert not list(
        find_extra_refunds(Moved(1000, 500), Moved(1000, 0), changed, steps)
    )  # a cancelled purchase


def test_a_repeated_movement_is_named() -> None:
    """A repeated movement of money is named by amount and kind."""
    problems = find_repeated_moves(Moved(2000, 500, 1000), Moved(1000, 500, 2000))
    assert [each.sentence for each in problems] == ["€20.00 was charged instead of €10.00"]
