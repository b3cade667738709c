"""Authorizations: captures, voids and expiry."""

from collections.abc import Callable

import pytest

from tests.journeys.authorizations import amounts, lines, socks
from tests.support.driver import LINES_TOTAL, Sandbox, card, refused


@pytest.mark.rule("CARD-03", "CAP-01", "SET-38", "SET-27", "A13")
@pytest.mark.parametrize("mode", ["manual", "delayed"])
@pytest.mark.parametrize("method", ["credit-card", "pay-later-a", "invoice-later-b"])
def test_each_capture_mode_authorizes(sandbox: Sandbox, method: str, mode: str) -> None:
    """The amount is reserved; only a manual authorization can be captured; a third mode is refused."""
    order = sandbox.place_with_lines(method, capture_mode=mode)
    if method != "invoice-later-b":
        order = sandbox.pay(order)
        assert sandbox.status(order) == ("completed", "completed")
    (transaction,) = order["transactions"]
    assert (transaction["capture_mode"], transaction["is_fully_captured"]) == (mode, False)
    assert transaction["is_capturable"] == (mode == "manual")
    assert amounts(sandbox, order) == {"original": 2000, "captured": 0, "voided": 0, "remaining": 2000}
    taken = sandbox.take(order, "captures/amount", {"amount": 500})
    assert taken.status_code == (200 if mode == "manual" else 409)
    assert sandbox.create(card(capture_mode="immediate")).status_code == 400


def test_a_card_without_capture_mode_is_an_immediate_sale(sandbox: Sandbox) -> None:
    """The amount is captured with the payment, so a capture is refused."""
    order = sandbox.pay(sandbox.place(card()))
    assert order["transactions"][0]["is_capturable"] is False
    refused(sandbox.take(order, "captures"), 409, "AuthorizationMissing")
    assert amounts(sandbox, order)["captured"] == 1000


@pytest.mark.rule("CAP-02")
def test_nothing_is_captured_before_the_customer_authorized(sandbox: Sandbox) -> None:
    """A capture is refused while the order is new or visited, and succeeds after the authorization."""
    order = sandbox.place_with_lines("credit-card", capture_mode="manual")
    refused(sandbox.take(order, "captures"), 409, "AuthorizationMissing")
    sandbox.acted(order, "customer visit")
    refused(sandbox.take(order, "captures/amount", {"amount": 1}), 409, "AuthorizationMissing")
    sandbox.pay(order)
    assert sandbox.take(order, "captures").status_code == 200


@pytest.mark.rule("END-15", "STA-20", "VOID-01", "A15")
def test_voided_lines_shrink_the_authorization(sandbox: Sandbox) -> None:
    """Voided lines change from authorized to voided and can no longer be captured."""
    order = sandbox.authorized()
    assert sandbox.take(order, "voids/orderlines", socks(2)).status_code == 200
    assert {("socks", "2", "voided"), ("socks", "1", "authorized")} <= set(lines(sandbox, order))
    assert amounts(sandbox, order) == {"original": 2000, "captured": 0, "voided": 1000, "remaining": 1000}
    refused(sandbox.take(order, "voids/amount", {"amount": 1001}), 409, "VoidExceedsRemainder")
    refused(sandbox.take(order, "captures/orderlines", socks(2)), 409, "CaptureExceedsRemainder")
    assert sandbox.take(order, "captures/orderlines", socks(1)).status_code == 200
    assert "has-voids" in sandbox.read(order)["flags"]


@pytest.mark.rule("END-16", "VOID-01", "PLA-04", "A15")
def test_a_void_by_amount_shrinks_the_authorization(sandbox: Sandbox) -> None:
    """A voided amount cannot be captured, and a void larger than the remainder is refused."""
    order = sandbox.pay(sandbox.place_with_lines("pay-later-a"))
    assert sandbox.take(order, "voids/amount", {"amount": 1500, "description": "gone"}).status_code == 200
    refused(sandbox.take(order, "captures/amount", {"amount": 501}), 409, "CaptureExceedsRemainder")
    refused(sandbox.take(order, "voids/amount", {"amount": 501}), 409, "VoidExceedsRemainder")
    assert sandbox.take(order, "captures").status_code == 200
    assert amounts(sandbox, order) == {"original": 2000, "captured": 500, "voided": 1500, "remaining": 0}


