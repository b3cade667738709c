"""A customer buys, pays, returns to the shop, and gets the goods."""


def test_a_sale(customer):
    sale = customer.buys()
    customer.pays(sale)
    assert customer.comes_back(sale) == "Thank you!"
    assert sale.paid == sale.amount
    assert customer.fills_in(sale, "ship", amount=sale.amount) == 200
