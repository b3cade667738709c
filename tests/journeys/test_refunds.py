"""Refunds by amount, by lines or of the remainder; settled or failed."""

from typing import Any

import pytest
import requests

from tests.journeys.authorizations import lines
from tests.support.driver import Sandbox, by, card, refused, violations


def refund(sandbox: Sandbox, order: dict[str, Any], **body: Any) -> requests.Response:
    """Request a refund."""
    return sandbox.post(f"/v1/orders/{order['id']}/refunds/", body)


def paid_order(sandbox: Sandbox, amount: int = 1000) -> dict[str, Any]:
    """Return a paid card order."""
    return sandbox.pay(sandbox.place(card(), amount=amount))


SOCK = {"merchant_order_line_id": "socks", "quantity": 1}


@pytest.mark.rule("END-10", "SET-48", "SET-07", "A27", "A27")
def test_a_refund_is_an_order_like_record(sandbox: Sandbox) -> None:
    """A refund has an id of its own, can be read, and settles at once by default."""
    order = paid_order(sandbox)
    answer = refund(sandbox, order, amount=400, description="Too small")
    assert (answer.status_code, answer.headers["ETag"][0]) == (201, '"')
    record = answer.json()
    assert (record["amount"], record["status"], record["description"]) == (400, "completed", "Too small")
    assert record["refund_of_order_id"] == order["id"] != record["id"]
    assert "is-refund" in record["flags"]
    assert record["transactions"][0]["credit_debit"] == "debit"
    assert sandbox.read(record) == record
    assert "has-refunds" in sandbox.read(order)["flags"]
    assert sandbox.status(record) == ("completed", "completed")
    assert sandbox.read(order)["status"] == "completed"


def test_a_refund_settles_when_the_scenario_says_so(sandbox: Sandbox) -> None:
    """Until it settles, the refund is processing and its amount is reserved."""
    order = paid_order(sandbox)
    sandbox.scenario({"when": {"refund": True}, "then": {"processor": "settles", "after": "P1D"}})
    record = refund(sandbox, order, amount=400).json()
    assert record["status"] == "processing"
    refused(refund(sandbox, order, amount=601), 409, "RefundExceedsCaptured")
    sandbox.advance("P1D")
    assert sandbox.status(record) == ("completed", "completed")


def test_a_refund_can_fail_at_once(sandbox: Sandbox) -> None:
    """A refund without a delay fails at once, and its amount can be refunded again."""
    order = paid_order(sandbox)
    sandbox.scenario({"when": {"refund": True}, "times": 1, "then": {"processor": "fails"}})
    assert refund(sandbox, order).json()["status"] == "error"
    assert refund(sandbox, order).json()["amount"] == 1000


@pytest.mark.rule("SET-49")
def test_refunds_never_exceed_what_was_captured(sandbox: Sandbox) -> None:
    """Refunds add up; a refund without an amount returns the remainder."""
    order = paid_order(sandbox)
    assert refund(sandbox, order, amount=400).status_code == 201
    refused(refund(sandbox, order, amount=601), 409, "RefundExceedsCaptured")
    assert refund(sandbox, order).json()["amount"] == 600
    refused(refund(sandbox, order), 409, "NothingToRefund")
    refused(refund(sandbox, order, amount=1), 409, "NothingToRefund")


@pytest.mark.rule("REF-01", "INV-04", "END-08", "END-09", "A33")
def test_an_invoice_is_refunded_by_lines_after_capture(sandbox: Sandbox) -> None:
    """Lines are required, and only captured lines can be refunded."""
    order = sandbox.place_with_lines("invoice-later-b")
    refused(refund(sandbox, order, order_lines=[SOCK]), 409, "NothingToRefund")
    sandbox.take(order, "captures/orderlines", {"order_lines": [SOCK]})
    assert set(violations(refund(sandbox, order, amount=1))) == {"order_lines"}
    assert set(violations(refund(sandbox, order))) == {"order_lines"}
    two = [{**SOCK, "quantity": 2}]
    refused(refund(sandbox, order, order_lines=two), 409, "RefundExceedsCaptured")
    record = refund(sandbox, order, order_lines=[SOCK], description="Hole").json()
    assert (record["amount"], record["order_lines"][0]["quantity"]) == (500, 1)
    refused(refund(sandbox, order, order_lines=[SOCK]), 409, "NothingToRefund")


