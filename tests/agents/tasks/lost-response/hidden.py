"""A customer buys and pays; the rehearsal loses responses."""


def test_a_sale(customer):
    sale = customer.buys()
    customer.pays(sale)
    assert customer.comes_back(sale) == "Thank you!"
