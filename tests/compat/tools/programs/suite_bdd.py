import pytest
from payments import place
from pytest_bdd import given, parsers, scenarios, then, when

scenarios("payments.feature")


@pytest.fixture
@given("an order", target_fixture="order_id")
def order_id(payment_sandbox):
    return place(payment_sandbox)


@when(parsers.parse("the customer chooses to {action}"))
def act(payment_sandbox, order_id, action):
    if action == "wait":
        payment_sandbox.clock.advance("PT30M")
    else:
        payment_sandbox.act(order_id, "customer", action)


@then(parsers.parse("its status is {status}"))
def check(payment_sandbox, order_id, status):
    assert payment_sandbox.client.order(order_id)["status"] == status
