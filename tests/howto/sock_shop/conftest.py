"""Fixtures: the shop under test, and a payment service that the test controls."""

import pytest
from flask.testing import FlaskClient

from payment_sandbox import PaymentSandbox

from .payments import Payments
from .shop import Sale, make_shop

SHOP_URL = "http://shop.test"


class Customer:
    """A customer with a browser."""

    def __init__(self, browser: FlaskClient, sandbox: PaymentSandbox) -> None:
        self.browser = browser
        self.sandbox = sandbox

    def buys(self, **basket: int) -> Sale:
        """Fill a basket and check out; the customer is then on the payment page."""
        answer = self.browser.post("/checkout", data=basket)
        assert answer.status_code == 303, answer.text
        return self.sale(self.sales_begun)

    @property
    def sales_begun(self) -> int:
        return len(self.browser.application.extensions["sales"]._by_number)

    def sale(self, count: int = 1) -> Sale:
        """The nth sale of the test."""
        found: Sale = self.browser.application.extensions["sales"].find(f"S-{1000 + count}")
        return found

    def pays(self, sale: Sale, **how: str) -> None:
        """Pay on the payment page."""
        self.sandbox.act(str(sale.payment_id), **how)

    def comes_back(self, sale: Sale) -> str:
        """Return from the payment page, and return what the shop then says."""
        return self.browser.get("/thanks", query_string={"order_id": sale.payment_id}).text


@pytest.fixture
def shop(payment_sandbox: PaymentSandbox) -> FlaskClient:
    """The shop; webhooks and calls to the sandbox stay in this process."""
    payments = Payments(payment_sandbox.base_url, payment_sandbox.api_key, payment_sandbox.session)
    app = make_shop(payments, SHOP_URL)
    payment_sandbox.deliver_to(app)
    return app.test_client()


@pytest.fixture
def customer(shop: FlaskClient, payment_sandbox: PaymentSandbox) -> Customer:
    """A customer of the shop."""
    return Customer(shop, payment_sandbox)
