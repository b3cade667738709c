"""Helpers for tests of authorizations."""

from typing import Any

from tests.support.driver import Sandbox


def socks(quantity: int) -> dict[str, Any]:
    """Return a request body with an order line of socks."""
    return {
        "order_lines": [{"merchant_order_line_id": "socks", "quantity": quantity}],
        "description": "Parcel",
    }


def amounts(sandbox: Sandbox, order: dict[str, Any]) -> dict[str, int]:
    """Return the amount details of an order."""
    details: dict[str, int] = sandbox.read(order, "amount_details")["amount_details"]
    return details


def lines(sandbox: Sandbox, order: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the id, quantity and status of every line detail."""
    return [
        (entry["merchant_order_line_id"], entry["quantity"], entry["status"])
        for entry in sandbox.read(order, "order_line_details")["order_line_details"]
    ]
