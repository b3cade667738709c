"""A customer returns part of the goods."""


def test_a_return(customer):
    sale = customer.buys()
    customer.pays(sale)
    assert customer.fills_in(sale, "return", amount=1000, slip="R-1") == 200
    assert sale.refunded == 1000


def test_two_returns(customer, payment_sandbox):
    sale = customer.buys()
    customer.pays(sale)
    customer.fills_in(sale, "return", amount=1500, slip="R-1")
    payment_sandbox.clock.advance("P1D")
    assert customer.fills_in(sale, "return", amount=1500, slip="R-2") == 409
    assert customer.fills_in(sale, "return", amount=1000, slip="R-3") == 200
    assert sale.refunded == 2500