@pytest.mark.rule("VOID-02", "SET-43")
@pytest.mark.parametrize("kind", ["amount", "lines"])
def test_a_void_in_full_cancels_the_order(sandbox: Sandbox, kind: str) -> None:
    """A void in full cancels the order at once, and no capture is possible afterwards."""
    order = sandbox.authorized()
    everything = [
        {"merchant_order_line_id": "socks", "quantity": 3},
        {"merchant_order_line_id": "post", "quantity": 2},
    ]
    if kind == "amount":
        sandbox.take(order, "voids/amount", {"amount": LINES_TOTAL})
    else:
        sandbox.take(order, "voids/orderlines", {"order_lines": everything})
    assert sandbox.status(order) == ("cancelled", "cancelled")
    refused(sandbox.take(order, "captures"), 409, "CaptureExceedsRemainder")


@pytest.mark.rule("TRQ-05", "CAP-03", "CAP-04", "SET-41", "ERR-03", "A14")
def test_an_unused_authorization_expires(sandbox: Sandbox) -> None:
    """The period restarts with the authorization; after its expiry nothing can be captured or voided."""
    order = sandbox.place_with_lines("credit-card", capture_mode="manual", expiration_period="P7D")
    sandbox.advance("P6D")
    sandbox.pay(order)
    sandbox.advance("P6DT23H59M59S")
    assert sandbox.status(order) == ("completed", "completed")
    assert [event["kind"] for event in sandbox.advance("PT1S")] == ["authorization-expiry"]
    assert sandbox.status(order) == ("expired", "expired")
    assert lines(sandbox, order) == []
    for kind, body in (
        ("captures", None),
        ("captures/amount", {"amount": 1}),
        ("captures/orderlines", socks(1)),
    ):
        refused(sandbox.take(order, kind, body), 409, "AuthorizationExpired")
    refused(sandbox.take(order, "voids/amount", {"amount": 1}), 409, "AuthorizationExpired")
    assert sandbox.read(order)["transactions"][0]["is_capturable"] is False


@pytest.mark.rule("SET-27", "SET-42")
def test_a_partly_used_authorization_completes_at_its_end(project: Callable[..., Sandbox]) -> None:
    """After expiry the captured part remains, and the rest can no longer be captured."""
    sandbox = project(authorized_status="accepted")
    order = sandbox.authorized()
    sandbox.take(order, "captures/amount", {"amount": 500})
    assert sandbox.status(order) == ("accepted", "accepted")
    sandbox.advance("PT30M")
    assert sandbox.status(order) == ("completed", "completed")
    refused(sandbox.take(order, "captures"), 409, "AuthorizationExpired")
    refused(sandbox.take(order, "voids/amount", {"amount": 1}), 409, "AuthorizationExpired")
    (transaction,) = sandbox.read(order)["transactions"]
    assert (transaction["is_capturable"], transaction["is_fully_captured"]) == (False, False)
    possible = sandbox.get(f"/control/orders/{order['id']}/").json()
    assert {each["action"] for each in possible["actions"]["merchant"]} == {"refund"}
    assert amounts(sandbox, order)["captured"] == 500


@pytest.mark.rule("SET-39", "SET-35")
def test_authorized_status_accepted_shows_until_fully_captured(project: Callable[..., Sandbox]) -> None:
    """The status is accepted until the last cent is captured or voided, then completed."""
    sandbox = project(authorized_status="accepted")
    order = sandbox.authorized()
    assert sandbox.status(order) == ("accepted", "accepted")
    sandbox.take(order, "captures/amount", {"amount": 1999})
    assert sandbox.status(order) == ("accepted", "accepted")
    sandbox.take(order, "voids/amount", {"amount": 1})
    assert sandbox.status(order) == ("completed", "completed")