@pytest.mark.rule("SET-49", "A46")
def test_with_lines_and_an_amount_the_amount_decides(sandbox: Sandbox) -> None:
    """Plugins send a partial amount with all lines; the difference is a warning."""
    order = sandbox.pay(sandbox.place_with_lines("credit-card"))
    everything = [{**SOCK, "quantity": 3}, {"merchant_order_line_id": "post", "quantity": 2}]
    answer = refund(sandbox, order, order_lines=everything, amount=700)
    assert (answer.status_code, answer.json()["amount"]) == (201, 700)
    warning = "order_lines add up to 2000 cents; amount takes precedence: 700 cents"
    assert answer.headers["Sandbox-Warnings"] == warning
    retried = refund(sandbox, order, order_lines=everything, amount=300)
    assert (retried.status_code, retried.json()["amount"]) == (201, 300)
    refused(refund(sandbox, order, order_lines=everything, amount=1001), 409, "RefundExceedsCaptured")
    equal = refund(sandbox, order, order_lines=[SOCK], amount=500)
    assert (equal.status_code, "Sandbox-Warnings" in equal.headers) == (201, False)
    hat = {"merchant_order_line_id": "hat", "quantity": 1}
    assert set(violations(refund(sandbox, order, order_lines=[hat]))) == {
        "order_lines[0].merchant_order_line_id"
    }


POST = {"merchant_order_line_id": "post", "quantity": 1}
AFTER_PARTIAL_USE = [
    [("voids/orderlines", {"order_lines": [SOCK]}), ("captures/amount", {"amount": 1500})],
    [("voids/orderlines", {"order_lines": [{**POST, "quantity": 2}]}), ("captures", {})],
    [("voids/amount", {"amount": 500}), ("captures", {})],
    [("voids/amount", {"amount": 750}), ("captures/orderlines", {"order_lines": [POST]}), ("captures", {})],
    [("captures/amount", {"amount": 500}), ("voids/amount", {"amount": 1500})],
    [("captures/orderlines", {"order_lines": [POST, SOCK]}), ("voids/amount", {"amount": 1250})],
    [("captures", {})],
]


@pytest.mark.rule("A41", "SET-49")
@pytest.mark.parametrize("method", ["pay-later-a", "invoice-later-b", "credit-card"])
@pytest.mark.parametrize("steps", AFTER_PARTIAL_USE)
def test_captured_lines_can_be_refunded_and_voided_lines_cannot(
    sandbox: Sandbox, method: str, steps: list[tuple[str, dict[str, Any]]]
) -> None:
    """The statuses in order_line_details decide, whether amounts or lines were captured and voided."""
    order = sandbox.place_with_lines(method, capture_mode="manual")
    order = order if method == "invoice-later-b" else sandbox.pay(order)
    for path, body in steps:
        assert sandbox.take(order, path, body).status_code == 200
    quantities = {(line, status): int(number) for line, number, status in lines(sandbox, order)}
    assert sum(quantities.values()) == 5
    for line in ("socks", "post"):
        captured = quantities.get((line, "captured"), 0)
        more = {"merchant_order_line_id": line, "quantity": captured + 1}
        excess = refund(sandbox, order, order_lines=[more])
        assert excess.json()["error"]["type"] in ("RefundExceedsCaptured", "NothingToRefund")
        if captured:
            assert refund(sandbox, order, order_lines=[{**more, "quantity": captured}]).status_code == 201


@pytest.mark.rule("A41")
def test_a_refunded_line_cannot_be_voided(sandbox: Sandbox) -> None:
    """A refund by lines decides which lines a capture by amount has captured, until it fails."""
    order = sandbox.place_with_lines("invoice-later-b")
    sandbox.take(order, "captures/amount", {"amount": 500})
    sandbox.scenario({"when": {"refund": True}, "times": 1, "then": {"processor": "fails", "after": "P1D"}})
    two = {"order_lines": [{**POST, "quantity": 2}]}
    assert refund(sandbox, order, **two).status_code == 201
    assert ("post", "2", "captured") in lines(sandbox, order)
    refused(sandbox.take(order, "voids/orderlines", two), 409, "VoidExceedsRemainder")
    sandbox.advance("P1D")
    assert sandbox.take(order, "voids/orderlines", two).status_code == 200
    refused(refund(sandbox, order, **two), 409, "RefundExceedsCaptured")


