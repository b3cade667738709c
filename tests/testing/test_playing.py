"""A test that plays an order leaves it to the scenario what its customer does."""

import pytest

from payment_sandbox.testing.project import PaymentSandbox
from tests.support.in_process import ORDER


def placed(sandbox: PaymentSandbox, **more: object) -> str:
    """A new order."""
    order_id: str = sandbox.client.call("POST", "/v1/orders/", {**ORDER, **more})["id"]
    return order_id


@pytest.mark.parametrize(
    ("customer", "status"),
    [("pays", "completed"), ("fails", "processing"), ("abandons", "processing"), ("waits", "completed")],
)
def test_the_scenario_decides(payment_sandbox: PaymentSandbox, customer: str, status: str) -> None:
    """Unless its customer waits for somebody to act."""
    then = {"customer": customer} if customer == "waits" else {"customer": customer, "after": "PT20S"}
    payment_sandbox.scenario({"name": "own", "rules": [{"then": then}]})
    before = payment_sandbox.clock.now
    order = payment_sandbox.play(placed(payment_sandbox))
    assert payment_sandbox.client.status(order["id"]) == order["status"]
    if customer != "waits":
        assert (payment_sandbox.clock.now - before).total_seconds() == 20
    if customer != "fails":
        assert order["status"] == status


def test_other_orders_are_left_alone(payment_sandbox: PaymentSandbox) -> None:
    """Only the action on this order counts."""
    payment_sandbox.scenario(
        {
            "name": "own",
            "rules": [{"when": {"amount": 500}, "then": {"customer": "cancels", "after": "PT5M"}}],
        }
    )
    placed(payment_sandbox, amount=500)
    before = payment_sandbox.clock.now
    assert payment_sandbox.play(placed(payment_sandbox))["status"] == "completed"
    assert payment_sandbox.clock.now == before
