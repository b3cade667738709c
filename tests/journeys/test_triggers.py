"""Trigger values in an order decide its outcome without a custom scenario."""

import pytest

from tests.support.driver import LINES_TOTAL, Sandbox, card

TRIGGERS = [
    ({"email_address": "declined@example.com"}, LINES_TOTAL, "cancelled"),
    ({"email_address": "needs-time@example.com"}, LINES_TOTAL, "processing"),
    ({"email_address": "error@example.com"}, LINES_TOTAL, "error"),
    ({}, 66601, "cancelled"),
    ({}, 66602, "processing"),
    ({}, 66603, "error"),
    ({}, LINES_TOTAL, "new"),
]


@pytest.mark.parametrize(("customer", "amount", "status"), TRIGGERS)
def test_trigger_values_need_no_scenario(
    sandbox: Sandbox, customer: dict[str, str], amount: int, status: str
) -> None:
    """Trigger customers and amounts decide a screening."""
    assert sandbox.place_with_lines("pay-later-a", customer=customer, amount=amount)["status"] == status


@pytest.mark.parametrize(
    ("local", "status"), [("pays", "completed"), ("fails", "error"), ("cancels", "cancelled")]
)
def test_trigger_customers_act_by_themselves(sandbox: Sandbox, local: str, status: str) -> None:
    """They act ten seconds after creation, without a browser."""
    order = sandbox.place(card(), customer={"email_address": f"{local}@example.com"})
    assert order["status"] == "new"
    assert [event["label"] for event in sandbox.advance("PT10S")] == [
        f"customer {local.removesuffix('s')} for {order['id']}"
    ]
    assert sandbox.read(order)["status"] == status
