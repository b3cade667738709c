"""The price of each parcel is captured when it is shipped."""


def captured_amount(payment_sandbox, sale):
    path = f"/v1/orders/{sale.orders[-1]}/?fields[]=amount_details"
    order = payment_sandbox.client.call("GET", path, headers={"Sandbox-Caller": "test"})
    return order["amount_details"]["captured"]


def test_a_parcel(customer, payment_sandbox):
    sale = customer.buys(3000)
    customer.pays(sale)
    payment_sandbox.clock.advance("P6D")
    assert customer.fills_in(sale, "ship", amount=1000) == 200
    assert captured_amount(payment_sandbox, sale) == sale.shipped == 1000


def test_two_parcels(customer, payment_sandbox):
    sale = customer.buys(3000)
    customer.pays(sale)
    customer.fills_in(sale, "ship", amount=2000, parcel="1")
    payment_sandbox.clock.advance("P2D")
    assert customer.fills_in(sale, "ship", amount=1500, parcel="2") == 409
    assert customer.fills_in(sale, "ship", amount=1000, parcel="3") == 200
    assert captured_amount(payment_sandbox, sale) == sale.shipped == 3000
