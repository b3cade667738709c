"""The orders of public plugins, with invented persons, and what the plugins read of the responses."""

from typing import Any, NamedTuple


class PluginOrder(NamedTuple):
    """An order of a plugin of a shop system, and the values that it must find in the response."""

    family: str
    body: dict[str, Any]
    reads: dict[str, Any] = {}


def line(amount: int = 1000, **more: Any) -> dict[str, Any]:
    """Return an order line."""
    known = {"type": "physical", "name": "Item", "quantity": 1, "currency": "EUR", "vat_percentage": 2100}
    return {**known, "amount": amount, "merchant_order_line_id": "11", **more}


def order(method: str, amount: int = 1000, details: Any = None, **more: Any) -> dict[str, Any]:
    """Return an order with one transaction and the addresses of a shop."""
    transaction = {"payment_method": method, **more.pop("transaction", {})}
    if details is not None:
        transaction["payment_method_details"] = details
    return {
        "currency": "EUR",
        "amount": amount,
        "description": "Order at the shop",
        "return_url": "http://127.0.0.1/?wc-api=x",
        "webhook_url": "http://127.0.0.1:9/webhook?wc-api=x",
        "transactions": [transaction],
        "order_lines": [line(amount)],
        **more,
    }


ADDRESS = {"address": "Street 1  Town", "country": "NL", "postal_code": "1011AA"}
PERSON = {
    "first_name": "Ada",
    "last_name": "Test",
    "email_address": "a@example.com",
    "ip_address": "127.0.0.1",
    "phone_numbers": ["0201234567"],
    **ADDRESS,
    "additional_addresses": [{"address_type": "billing", **ADDRESS}],
}
FAILURE_URL = "http://127.0.0.1/PaymentCancel?orderId=77"
ORDERS = [
    PluginOrder(
        "woocommerce",
        order(
            "credit-card",
            transaction={"capture_mode": "manual", "expiration_period": "PT5M"},
            merchant_order_id="1001",
            expiration_period="PT5M",
            customer={**PERSON, "user_agent": "Mozilla/5.0", "locale": "en_US"},
            order_lines=[line(image_url="http://127.0.0.1/11.jpg", url="http://127.0.0.1/p/11")],
        ),
        {"transactions[0].transaction_type": "authorization", "order_lines[0].url": "http://127.0.0.1/p/11"},
    ),
    PluginOrder(
        "woocommerce",
        order(
            "pay-later-a",
            merchant_order_id=1001,
            customer={**PERSON, "locale": "nl_NL", "gender": "male", "birthdate": "1980-01-31"},
            order_lines=[line(image_url=False, merchant_order_line_id=11)],
        ),
        {
            "merchant_order_id": "1001",
            "order_lines[0].merchant_order_line_id": "11",
            "order_lines[0].image_url": False,
            "transactions[0].transaction_type": "authorization",
        },
    ),
    PluginOrder(
        "shopware",
        order("wallet-google", failure_url=FAILURE_URL, locale="de-DE", expiration_period="PT5M"),
        {"failure_url": FAILURE_URL, "locale": "de-DE", "transactions[0].transaction_type": None},
    ),
    PluginOrder(
        "nopcommerce",
        order("wallet-web", 1210, failure_url=FAILURE_URL, order_lines=[line(1000)]),
        {"failure_url": FAILURE_URL},
    ),
    PluginOrder(
        "opencart",
        order(
            "wallet-apple", failure_url=FAILURE_URL, order_lines=[line(), line(0, merchant_order_line_id="2")]
        ),
        {"order_lines[1].amount": 0},
    ),
    PluginOrder(
        "prestashop",
        order("bank-redirect-nl", details={}, customer={**PERSON, "locale": "nl", "phone_numbers": []}),
        {"transactions[0].payment_method_details.issuer_id": None},
    ),
    PluginOrder(
        "magento-2",
        order(
            "bank-redirect-nl",
            details={"issuer_id": "INGBNL2A"},
            customer={**PERSON, "birth_date": "1980-01-31 00:00:00", "gender": None, "housenumber": ""},
            extra={"aaa": 3},
            order_lines=[line(ean="12345", discount_rate=0, id="1")],
        ),
        {"order_lines[0].discount_rate": 0, "transactions[0].payment_method_details.issuer_id": "INGBNL2A"},
    ),
]
