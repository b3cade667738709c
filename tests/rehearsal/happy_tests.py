"""The suite of a shop whose tests know only what goes well; it is copied beside the shop as ``test_shop.py``."""

import pytest
from flask.testing import FlaskClient

from payment_sandbox import PaymentSandbox

from .conftest import Customer  # type: ignore[import-not-found]  # where it is copied to
from .shop import Sale  # type: ignore[import-not-found]


def bought(customer: Customer, **basket: int) -> Sale:
    """A customer buys, pays and comes back."""
    sale = customer.buys(**basket)
    customer.pays(sale)
    assert "thank you" in customer.comes_back(sale)
    return sale


def test_a_sale(customer: Customer) -> None:
    """Paid and thanked."""
    assert bought(customer, socks=2).status == "paid"


def test_a_parcel(customer: Customer, shop: FlaskClient) -> None:
    """A part of the basket is shipped."""
    sale = bought(customer, socks=3)
    assert shop.post(f"/sales/{sale.number}/ship", data={"socks": 1}).status_code == 200


def test_a_return(customer: Customer, shop: FlaskClient) -> None:
    """One pair of two comes back."""
    sale = bought(customer, socks=2)
    shop.post(f"/sales/{sale.number}/ship")
    assert shop.post(f"/sales/{sale.number}/return", data={"socks": 1, "slip": "R-1"}).status_code == 200


def test_a_second_try(customer: Customer, shop: FlaskClient) -> None:
    """The customer goes back, and pays another time."""
    sale = customer.buys(hat=1)
    assert shop.post(f"/sales/{sale.number}/pay").status_code == 303
    customer.pays(sale)
    customer.comes_back(sale)
    assert sale.status == "paid"


@pytest.mark.payment_settings(mode="live")
def test_a_transfer(customer: Customer, shop: FlaskClient, payment_sandbox: PaymentSandbox) -> None:
    """The money comes from a bank; the goods go when it is there."""
    sale = customer.buys(hat=1, method="bank-transfer")
    payment_sandbox.act(str(sale.payment_id), "bank", "credit")
    assert shop.post(f"/sales/{sale.number}/ship").status_code == 200
