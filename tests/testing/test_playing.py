"""``play`` lets the scenario decide the actions of an order's customer."""

import pytest

from payment_sandbox.testing.project_fixture import PaymentSandbox
from tests.support.in_process import place


@pytest.mark.parametrize(
    ("customer", "status"),
    [("pays", "completed"), ("fails", "processing"), ("abandons", "processing"), ("waits", "completed")],
)
def test_the_scenario_decides(payment_sandbox: PaymentSandbox, customer: str, status: str) -> None:
    """``play`` runs the customer's action of the scenario, or pays if the customer waits."""
    then = {"customer": customer} if customer == "waits" else {"customer": customer, "after": "PT20S"}
    payment_sandbox.scenario({"name": "own", "rules": [{"then": then}]})
    before = payment_sandbox.clock.now
    order = payment_sandbox.play(place(payment_sandbox))
    assert payment_sandbox.client.status(order["id"]) == order["status"]
    if customer != "waits":
        assert (payment_sandbox.clock.now - before).total_seconds() == 20
    if customer != "fails":
        assert order["status"] == status


def test_other_orders_are_left_alone(payment_sandbox: PaymentSandbox) -> None:
    """``play`` does not run later actions on other orders."""
    rule = {"when": {"amount": 500}, "then": {"customer": "cancels", "after": "PT5M"}}
    payment_sandbox.scenario({"name": "own", "rules": [rule]})
    place(payment_sandbox, amount=500)
    before = payment_sandbox.clock.now
    assert payment_sandbox.play(place(payment_sandbox))["status"] == "completed"
    assert payment_sandbox.clock.now == before
