from behave import given, then, when
from payments import place


@given("an order")
def order(context):
    context.order_id = place(context.api)


@when("the customer chooses to {action}")
def act(context, action):
    if action == "wait":
        context.api.clock.advance("PT30M")
    else:
        context.api.act(context.order_id, "customer", action)


@then("its status is {status}")
def check(context, status):
    assert context.api.client.order(context.order_id)["status"] == status
