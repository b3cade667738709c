"""The request bodies of the benchmarks, and a typical response body."""

import json

from payment_sandbox.operations.create_order import create_order
from payment_sandbox.web.answers.responses import serialize_order
from tests.support.projects import made_registry

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


def _answer() -> bytes:
    registry = made_registry(seed=1, clock="frozen@2026-03-01T00:00:00Z")
    project, _ = registry.create({}, api_key="sandbox-key")
    order = create_order(project, {**ORDER, "client": {"user_agent": "bench"}})
    return serialize_order(project, order)[1]


ANSWER = _answer()
