"""Transfers that come, in mode live."""

import pytest

# A surplus cannot be read from an order, so nobody is asked to give it back.
pytestmark = [
    pytest.mark.payment_settings(mode="live"),
    pytest.mark.payment_review("error", expect=["HOOK-13"]),
]


def test_the_money_comes(customer, payment_sandbox):
    sale = customer.buys()
    assert customer.fills_in(sale, "ship", amount=sale.amount) == 409
    payment_sandbox.clock.advance("P2D")
    payment_sandbox.act(sale.orders[-1], "bank", "credit")
    assert sale.paid == sale.amount
    assert customer.fills_in(sale, "ship", amount=sale.amount) == 200


def test_the_money_comes_in_parts(customer, payment_sandbox):
    sale = customer.buys()
    payment_sandbox.act(sale.orders[-1], "bank", "credit", amount=1000)
    assert customer.fills_in(sale, "ship", amount=sale.amount) == 409
    payment_sandbox.act(sale.orders[-1], "bank", "credit", amount=1500)
    assert customer.fills_in(sale, "ship", amount=sale.amount) == 200
