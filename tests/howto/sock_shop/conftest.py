"""Fixtures: the shop under test, and a payment service that the test controls."""

from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

from payment_sandbox import BookEntry, PaymentSandbox

from .payments import Payments
from .shop import Sale, Shop, make_shop, price_of

SHOP_URL = "http://shop.test"


class Customer:
    """A customer with a browser."""

    def __init__(self, browser: FlaskClient, sandbox: PaymentSandbox) -> None:
        self.browser = browser
        self.sandbox = sandbox

    def buys(self, method: str = "credit-card", **basket: int) -> Sale:
        """Fill a basket and check out; the customer is then on the payment page."""
        response = self.browser.post("/checkout", data={**basket, "method": method})
        assert response.status_code == 303, response.text
        return self.sale(self.sale_count)

    @property
    def sale_count(self) -> int:
        return len(list(self._shop.sales))

    def sale(self, count: int = 1) -> Sale:
        """The nth sale of the test."""
        return self._shop.sales.find(f"S-{1000 + count}")

    @property
    def _shop(self) -> Shop:
        shop: Shop = self.browser.application.extensions["shop"]
        return shop

    def pays(self, sale: Sale, **parameters: Any) -> None:
        """Pay on the payment page."""
        self.sandbox.act(str(sale.payment_id), **parameters)

    def comes_back(self, sale: Sale) -> str:
        """Return from the payment page; return the text that the shop shows."""
        return self.browser.get("/thanks", query_string={"order_id": sale.payment_id}).text


@pytest.fixture
def shop(payment_sandbox: PaymentSandbox) -> FlaskClient:
    """The shop; webhooks and calls to the sandbox stay in this process."""
    payments = Payments(payment_sandbox.base_url, payment_sandbox.api_key, payment_sandbox.session)
    app = make_shop(payments, SHOP_URL)
    payment_sandbox.deliver_to(app)
    payment_sandbox.every("PT12H", app.extensions["shop"].look_at_open_sales)
    return app.test_client()


@pytest.fixture
def payment_books(shop: FlaskClient) -> Callable[[], list[BookEntry]]:
    """The shop's books, for rehearsals."""

    def entry(sale: Sale) -> BookEntry:
        assert len(sale.mails) == len(set(sale.mails)), f"{sale.number}: the customer got a mail twice"
        return BookEntry(
            purchase=sale.number,
            orders=sale.payments,
            amount=sale.total_cents,
            paid=sale.total_cents if sale.paid_with else 0,
            shipped=sum(map(price_of, sale.parcels)),
            refunded=sum(sale.refunds.values()),
            cancelled=sale.status == "lost",
        )

    return lambda: [entry(sale) for sale in shop.application.extensions["shop"].sales]


@pytest.fixture
def customer(shop: FlaskClient, payment_sandbox: PaymentSandbox) -> Customer:
    """A customer of the shop."""
    return Customer(shop, payment_sandbox)
