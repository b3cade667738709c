"""Incoming transfers, in live mode."""

import pytest

# An order does not show a surplus, so the shop does not have to refund it.
pytestmark = [
    pytest.mark.payment_settings(mode="live"),
    pytest.mark.payment_review("error", expect=["HOOK-13"]),
]


def test_a_transfer(customer, payment_sandbox):
    sale = customer.buys()
    assert customer.fills_in(sale, "ship", amount=sale.amount) == 409
    payment_sandbox.clock.advance("P2D")
    payment_sandbox.act(sale.orders[-1], "bank", "credit")
    assert sale.paid == sale.amount
    assert customer.fills_in(sale, "ship", amount=sale.amount) == 200


def test_a_transfer_in_parts(customer, payment_sandbox):
    sale = customer.buys()
    payment_sandbox.act(sale.orders[-1], "bank", "credit", amount=1000)
    assert customer.fills_in(sale, "ship", amount=sale.amount) == 409
    payment_sandbox.act(sale.orders[-1], "bank", "credit", amount=1500)
    assert customer.fills_in(sale, "ship", amount=sale.amount) == 200
