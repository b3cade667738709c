"""A sale is cancelled before and after the payment."""


def test_before_the_payment(customer):
    sale = customer.buys()
    assert customer.fills_in(sale, "cancel") == 200
    assert sale.cancelled


def test_after_the_payment(customer):
    sale = customer.buys()
    customer.pays(sale)
    assert customer.fills_in(sale, "cancel") == 200
    assert sale.cancelled
    assert customer.fills_in(sale, "ship", amount=sale.amount) == 409
