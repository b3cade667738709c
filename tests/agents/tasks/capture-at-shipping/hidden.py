"""A parcel is shipped after three days."""


def test_a_parcel(customer, payment_sandbox):
    sale = customer.buys()
    customer.pays(sale)
    payment_sandbox.clock.advance("P3D")
    assert customer.fills_in(sale, "ship", amount=sale.amount) == 200
    assert sale.shipped == sale.amount
