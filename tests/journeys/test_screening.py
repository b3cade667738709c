"""Methods that screen customers, and invoices that await a capture."""

import pytest

from tests.support.driver import LINES_TOTAL, Sandbox, refused


@pytest.mark.rule("SET-37", "PLA-02")
def test_a_passed_screening_leads_to_the_page(sandbox: Sandbox) -> None:
    """The order is new with a payment_url; by default the authorization is captured manually."""
    order = sandbox.place_with_lines("pay-later-a")
    assert order["status"] == "new"
    assert order["transactions"][0]["payment_url"]
    (transaction,) = sandbox.pay(order)["transactions"]
    assert (transaction["capture_mode"], transaction["is_capturable"]) == ("manual", True)


@pytest.mark.rule("STA-13", "STA-16", "ERR-02")
@pytest.mark.parametrize("method", ["pay-later-a", "invoice-later-b"])
def test_a_declined_screening_cancels_at_creation(sandbox: Sandbox, method: str) -> None:
    """Both screened methods return a cancelled order."""
    sandbox.scenario({"then": {"screening": "declined", "reason": "Too young"}})
    order = sandbox.place_with_lines(method)
    (transaction,) = order["transactions"]
    assert (order["status"], transaction["status"]) == ("cancelled", "cancelled")
    assert transaction["reason"] == "Too young"
    assert "payment_url" not in transaction


@pytest.mark.rule("STA-15", "ERR-01", "ORD-25")
def test_a_screening_error_says_why_to_the_customer(sandbox: Sandbox) -> None:
    """The creation returns the status error with a reason for the customer."""
    sandbox.scenario({"then": {"screening": "error", "reason": "Please check your postal code."}})
    order = sandbox.place_with_lines("pay-later-a")
    assert (order["status"], order["reason"]) == ("error", "Please check your postal code.")


@pytest.mark.rule("STA-14")
@pytest.mark.parametrize(
    ("then", "status"), [("passed", "new"), ("declined", "cancelled"), ("error", "error")]
)
def test_a_screening_that_needs_time_is_read_later(sandbox: Sandbox, then: str, status: str) -> None:
    """The order is processing without a payment_url until the decision on the agenda."""
    sandbox.scenario({"then": {"screening": "needs-time", "then": then, "after": "P2D"}})
    order = sandbox.place_with_lines("pay-later-a", expiration_period="P7D")
    assert order["status"] == "processing"
    assert "payment_url" not in order["transactions"][0]
    sandbox.advance("P2D")
    screened = sandbox.read(order)
    assert screened["status"] == status
    assert ("payment_url" in screened["transactions"][0]) == (then == "passed")


@pytest.mark.parametrize(
    ("action", "status"), [("approve", "new"), ("decline", "cancelled"), ("error", "error")]
)
def test_a_screening_can_be_answered_by_hand(sandbox: Sandbox, action: str, status: str) -> None:
    """A manual decision applies, and the scheduled one becomes a no-op."""
    sandbox.scenario({"then": {"screening": "needs-time"}})
    order = sandbox.place_with_lines("pay-later-a")
    refused(sandbox.act(order, "customer pay"), 409, "ActionNotPossible")
    sandbox.acted(order, f"screening {action}")
    assert sandbox.status(order)[0] == status
    assert [event["kind"] for event in sandbox.advance("PT1H")] == []


@pytest.mark.rule("INV-06", "STA-17", "PLA-05", "A13")
def test_a_passed_screening_accepts_an_invoice(sandbox: Sandbox) -> None:
    """An invoice is accepted at creation and capturable."""
    order = sandbox.place_with_lines("invoice-later-b")
    (transaction,) = order["transactions"]
    assert (order["status"], transaction["status"]) == ("accepted", "accepted")
    assert transaction["is_capturable"] is True


@pytest.mark.rule("INV-03", "SET-40")
def test_an_invoice_is_accepted_until_nothing_is_left(sandbox: Sandbox) -> None:
    """A partly captured invoice stays accepted and completes with the last part."""
    order = sandbox.place_with_lines("invoice-later-b")
    sandbox.take(order, "captures/amount", {"amount": LINES_TOTAL - 1})
    assert sandbox.status(order) == ("accepted", "accepted")
    sandbox.take(order, "captures/amount", {"amount": 1})
    assert sandbox.status(order) == ("completed", "completed")


@pytest.mark.rule("INV-05", "REF-02")
def test_an_invoice_is_cancelled_before_capture(sandbox: Sandbox) -> None:
    """Before a capture a refund is refused, and a cancellation succeeds."""
    order = sandbox.place_with_lines("invoice-later-b")
    lines = [{"merchant_order_line_id": "socks", "quantity": 1}]
    answer = sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"order_lines": lines})
    refused(answer, 409, "NothingToRefund")
    assert sandbox.delete(f"/v1/orders/{order['id']}/").json()["status"] == "cancelled"
