"""Sample data for probes: an invented customer, order lines with their total, and transactions."""

from secrets import token_hex
from typing import Any, Final

LINES: Final[list[dict[str, Any]]] = [
    {
        "type": "physical",
        "amount": 250,
        "currency": "EUR",
        "merchant_order_line_id": "socks",
        "name": "Socks",
        "quantity": 3,
        "vat_percentage": 2100,
    },
    {
        "type": "shipping_fee",
        "amount": 250,
        "currency": "EUR",
        "merchant_order_line_id": "post",
        "name": "Postage",
        "quantity": 1,
        "vat_percentage": 2100,
    },
]
LINES_TOTAL: Final = 1000
CUSTOMER: Final = {
    "first_name": "Test",
    "last_name": "Order",
    "gender": "female",
    "birthdate": "1990-01-31",
    "email_address": "test-order@example.com",
    "phone_numbers": ["+31000000000"],
    "address": "Teststraat 1\n1000 AA Amsterdam",
    "address_type": "customer",
    "additional_addresses": [
        {"address": "Teststraat 2\n1000 AA Amsterdam", "address_type": "billing", "country": "NL"}
    ],
    "country": "NL",
    "ip_address": "192.0.2.1",
    "locale": "nl",
}
RETURN_URL: Final = "https://shop.invalid/thanks?basket=7"
WEBHOOK_URL: Final = "https://shop.invalid/webhook"  # no such host can exist
UNKNOWN_ID: Final = "00000000-0000-4000-8000-000000000000"

CARD: Final = "credit-card"
TRANSFER: Final = "bank-transfer"
REDIRECT_NL: Final = "bank-redirect-nl"
REDIRECT_BE: Final = "bank-redirect-be"
REDIRECT_DE: Final = "bank-redirect-de"
WALLET_QR: Final = "wallet-qr"
WALLET_WEB: Final = "wallet-web"
WALLET_APPLE: Final = "wallet-apple"
WALLET_GOOGLE: Final = "wallet-google"
PAY_LATER: Final = "pay-later-a"
INVOICE: Final = "invoice-later-b"


def fresh_id() -> str:
    """Return a unique merchant order id."""
    return f"probe-token-{token_hex(8)}"


def transaction_with(method: str, **more: Any) -> dict[str, Any]:
    """Return a transaction with a payment method."""
    return {"payment_method": method, **more}


def card(**details: Any) -> dict[str, Any]:
    """Return a card transaction with details."""
    return transaction_with(CARD, payment_method_details=details)


def line_quantity(count: int, line: str = "socks") -> list[dict[str, Any]]:
    """Return the order lines of a request: one line and its quantity."""
    return [{"merchant_order_line_id": line, "quantity": count}]


def lines_worth(amount: int) -> list[dict[str, Any]]:
    """Return quantities of the sample lines that add up to as much as possible within an amount."""
    lines, remaining = [], amount
    for line in LINES:
        count = min(line["quantity"], remaining // line["amount"])
        if count:
            lines += line_quantity(count, line["merchant_order_line_id"])
            remaining -= count * line["amount"]
    return lines
