"""The happy tests of the sock shop, which are copied next to the shop as ``test_shop.py``."""

import pytest
from flask.testing import FlaskClient

from payment_sandbox import PaymentSandbox

from .conftest import Customer  # type: ignore[import-not-found]  # in the copy
from .shop import Sale  # type: ignore[import-not-found]


def buy_and_pay(customer: Customer, **basket: int) -> Sale:
    """Buy, pay and return as a customer."""
    sale = customer.buys(**basket)
    customer.pays(sale)
    assert "thank you" in customer.comes_back(sale)
    return sale


def test_a_sale(customer: Customer) -> None:
    """A paid sale shows the thank-you page."""
    assert buy_and_pay(customer, socks=2).status == "paid"


def test_a_parcel(customer: Customer, shop: FlaskClient) -> None:
    """A part of the basket is shipped."""
    sale = buy_and_pay(customer, socks=3)
    assert shop.post(f"/sales/{sale.number}/ship", data={"socks": 1}).status_code == 200


def test_a_return(customer: Customer, shop: FlaskClient) -> None:
    """One of two pairs is returned."""
    sale = buy_and_pay(customer, socks=2)
    shop.post(f"/sales/{sale.number}/ship")
    assert shop.post(f"/sales/{sale.number}/return", data={"socks": 1, "slip": "R-1"}).status_code == 200


def test_a_second_try(customer: Customer, shop: FlaskClient) -> None:
    """The customer goes back, and pays with a second order."""
    sale = customer.buys(hat=1)
    assert shop.post(f"/sales/{sale.number}/pay").status_code == 303
    customer.pays(sale)
    customer.comes_back(sale)
    assert sale.status == "paid"


@pytest.mark.payment_settings(mode="live")
def test_a_transfer(customer: Customer, shop: FlaskClient, payment_sandbox: PaymentSandbox) -> None:
    """The shop ships after the bank transfer has arrived."""
    sale = customer.buys(hat=1, method="bank-transfer")
    payment_sandbox.act(str(sale.payment_id), "bank", "credit")
    assert shop.post(f"/sales/{sale.number}/ship").status_code == 200
