"""A second attempt after a declined card, and after leaving the payment page."""


def test_a_second_card(customer):
    sale = customer.buys()
    customer.pays(sale, "fail")
    assert customer.fills_in(sale, "pay") == 303
    customer.pays(sale)
    assert customer.comes_back(sale) == "Thank you!"


def test_a_second_page(customer):
    sale = customer.buys()
    assert customer.fills_in(sale, "pay") == 303
    customer.pays(sale)
    assert customer.comes_back(sale) == "Thank you!"