@pytest.mark.rule("A33")
@pytest.mark.parametrize("method", ["bank-transfer", "bank-redirect-nl", "wallet-qr"])
def test_other_methods_are_refunded_alike(live: Sandbox, method: str) -> None:
    """Payments by transfer, bank redirect and wallet can be refunded."""
    order = live.place(by(method))
    live.acted(order, "bank credit" if method == "bank-transfer" else "customer pay")
    assert refund(live, order, amount=1).status_code == 201


@pytest.mark.rule("SCN-09", "SET-28", "A46")
def test_a_refund_that_fails_leaves_its_sum_refundable(sandbox: Sandbox) -> None:
    """The refund fails after the scenario's delay, and a new refund succeeds."""
    order = paid_order(sandbox)
    sandbox.scenario(
        {
            "when": {"refund": True},
            "times": 1,
            "then": {"processor": "fails", "after": "P2D", "reason": "Account closed"},
        }
    )
    record = refund(sandbox, order).json()
    sandbox.advance("P2D")
    failed = sandbox.read(record)
    assert (failed["status"], failed["transactions"][0]["reason"]) == ("error", "Account closed")
    assert "has-refunds" not in sandbox.read(order)["flags"]
    retried = refund(sandbox, order).json()
    sandbox.advance("PT1M")
    assert (retried["amount"], sandbox.read(retried)["status"]) == (1000, "completed")


@pytest.mark.rule("A46")
def test_a_refund_by_lines_may_not_contradict_its_amount(sandbox: Sandbox) -> None:
    """A difference of up to one cent an item is a warning; with ``refund_mismatch``, so is any other."""
    order = sandbox.place_with_lines("invoice-later-b")
    sandbox.take(order, "captures")
    rounded = refund(sandbox, order, order_lines=[SOCK], amount=499)
    assert (rounded.status_code, rounded.json()["amount"]) == (201, 500)
    assert (
        rounded.headers["Sandbox-Warnings"] == "amount is 499 cents; order_lines take precedence: 500 cents"
    )
    everything = [{**SOCK, "quantity": 2}, {**POST, "quantity": 2}]
    for amount, status in ((300, 400), (1495, 400), (1505, 400)):
        problem = violations(refund(sandbox, order, order_lines=everything, amount=amount))["amount"]
        assert f"is {amount} cents, but order_lines add up to 1500 cents" in problem, status
    sandbox.settings(refund_mismatch="lines")
    followed = refund(sandbox, order, order_lines=everything, amount=300)
    assert (followed.status_code, followed.json()["amount"]) == (201, 1500)
    assert "order_lines take precedence: 1500 cents" in followed.headers["Sandbox-Warnings"]


@pytest.mark.parametrize(("action", "status"), [("settle", "completed"), ("fail", "error")])
def test_a_refund_can_be_settled_by_hand(sandbox: Sandbox, action: str, status: str) -> None:
    """The processor can settle or fail a refund once."""
    sandbox.scenario({"when": {"refund": True}, "then": {"processor": "settles", "after": "P1D"}})
    record = refund(sandbox, paid_order(sandbox)).json()
    assert sandbox.acted(record, f"processor {action}")["status"] == status
    refused(sandbox.act(record, f"processor {action}"), 409, "ActionNotPossible")


def test_a_refund_is_no_order_to_cancel_or_refund(sandbox: Sandbox) -> None:
    """A refund cannot be cancelled, refunded or captured."""
    record = refund(sandbox, paid_order(sandbox)).json()
    refused(sandbox.delete(f"/v1/orders/{record['id']}/"), 409, "OrderNotCancellable")
    answer = refund(sandbox, record)
    refused(answer, 409, "NothingToRefund")
    assert answer.json()["error"]["value"] == f"order {record['id']} is itself a refund: nothing to refund"
    refused(sandbox.take(record, "captures"), 409, "AuthorizationMissing")


@pytest.mark.parametrize("body", [{"amount": 0}, {"amount": "1"}, {"order_lines": []}, {"order_lines": [{}]}])
def test_a_wrong_refund_changes_nothing(sandbox: Sandbox, body: dict[str, Any]) -> None:
    """The order is unchanged after a refused refund."""
    order = paid_order(sandbox)
    assert refund(sandbox, order, **body).status_code == 400
    assert sandbox.read(order) == order
