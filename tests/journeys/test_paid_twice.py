"""Duplicate payments: an order is paid once, and everything that arrived can be refunded."""

from typing import Any

import pytest

from tests.journeys.authorizations import amounts, lines, socks
from tests.support.driver import CUSTOMER, LINES, LINES_TOTAL, Sandbox, by, refused, violations

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


def choose(sandbox: Sandbox, *methods: str, **fields: Any) -> dict[str, Any]:
    """Choose methods on the hosted page of a new order, one after the other."""
    order = sandbox.place(amount=LINES_TOTAL, order_lines=LINES, customer=CUSTOMER, **fields)
    for method in methods:
        sandbox.acted(order, "customer choose", payment_method=method)
    return order


def bank_actions(sandbox: Sandbox, order: dict[str, Any]) -> list[str]:
    """Return what a bank can do with an order."""
    actions: list[str] = sandbox.get(f"/control/orders/{order['id']}/").json()["actions"]["bank"]
    return actions


@pytest.mark.rule("A29", "A45", "A79")
def test_a_transfer_that_was_given_up_arrives_after_another_payment(live: Sandbox) -> None:
    """Its money is credited to its own transaction, announced by one webhook, and refundable."""
    live.settings(webhook_url="http://127.0.0.1:9/hook")
    order = choose(live, "bank-transfer", "credit-card")
    live.pay(order)
    before = len(live.webhooks(order_id=order["id"]))
    assert bank_actions(live, order) == ["credit"]
    live.acted(order, "bank credit", amount=LINES_TOTAL - 1)
    assert statuses(live, order) == ["completed", "cancelled", "completed"]
    assert len(live.webhooks(order_id=order["id"])) == before
    live.acted(order, "bank credit")
    assert statuses(live, order) == ["completed", "completed", "completed"]
    live.acted(order, "bank credit")
    assert len(live.webhooks(order_id=order["id"])) == before + 2
    assert amounts(live, order) == {
        "original": LINES_TOTAL,
        "captured": LINES_TOTAL,
        "voided": 0,
        "remaining": 0,
        "received": 3 * LINES_TOTAL,
    }
    assert "reason" not in live.read(order)["transactions"][0]
    assert refundable(live, order) == 3 * LINES_TOTAL


@pytest.mark.rule("A29", "A79")
@pytest.mark.parametrize("hosted", [True, False])
def test_a_transfer_arrives_after_the_order_was_cancelled(live: Sandbox, hosted: bool) -> None:
    """The order stays cancelled; its transaction completes."""
    live.settings(webhook_url="http://127.0.0.1:9/hook")
    live.scenario({"when": {"payment_method": "bank-transfer"}, "then": {"credit": {"after": "P2D"}}})
    order = choose(live, "bank-transfer") if hosted else live.place(by("bank-transfer"), amount=LINES_TOTAL)
    assert live.delete(f"/v1/orders/{order['id']}/").status_code == 200
    before = len(live.webhooks(order_id=order["id"]))
    live.advance("P2D")
    assert statuses(live, order) == ["cancelled", "completed"]
    assert len(live.webhooks(order_id=order["id"])) == before + 1
    refused(live.delete(f"/v1/orders/{order['id']}/"), 409, "OrderNotCancellable")
    assert refundable(live, order) == LINES_TOTAL


@pytest.mark.rule("A45")
@pytest.mark.parametrize("ending", ["cancelled", "expired"])
def test_part_of_a_transfer_goes_back_once_the_order_has_ended(live: Sandbox, ending: str) -> None:
    """Part of the money does not pay the order, so it can be cancelled; then the part can be refunded."""
    order = live.place(by("bank-transfer"), amount=1_000)
    live.acted(order, "bank credit", amount=700)
    error = refused(live.post(f"/v1/orders/{order['id']}/refunds/", {}), 409, "NothingToRefund")
    assert error["value"].endswith("cancel the order to refund the 700 cents of its transfer")
    if ending == "cancelled":
        assert live.delete(f"/v1/orders/{order['id']}/").json()["status"] == "cancelled"
    live.advance("P30D")
    assert statuses(live, order) == [ending, ending]
    assert amounts(live, order) == {"original": 1_000, "captured": 700, "voided": 0, "remaining": 300}
    assert refundable(live, order) == 700


