"""A shop that creates an order, and reads it when a webhook arrives."""

from typing import Any, Final

import requests
from flask import Flask, request

PROVIDER: Final = "https://api.provider.example"
ORDER: Final = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}

app = Flask("shop")
paid: set[str] = set()


class Payments:
    """The base URL and the session of the shop's calls to its provider."""

    base_url = PROVIDER
    session: Any = requests


def checkout() -> str:
    """Create an order."""
    response = Payments.session.post(f"{Payments.base_url}/v1/orders/", json=ORDER)
    order_id: str = response.json()["id"]
    return order_id


@app.post("/webhook")
def webhook() -> str:
    """Read the order, and remember that it is paid."""
    order_id = request.get_json()["order_id"]
    order = Payments.session.get(f"{Payments.base_url}/v1/orders/{order_id}/")
    if order.json()["status"] == "completed":
        paid.add(order_id)
    return ""


def send_webhook(order_id: str) -> None:
    """Send a webhook to the shop; stubs do not send any."""
    app.test_client().post("/webhook", json={"order_id": order_id})
