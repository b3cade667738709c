"""A test with the stubs of responses."""

import os

import pytest
import responses
from shop import PROVIDER, checkout, paid, send_webhook

NEW = {"id": "order-1", "status": "new"}
PAID = {"id": "order-1", "status": "completed"}


@pytest.mark.parametrize("number", range(int(os.environ["BENCH_TESTS"])))
def test_a_payment(number: int) -> None:
    """An order is created and paid, and the shop handles its webhook."""
    paid.clear()
    with responses.RequestsMock() as stubs:
        stubs.post(f"{PROVIDER}/v1/orders/", json=NEW, status=201)
        stubs.get(f"{PROVIDER}/v1/orders/order-1/", json=PAID)
        order_id = checkout()
        send_webhook(order_id)
        assert order_id in paid
