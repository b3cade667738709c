"""Duplicate payments: an order is paid once, and everything that arrived can be refunded."""

from typing import Any

import pytest

from tests.support.authorizations import amounts
from tests.support.driver import CUSTOMER, LINES, LINES_TOTAL, Sandbox, by, refused

TRANSFER_AFTER_31_DAYS = {
    "when": {"payment_method": "bank-transfer"},
    "then": {"credit": {"after": "P31D"}},
}


@pytest.fixture
def expired_transfer(live: Sandbox) -> dict[str, Any]:
    """A hosted order with an expired transfer, whose credit arrives in ten minutes."""
    live.scenario(TRANSFER_AFTER_31_DAYS)
    order = live.place(amount=LINES_TOTAL, expiration_period="P60D", order_lines=LINES, customer=CUSTOMER)
    live.acted(order, "customer choose", payment_method="bank-transfer")
    live.advance("P30DT23H50M")
    assert live.status(order) == ("processing", "expired")
    return order


def statuses(sandbox: Sandbox, order: dict[str, Any]) -> list[str]:
    """Return the statuses of the order and of its attempts."""
    current = sandbox.read(order)
    return [current["status"], *(attempt["status"] for attempt in current["transactions"])]


def refundable(sandbox: Sandbox, order: dict[str, Any]) -> int:
    """Refund everything that can be refunded; return the amount."""
    refund: dict[str, Any] = sandbox.post(f"/v1/orders/{order['id']}/refunds/", {}).json()
    amount: int = refund["amount"]
    refused(sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 1}), 409, "NothingToRefund")
    return amount


@pytest.mark.rule("A45", "A45")
def test_a_late_credit_ends_the_attempt_that_is_open(live: Sandbox, expired_transfer: dict[str, Any]) -> None:
    """A late credit cancels the open attempt, so the customer cannot pay twice."""
    live.acted(expired_transfer, "customer choose", payment_method="wallet-web")
    live.advance("PT20M")
    assert statuses(live, expired_transfer) == ["completed", "completed", "cancelled"]
    refused(live.act(expired_transfer, "customer pay"), 409, "ActionNotPossible")
    assert amounts(live, expired_transfer)["captured"] == LINES_TOTAL
    assert refundable(live, expired_transfer) == LINES_TOTAL


def test_a_late_credit_after_another_payment_can_go_back(
    live: Sandbox, expired_transfer: dict[str, Any]
) -> None:
    """The amount is counted once; both payments can be refunded, and no more."""
    live.acted(expired_transfer, "customer choose", payment_method="credit-card")
    live.pay(expired_transfer)
    live.advance("PT20M")
    assert statuses(live, expired_transfer) == ["completed", "completed", "completed"]
    assert amounts(live, expired_transfer) == {
        "original": LINES_TOTAL,
        "captured": LINES_TOTAL,
        "voided": 0,
        "remaining": 0,
        "received": 2 * LINES_TOTAL,
    }
    assert refundable(live, expired_transfer) == 2 * LINES_TOTAL


@pytest.mark.rule("A45")
def test_a_late_credit_voids_what_is_left_of_an_authorization(
    live: Sandbox, expired_transfer: dict[str, Any]
) -> None:
    """Its captured part stays captured; the rest is voided."""
    live.acted(expired_transfer, "customer choose", payment_method="pay-later-a")
    authorized = live.pay(expired_transfer)
    assert live.take(authorized, "captures/amount", {"amount": 300}).status_code == 200
    live.advance("PT20M")
    assert amounts(live, expired_transfer)["captured"] == LINES_TOTAL
    refused(live.take(authorized, "captures/amount", {"amount": 1}), 409, "CaptureExceedsRemainder")
    assert refundable(live, expired_transfer) == LINES_TOTAL + 300


def test_an_unused_authorization_is_cancelled_by_a_late_credit(
    live: Sandbox, expired_transfer: dict[str, Any]
) -> None:
    """The order stays completed."""
    live.acted(expired_transfer, "customer choose", payment_method="pay-later-a")
    live.pay(expired_transfer)
    live.advance("PT20M")
    assert statuses(live, expired_transfer) == ["completed", "completed", "cancelled"]
    assert refundable(live, expired_transfer) == LINES_TOTAL


@pytest.mark.rule("A45", "SET-49")
@pytest.mark.parametrize("parts", [[1_500], [600, 900]])
def test_what_a_transfer_received_beyond_its_amount_can_go_back(live: Sandbox, parts: list[int]) -> None:
    """The amount is counted once; the refund covers everything that arrived."""
    order = live.place(by("bank-transfer"), amount=1_000)
    for cents in parts:
        live.acted(order, "bank credit", amount=cents)
    assert statuses(live, order) == ["completed", "completed"]
    assert amounts(live, order)["captured"] == 1_000
    assert refundable(live, order) == 1_500
