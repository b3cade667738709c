"""A shop without tests, whose mistakes are selected by the environment."""

import os
import sys
from itertools import count
from typing import Any

import requests
from flask import Flask, redirect, request
from werkzeug.wrappers import Response

URL = os.environ["SANDBOX_URL"]
KEY = os.environ["SANDBOX_API_KEY"]
MISTAKES = os.environ.get("MISTAKES", "").split()
PORT = int(sys.argv[1])
SHOP_URL = f"http://127.0.0.1:{PORT}"
app = Flask("shop")
numbers = count(1)
sales: dict[str, dict[str, Any]] = {}


def call(method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Call the payment service."""
    response = requests.request(method, URL + path, json=body, auth=(KEY, ""), timeout=3)
    response.raise_for_status()
    data: dict[str, Any] = response.json()
    return data


def record_payment(order_id: str) -> None:
    """Record the payment of an order that is completed."""
    if call("GET", f"/v1/orders/{order_id}/")["status"] == "completed":
        for sale in sales.values():
            if order_id in sale["orders"]:
                sale["paid"] = sale["amount"]


@app.get("/")
def basket() -> str:
    """Show the basket."""
    return '<h1>Socks</h1><form method="post" action="/buy"><input id="email"><button>Buy now</button></form>'


@app.post("/buy")
def buy() -> Response | str:
    """Create an order, and send the customer to its payment page."""
    number = f"S-{next(numbers)}"
    sale = sales[number] = {"orders": [], "amount": 1295, "paid": 0}
    order = {
        "currency": "EUR",
        "amount": 1295,
        "merchant_order_id": number,
        "return_url": f"{SHOP_URL}/thanks?sale={number}",
        "webhook_url": f"{SHOP_URL}/webhook",
        "transactions": [{"payment_method": "credit-card"}],
    }
    try:
        created = call("POST", "/v1/orders/", order)
    except requests.RequestException:
        if "creates-again" not in MISTAKES:
            return "That did not work. Nothing was charged; please try again."
        created = call("POST", "/v1/orders/", order)
    sale["orders"].append(created["id"])
    return redirect(f"http://{created['transactions'][0]['payment_url']}")


@app.get("/thanks")
def thanks() -> str:
    """Show the customer the result of the payment."""
    sale = sales[request.args["sale"]]
    if "trusts-webhooks" not in MISTAKES:
        for order_id in sale["orders"]:
            record_payment(order_id)
    if sale["paid"] or "thanks-everybody" in MISTAKES:
        return "<h1>Thank you!</h1> Your socks are on their way."
    return "<h1>Not paid yet</h1> We ship when you have paid."


@app.post("/webhook")
def webhook() -> tuple[str, int]:
    """Read an order whose status has changed."""
    record_payment(request.get_json()["order_id"])
    return "", 204


@app.get("/books")
def books() -> list[dict[str, Any]]:
    """Return the shop's books."""
    return [{"purchase": number, **sale} for number, sale in sales.items()]


if __name__ == "__main__":
    app.run(port=PORT)
