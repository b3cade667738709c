"""A shop without tests, and without mistakes apart from those that the environment names."""

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
OWN = f"http://127.0.0.1:{PORT}"
app = Flask("shop")
numbers = count(1)
sales: dict[str, dict[str, Any]] = {}


def call(method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Call the service."""
    answer = requests.request(method, URL + path, json=body, auth=(KEY, ""), timeout=3)
    answer.raise_for_status()
    read: dict[str, Any] = answer.json()
    return read


def look(order_id: str) -> None:
    """Learn whether an order is paid."""
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
        "return_url": f"{OWN}/thanks?sale={number}",
        "webhook_url": f"{OWN}/webhook",
        "transactions": [{"payment_method": "credit-card"}],
    }
    try:
        made = call("POST", "/v1/orders/", order)
    except requests.RequestException:
        if "creates-again" not in MISTAKES:
            return "That did not work. Nothing was charged; please try again."
        made = call("POST", "/v1/orders/", order)
    sale["orders"].append(made["id"])
    return redirect(f"http://{made['transactions'][0]['payment_url']}")


@app.get("/thanks")
def thanks() -> str:
    """Tell the customer what became of the payment."""
    sale = sales[request.args["sale"]]
    if "trusts-webhooks" not in MISTAKES:
        for order_id in sale["orders"]:
            look(order_id)
    if sale["paid"] or "thanks-everybody" in MISTAKES:
        return "<h1>Thank you!</h1> Your socks are on their way."
    return "<h1>Not paid yet</h1> We ship when you have paid."


@app.post("/webhook")
def webhook() -> tuple[str, int]:
    """Look at an order whose status has changed."""
    look(request.get_json()["order_id"])
    return "", 204


@app.get("/books")
def books() -> list[dict[str, Any]]:
    """Tell what the shop believes."""
    return [{"purchase": number, **sale} for number, sale in sales.items()]


if __name__ == "__main__":
    app.run(port=PORT)
