"""A first month, and two recurring charges."""


def test_three_months(customer, shop, payment_sandbox):
    sale = customer.buys(1500)
    customer.pays(sale)
    for number in ("S-1001-M2", "S-1001-M3"):
        payment_sandbox.clock.advance("P30D")
        assert customer.fills_in(sale, "charge") == 200
        payment_sandbox.clock.advance("PT1H")
        assert shop.sales[number].paid == 1500


def test_a_blocked_card(customer, shop, payment_sandbox):
    sale = customer.buys(1500)
    customer.pays(sale)
    blocked = {"when": {"payment_method": "credit-card"}, "then": {"processor": "fails", "after": "PT1M"}}
    payment_sandbox.scenario({"name": "blocked", "rules": [blocked]})
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
