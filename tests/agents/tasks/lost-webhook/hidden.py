"""A customer pays late, and does not return to the shop."""


def test_a_slow_customer(customer, payment_sandbox):
    sale = customer.buys()
    payment_sandbox.clock.advance("PT90M")
    assert sale.paid == 0
    customer.pays(sale)
    payment_sandbox.clock.advance("PT1H")
    assert sale.paid == sale.amount
