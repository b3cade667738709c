"""The request bodies of the benchmarks."""

import json

ORDER = {
    "currency": "EUR",
    "amount": 1295,
    "description": "Two pairs of socks",
    "merchant_order_id": "shop-1001",
    "return_url": "https://shop.example/thanks",
    "transactions": [{"payment_method": "credit-card"}],
}
ORDER_WITH_LINE = {
    **ORDER,
    "customer": {"email_address": "jan@example.com", "country": "NL", "locale": "nl"},
    "order_lines": [{"merchant_order_line_id": "line-1", "name": "Socks", "amount": 1295, "quantity": 1}],
}
BODY = json.dumps(ORDER).encode()
