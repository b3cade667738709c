"""A test with a small stateful backend behind an interception, as in moto."""

import os
import re
from typing import Any

import pytest
import responses
from flask import Flask, request
from shop import PROVIDER, checkout, paid, send_webhook

backend = Flask("backend")
orders: dict[str, dict[str, Any]] = {}


@backend.post("/v1/orders/")
def create() -> tuple[dict[str, Any], int]:
    """Create an order."""
    order_id = f"order-{len(orders)}"
    orders[order_id] = {**request.get_json(), "id": order_id, "status": "new"}
    return orders[order_id], 201


@backend.get("/v1/orders/<order_id>/")
def read(order_id: str) -> dict[str, Any]:
    """Read an order."""
    return orders[order_id]


def respond(outgoing: Any) -> tuple[int, dict[str, str], bytes]:
    """Return the response of the backend."""
    with backend.test_client() as client:
        response = client.open(
            outgoing.path_url, method=outgoing.method, headers=dict(outgoing.headers), data=outgoing.body
        )
        return response.status_code, {"Content-Type": "application/json"}, response.data


@pytest.mark.parametrize("number", range(int(os.environ["BENCH_TESTS"])))
def test_a_payment(number: int) -> None:
    """An order is created and paid, and the shop handles its webhook."""
    with responses.RequestsMock() as stubs:
        for method in ("POST", "GET"):
            stubs.add_callback(method, re.compile(f"{PROVIDER}/.*"), callback=respond)
        order_id = checkout()
        orders[order_id]["status"] = "completed"
        send_webhook(order_id)
        assert order_id in paid
