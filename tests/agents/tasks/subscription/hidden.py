"""A first month, and two that follow."""


def test_three_months(customer, shop, payment_sandbox):
    sale = customer.buys(1500)
    customer.pays(sale)
    for number in ("S-1001-M2", "S-1001-M3"):
        payment_sandbox.clock.advance("P30D")
        assert customer.fills_in(sale, "charge") == 200
        payment_sandbox.clock.advance("PT1H")
        assert shop.sales[number].paid == 1500


def test_a_card_that_is_stopped(customer, shop, payment_sandbox):
    sale = customer.buys(1500)
    customer.pays(sale)
    stopped = {"when": {"payment_method": "credit-card"}, "then": {"processor": "fails", "after": "PT1M"}}
    payment_sandbox.scenario({"name": "stopped", "rules": [stopped]})
    payment_sandbox.clock.advance("P30D")
    assert customer.fills_in(sale, "charge") == 200
    payment_sandbox.clock.advance("PT1H")
    assert customer.fills_in(sale, "charge") == 409
    assert (shop.sales["S-1001-M2"].paid, "S-1001-M3" in shop.sales) == (0, False)


def test_a_month(customer, shop, payment_sandbox):
    sale = customer.buys(1500)
    customer.pays(sale)
    payment_sandbox.clock.advance("P30D")
    assert customer.fills_in(sale, "charge") == 200
    payment_sandbox.clock.advance("PT1H")
    assert shop.sales["S-1001-M2"].paid == 1500
