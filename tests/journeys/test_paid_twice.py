"""Money that arrives twice: an order is paid once, and all that arrived can go back."""

from typing import Any

import pytest

from tests.support.driver import CUSTOMER, LINES, LINES_TOTAL, Sandbox, by, refused

TRANSFER_AFTER_31_DAYS = {
    "when": {"payment_method": "bank-transfer"},
    "then": {"credit": {"after": "P31D"}},
}


@pytest.fixture
def waiting(live: Sandbox) -> dict[str, Any]:
    """A hosted order whose transfer has expired; its money arrives ten minutes from now."""
    live.scenario(TRANSFER_AFTER_31_DAYS)
    order = live.place(amount=LINES_TOTAL, expiration_period="P60D", order_lines=LINES, customer=CUSTOMER)
    live.acted(order, "customer choose", payment_method="bank-transfer")
    live.advance("P30DT23H50M")
    assert live.status(order) == ("processing", "expired")
    return order


def amounts(sandbox: Sandbox, order: dict[str, Any]) -> dict[str, int]:
    """What became of the amount."""
    found: dict[str, int] = sandbox.read(order, "amount_details")["amount_details"]
    assert found["captured"] + found["voided"] + found["remaining"] == found["original"]
    return found


def statuses(sandbox: Sandbox, order: dict[str, Any]) -> list[str]:
    """The order's status, and those of its attempts."""
    found = sandbox.read(order)
    return [found["status"], *(attempt["status"] for attempt in found["transactions"])]


def refundable(sandbox: Sandbox, order: dict[str, Any]) -> int:
    """Refund all that can go back."""
    refund: dict[str, Any] = sandbox.post(f"/v1/orders/{order['id']}/refunds/", {}).json()
    amount: int = refund["amount"]
    refused(sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 1}), 409, "NothingToRefund")
    return amount


@pytest.mark.rule("A45", "A45")
def test_a_late_credit_ends_the_attempt_that_is_open(live: Sandbox, waiting: dict[str, Any]) -> None:
    """The newer attempt cannot be paid any more, so nobody pays twice."""
    live.acted(waiting, "customer choose", payment_method="wallet-web")
    live.advance("PT20M")
    assert statuses(live, waiting) == ["completed", "completed", "cancelled"]
    refused(live.act(waiting, "customer pay"), 409, "ActionNotPossible")
    assert amounts(live, waiting)["captured"] == LINES_TOTAL
    assert refundable(live, waiting) == LINES_TOTAL


def test_a_late_credit_after_another_payment_can_go_back(live: Sandbox, waiting: dict[str, Any]) -> None:
    """The order counts its amount once; both sums arrived, and both can be refunded, no more."""
    live.acted(waiting, "customer choose", payment_method="credit-card")
    live.pay(waiting)
    live.advance("PT20M")
    assert statuses(live, waiting) == ["completed", "completed", "completed"]
    assert amounts(live, waiting) == {
        "original": LINES_TOTAL,
        "captured": LINES_TOTAL,
        "voided": 0,
        "remaining": 0,
    }
    assert refundable(live, waiting) == 2 * LINES_TOTAL


@pytest.mark.rule("A45")
def test_a_late_credit_voids_what_is_left_of_an_authorization(live: Sandbox, waiting: dict[str, Any]) -> None:
    """What was captured of it stays captured; the rest is never charged."""
    live.acted(waiting, "customer choose", payment_method="pay-later-a")
    authorized = live.pay(waiting)
    assert live.take(authorized, "captures/amount", {"amount": 300}).status_code == 200
    live.advance("PT20M")
    assert amounts(live, waiting)["captured"] == LINES_TOTAL
    refused(live.take(authorized, "captures/amount", {"amount": 1}), 409, "CaptureExceedsRemainder")
    assert refundable(live, waiting) == LINES_TOTAL + 300


def test_an_unused_authorization_is_cancelled_by_a_late_credit(
    live: Sandbox, waiting: dict[str, Any]
) -> None:
    """The order stays completed."""
    live.acted(waiting, "customer choose", payment_method="pay-later-a")
    live.pay(waiting)
    live.advance("PT20M")
    assert statuses(live, waiting) == ["completed", "completed", "cancelled"]
    assert refundable(live, waiting) == LINES_TOTAL


@pytest.mark.rule("A45", "SET-49")
@pytest.mark.parametrize("parts", [[1_500], [600, 900]])
def test_what_a_transfer_received_beyond_its_amount_can_go_back(live: Sandbox, parts: list[int]) -> None:
    """The order counts its amount once; the refund is of everything that arrived."""
    order = live.place(by("bank-transfer"), amount=1_000)
    for cents in parts:
        live.acted(order, "bank credit", amount=cents)
    assert statuses(live, order) == ["completed", "completed"]
    assert amounts(live, order)["captured"] == 1_000
    assert refundable(live, order) == 1_500