@pytest.mark.rule("A22")
@pytest.mark.parametrize("mode", ["live", "test"])
def test_a_transfer_that_is_chosen_again_keeps_its_reference(sandbox: Sandbox, mode: str) -> None:
    """It becomes the newest attempt until its period is over."""
    sandbox.settings(mode=mode)
    order = choose(
        sandbox, "bank-transfer", "credit-card", "bank-transfer", "bank-transfer", expiration_period="P40D"
    )
    attempts = sandbox.read(order)["transactions"]
    assert [attempt["payment_method"] for attempt in attempts] == ["credit-card", "bank-transfer"]
    assert [attempt["status"] for attempt in attempts] == ["cancelled", "pending"]
    sandbox.advance("P30D")
    assert statuses(sandbox, order) == ["processing", "cancelled", "expired"]
    sandbox.acted(order, "customer choose", payment_method="bank-transfer")
    references = [t["payment_method_details"].get("reference") for t in sandbox.read(order)["transactions"]]
    assert len(set(references)) == 3


@pytest.mark.rule("A21")
def test_a_transfer_that_was_given_up_does_not_keep_the_order_open(live: Sandbox) -> None:
    """The order expires with its page, and nothing is left to wait for."""
    order = choose(live, "bank-transfer", "wallet-web")
    events = live.advance(until="idle")
    assert statuses(live, order) == ["expired", "cancelled", "expired"]
    assert {event["at"][:10] for event in events} <= {"2026-03-01", "2026-03-02"}
    live.acted(order, "bank credit")
    assert statuses(live, order) == ["completed", "completed", "expired"]


@pytest.mark.rule("A29")
def test_a_credit_names_its_transaction(live: Sandbox) -> None:
    """By default, the newest transfer receives the money; each keeps what was paid with its reference."""
    order = choose(live, "bank-transfer", expiration_period="P60D")
    live.advance("P31D")
    live.acted(order, "customer choose", payment_method="bank-transfer")
    live.acted(order, "bank credit")
    first, second = live.read(order)["transactions"]
    live.acted(order, "bank credit", transaction_id=first["id"], amount=500)
    assert statuses(live, order) == ["completed", "expired", "completed"]
    live.acted(order, "bank credit", transaction_id=first["id"])
    assert statuses(live, order) == ["completed", "completed", "completed"]
    assert amounts(live, order)["received"] == 2 * LINES_TOTAL
    unknown = live.act(order, "bank credit", transaction_id=order["id"])
    refused(unknown, 404, "NotFound")
    refused(live.act(order, "customer pay", transaction_id=second["id"]), 409, "ActionNotPossible")


@pytest.mark.rule("A45", "END-09")
def test_a_transfer_beside_an_invoice_is_refunded_by_amount(live: Sandbox) -> None:
    """The invoice keeps its lines; a refund of everything spans both methods, and says so."""
    order = choose(live, "bank-transfer", "invoice-later-b")
    invoice = live.read(order)["transactions"][-1]
    path = f"/v1/orders/{order['id']}/transactions/{invoice['id']}/captures/"
    assert live.post(path).status_code == 200
    live.acted(order, "bank credit")
    refunds = f"/v1/orders/{order['id']}/refunds/"
    by_amount = live.post(refunds, {"amount": 1_500})
    assert by_amount.json()["transactions"][0]["payment_method"] == "bank-transfer"
    refused(live.post(refunds, {"amount": 501}), 409, "RefundExceedsCaptured")
    by_lines = live.post(refunds, socks(1))
    assert by_lines.json()["transactions"][0]["payment_method"] == "invoice-later-b"
    rest = live.post(refunds, {})
    assert rest.json()["amount"] == 2_000
    assert "span two methods: 500 cents came by bank-transfer" in rest.headers["Sandbox-Warnings"]
    assert set(lines(live, order)) == {("socks", "3", "captured"), ("post", "2", "captured")}
    assert set(violations(live.post(refunds, {"amount": 1}))) == {"order_lines"}


@pytest.mark.rule("A45")
def test_the_surplus_is_refunded_first(live: Sandbox) -> None:
    """The refund of a card that was paid beside a transfer goes to the transfer, then to the card."""
    order = choose(live, "bank-transfer", "credit-card")
    live.pay(order)
    live.acted(order, "bank credit")
    path = f"/v1/orders/{order['id']}/refunds/"
    methods = [
        live.post(path, {"amount": cents}).json()["transactions"][0]["payment_method"] for cents in (2_000, 1)
    ]
    assert methods == ["bank-transfer", "credit-card"]


def test_test_mode_refuses_the_money_of_a_transfer_that_was_given_up(sandbox: Sandbox) -> None:
    """Nothing completes a transfer in test mode, and the refusal says so."""
    order = choose(sandbox, "bank-transfer", "credit-card")
    sandbox.pay(order)
    assert bank_actions(sandbox, order) == []
    refused(sandbox.act(order, "bank credit"), 409, "NotCompletableInTestMode")
