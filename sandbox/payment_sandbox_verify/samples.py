"""Sample data for conversations: an invented customer, order lines with their total, and transactions."""

from collections.abc import Mapping
from typing import Any, Final

from payment_sandbox.methods import METHODS_BY_NAME
from payment_sandbox_verify.steps import WEBHOOK

MARKER: Final = "payment-sandbox verify"
"""The description of created orders, to identify them in the account's order list."""
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
CUSTOMER: Final[Mapping[str, Any]] = {
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
SHOP: Final = {"webhook_url": WEBHOOK, "return_url": RETURN_URL}
CODE: Final[Mapping[str, Any]] = {
    "currency": "EUR",
    "amount": 1000,
    "amount_changeable": True,
    "description": MARKER,
    "webhook_url": WEBHOOK_URL,
}
UNKNOWN_ID: Final = "00000000-0000-4000-8000-000000000000"

CARD: Final = "credit-card"
TRANSFER: Final = "bank-transfer"
REDIRECT_NL: Final = "bank-redirect-nl"
WALLET_WEB: Final = "wallet-web"
PAY_LATER: Final = "pay-later-a"
INVOICE: Final = "invoice-later-b"


def transaction_with(method: str, **more: Any) -> dict[str, Any]:
    """Return a transaction with a payment method, and a bank if the method requires one."""
    details = more.pop("payment_method_details", {})
    if METHODS_BY_NAME[method].capabilities.has_issuers:
        details = {"issuer_id": "<<banks.[0].id>>", **details}
    return {"payment_method": method, **({"payment_method_details": details} if details else {}), **more}


def card(**details: Any) -> dict[str, Any]:
    """Return a card transaction with details."""
    return transaction_with(CARD, payment_method_details=details)


def sale(*transactions: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the body of a new order of 10 euros, with what its method requires."""
    body: dict[str, Any] = {"currency": "EUR", "amount": LINES_TOTAL, "description": MARKER}
    for transaction in transactions:
        capabilities = METHODS_BY_NAME[transaction["payment_method"]].capabilities
        body |= {"order_lines": LINES} if capabilities.needs_order_lines else {}
        body |= {"customer": dict(CUSTOMER)} if capabilities.needs_order_lines else {}
    return {**body, **({"transactions": list(transactions)} if transactions else {}), **fields}


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
