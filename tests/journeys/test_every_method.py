"""Behaviour that all methods share: payment, failure, cancellation and retry, in both modes."""

import pytest

from payment_sandbox.methods import ALL_METHODS
from tests.support.driver import Sandbox, by, refused, violations

PAGES = [
    "credit-card", "bank-redirect-nl", "bank-redirect-be", "bank-redirect-de",
    "wallet-qr", "wallet-web", "wallet-apple", "wallet-google", "pay-later-a",
]  # fmt: skip
TESTABLE_PAGES = [name for name in PAGES if name not in ("bank-redirect-be", "wallet-apple")]
ERROR_MESSAGE = "The payment failed. Please try again or choose another payment method."


@pytest.mark.rule("CARD-01", "WAPP-02")
def test_there_are_eleven_methods() -> None:
    """The methods are exactly those of the service."""
    assert sorted(method.name for method in ALL_METHODS) == sorted(
        [*PAGES, "bank-transfer", "invoice-later-b"]
    )


@pytest.mark.rule(
    "SET-63", "CARD-01", "WAPP-02", "STA-01", "STA-18", "ORD-23", "TX-15",
    "STA-04", "STA-05", "STA-06", "STA-07", "SET-36", "A39",
)  # fmt: skip
@pytest.mark.parametrize("method", PAGES)
def test_in_live_mode_every_method_with_a_page_is_paid(live: Sandbox, method: str) -> None:
    """The order is new, processing after the first visit alone, and completed after the payment."""
    order = live.place_with_lines(method)
    assert order["transactions"][0]["product_type"] == "ecommerce"
    assert live.status(order) == ("new", "new")
    visited = live.acted(order, "customer visit")
    assert live.status(order) == ("processing", "processing")
    revisited = live.acted(order, "customer visit")
    assert revisited["transactions"][0]["events"] == visited["transactions"][0]["events"]
    live.pay(order)
    assert live.status(order) == ("completed", "completed")


@pytest.mark.rule("GEN-05", "IDR-02", "BRD-01", "WQR-02", "WWEB-01", "GPAY-05", "PLA-05", "CARD-06")
@pytest.mark.parametrize("method", TESTABLE_PAGES)
def test_in_test_mode_testable_methods_are_paid(sandbox: Sandbox, method: str) -> None:
    """A test payment completes the order."""
    assert sandbox.pay(sandbox.place_with_lines(method))["status"] == "completed"


@pytest.mark.rule("BRB-01", "WAPP-01", "SET-61")
@pytest.mark.parametrize("method", ["bank-redirect-be", "wallet-apple"])
def test_in_test_mode_untestable_methods_are_refused(sandbox: Sandbox, method: str) -> None:
    """The refusal lists the testable methods, and the hosted page does not offer the method."""
    answer = sandbox.create(by(method))
    assert "test mode" in violations(answer)["transactions[0].payment_method"]
    assert method not in answer.json()["error"]["violations"][0]["allowed"]
    assert sandbox.act(sandbox.place(), "customer choose", payment_method=method).status_code == 400


@pytest.mark.rule("SET-28", "ORD-25", "CARD-08", "A11")
@pytest.mark.parametrize("method", TESTABLE_PAGES)
def test_a_failed_payment_is_an_error_with_its_reason(sandbox: Sandbox, method: str) -> None:
    """Order and transaction are in error; the merchant gets a reason, the customer a message."""
    order = sandbox.acted(sandbox.place_with_lines(method), "customer fail", reason="Limit reached")
    (transaction,) = order["transactions"]
    assert (order["status"], transaction["status"]) == ("error", "error")
    assert (transaction["reason"], transaction["customer_message"]) == ("Limit reached", ERROR_MESSAGE)
    assert order["reason"] == ERROR_MESSAGE


@pytest.mark.rule("A11")
@pytest.mark.parametrize("method", TESTABLE_PAGES)
def test_a_customer_can_cancel(sandbox: Sandbox, method: str) -> None:
    """Order and transaction are cancelled, and no further action is possible."""
    order = sandbox.acted(sandbox.place_with_lines(method), "customer cancel")
    assert (order["status"], order["transactions"][0]["status"]) == ("cancelled", "cancelled")
    assert refused(sandbox.act(order, "customer pay"), 409, "ActionNotPossible")["allowed"] == []


@pytest.mark.rule("A11")
@pytest.mark.parametrize("ending", ["fail", "cancel"])
@pytest.mark.parametrize("method", TESTABLE_PAGES[:-1])
def test_on_the_hosted_page_a_customer_can_try_again(sandbox: Sandbox, method: str, ending: str) -> None:
    """The attempt ends, and the order stays open for another one."""
    order = sandbox.place()
    sandbox.acted(order, "customer choose", payment_method=method)
    ended = sandbox.acted(order, f"customer {ending}")
    assert ended["status"] == "processing"
    assert ended["transactions"][0]["status"] == {"fail": "error", "cancel": "cancelled"}[ending]
    sandbox.acted(order, "customer choose", payment_method=method)
    assert sandbox.pay(order)["status"] == "completed"


def test_a_hosted_order_that_is_never_paid_expires_with_its_page(sandbox: Sandbox) -> None:
    """The attempt expires first, and the order expires with its page."""
    order = sandbox.place()
    sandbox.acted(order, "customer choose", payment_method="credit-card")
    sandbox.advance("PT30M")
    assert sandbox.status(order) == ("processing", "expired")
    sandbox.advance("P1D")
    assert sandbox.status(order) == ("expired", "expired")


@pytest.mark.rule("A22")
def test_choosing_another_method_gives_the_open_attempt_up(sandbox: Sandbox) -> None:
    """Choosing another method cancels the open attempt."""
    order = sandbox.place()
    sandbox.acted(order, "customer choose", payment_method="bank-transfer")
    chosen = sandbox.acted(order, "customer choose", payment_method="wallet-qr")
    assert [t["status"] for t in chosen["transactions"]] == ["cancelled", "processing"]


@pytest.mark.rule("A21")
def test_a_pending_transfer_outlives_the_hosted_page(live: Sandbox) -> None:
    """A credit may be in transit, so the order expires with the transfer instead of the page."""
    order = live.place(expiration_period="PT1H")
    live.acted(order, "customer choose", payment_method="bank-transfer")
    live.advance("P2D")
    assert live.status(order) == ("processing", "pending")
    live.advance("P30D")
    assert live.status(order) == ("expired", "expired")
