"""With a small application that keeps state, behind an interception, as moto does it."""

import os
import re
from typing import Any

import pytest
import responses
from flask import Flask, request
from shop import PROVIDER, checkout, paid, tell

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


def answered(asked: Any) -> tuple[int, dict[str, str], bytes]:
    """What the backend answers."""
    with backend.test_client() as client:
        answer = client.open(
            asked.path_url, method=asked.method, headers=dict(asked.headers), data=asked.body
        )
        return answer.status_code, {"Content-Type": "application/json"}, answer.data


@pytest.mark.parametrize("number", range(int(os.environ["BENCH_TESTS"])))
def test_a_payment(number: int) -> None:
    """Create, pay, webhook, assert."""
    with responses.RequestsMock() as stubs:
        for method in ("POST", "GET"):
            stubs.add_callback(method, re.compile(f"{PROVIDER}/.*"), callback=answered)
        order_id = checkout()
        orders[order_id]["status"] = "completed"
        tell(order_id)
        assert order_id in paid
