"""The fixtures for grading; copied beside a solution as ``conftest.py``."""

from collections.abc import Callable

import pytest
from shop import Shop  # type: ignore[import-not-found]  # the solution

from payment_sandbox import BookEntry, PaymentSandbox


class Customer:
    """A customer with a browser, who also submits the forms of the shop's staff."""

    def __init__(self, shop: Shop, sandbox: PaymentSandbox) -> None:
        self.shop, self.sandbox = shop, sandbox
        self.browser = shop.app.test_client()

    def buys(self, amount: int = 2500) -> "object":
        """Check out; return the sale."""
        answer = self.browser.post("/checkout", data={"amount": amount})
        assert answer.status_code == 303, answer.text
        return list(self.shop.sales.values())[-1]

    def pays(self, sale: object, action: str = "pay", **options: object) -> None:
        """Pay on the payment page."""
        self.sandbox.act(sale.orders[-1], action=action, **options)

    def comes_back(self, sale: object) -> str:
        """Return from the payment page."""
        text: str = self.browser.get("/thanks", query_string={"order_id": sale.orders[-1]}).text
        return text

    def fills_in(self, sale: object, form: str, **data: object) -> int:
        """Submit a form about a sale; return the status."""
        status: int = self.browser.post(f"/sales/{sale.number}/{form}", data=data).status_code
        return status


@pytest.fixture
def shop(payment_sandbox: PaymentSandbox) -> Shop:
    """The solution; its webhooks and calls stay in this process."""
    shop = Shop(payment_sandbox.base_url, payment_sandbox.session)
    payment_sandbox.deliver_to(shop.app)
    payment_sandbox.every("PT1H", shop.look_at_open_sales)
    return shop


@pytest.fixture
def payment_books(shop: Shop) -> Callable[[], list[BookEntry]]:
    """The shop's books."""
    return lambda: [
        BookEntry(
            purchase=sale.number,
            orders=sale.orders,
            amount=sale.amount,
            paid=sale.paid,
            shipped=sale.shipped,
            refunded=sale.refunded,
            cancelled=sale.cancelled,
        )
        for sale in shop.sales.values()
    ]


@pytest.fixture
def customer(shop: Shop, payment_sandbox: PaymentSandbox) -> Customer:
    """A customer of the shop."""
    return Customer(shop, payment_sandbox)
