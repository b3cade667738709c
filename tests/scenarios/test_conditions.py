"""The match of a rule agrees with its list of unmet conditions."""

from itertools import product

import pytest

from payment_sandbox.scenarios.model import AmountRange, Subject, When

SUBJECTS = [
    Subject(frozenset({method}), amount_cents, customer, merchant_order_id, attempt, is_refund, frozenset())
    for method, amount_cents, customer, merchant_order_id, attempt, is_refund in product(
        ("credit-card", "wallet-qr"),
        (999, 1000),
        ({}, {"email_address": "pays@shop.example"}, {"email_address": "other@shop.example"}),
        (None, "A-1", "B-1"),
        (1, 2),
        (True, False),
    )
]


@pytest.mark.rule("SCN-02", "SCN-03", "SCN-04")
@pytest.mark.parametrize(
    ("when", "count"),
    [
        (When(), 72),
        (When(payment_methods=frozenset({"credit-card"})), 36),
        (When(amount=AmountRange(gte=1000)), 36),
        (When(customer={"email_address": "pays@*"}), 24),
        (When(customer={"email_address": "*"}), 72),
        (When(merchant_order_id="A-*"), 24),
        (When(merchant_order_id="*"), 72),
        (When(attempt=2), 36),
        (When(attempt=2, refund=True, amount=AmountRange(lt=1000)), 18),
    ],
)
def test_a_rule_holds_where_no_condition_is_unmet(when: When, count: int) -> None:
    """A rule holds for exactly the subjects without unmet conditions; half of the subjects are refunds."""
    matching = [subject for subject in SUBJECTS if when.holds(subject)]
    assert matching == [subject for subject in SUBJECTS if not list(when.unmet_conditions(subject))]
    assert len(matching) == count
