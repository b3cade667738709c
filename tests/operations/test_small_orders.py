"""Values that orders share are stored in memory once."""

from typing import Any

from payment_sandbox.kernel.interning import EMPTY_MAPPING
from payment_sandbox.orders.order import Order
from tests.support.driver import Sandbox, card

CUSTOMER = {"email_address": "jan@example.com", "country": "NL", "locale": "nl"}
LINE = {"merchant_order_line_id": "line-1", "name": "Socks", "amount": 1295, "quantity": 1}


def create_record(sandbox: Sandbox, **fields: Any) -> Order:
    """Create an order; return the server's record."""
    created = sandbox.place(card(), customer=CUSTOMER, order_lines=[LINE], amount=1295, **fields)
    project = sandbox.project_in_process
    order = project.epoch.store.order(created["id"])
    assert order is not None
    return order


def test_orders_share_their_texts(sandbox: Sandbox) -> None:
    """Two orders share their texts and the names of their fields, until a reset."""
    first, second = (
        create_record(sandbox, description="Socks", merchant_order_id=f"shop-{n}") for n in range(2)
    )
    assert first.client is second.client
    assert first.sent["customer"] is second.sent["customer"]
    assert first.sent["description"] is second.sent["description"]
    assert {id(name) for name in first.sent} == {id(name) for name in second.sent}
    assert first.currency is second.currency
    assert first.order_lines[0].name is second.order_lines[0].name
    attempts = [order.transactions[0] for order in (first, second)]
    assert attempts[0].payment_method is attempts[1].payment_method
    assert [(each.asked, each.details, each.plan) for each in attempts] == [(EMPTY_MAPPING,) * 3] * 2
    assert all(each.asked is each.details is each.plan is EMPTY_MAPPING for each in attempts)
    assert first.sent["merchant_order_id"] != second.sent["merchant_order_id"]
    sandbox.post("/control/reset/")
    after = create_record(sandbox)
    assert after.client == first.client
    assert after.client is not first.client
