"""Authorizations: captured in full, by amount, by lines or by themselves; voided; run out."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from tests.support.driver import LINES, LINES_TOTAL, Sandbox, card, refused, violations


def socks(quantity: int) -> dict[str, Any]:
    """Some socks."""
    return {
        "order_lines": [{"merchant_order_line_id": "socks", "quantity": quantity}],
        "description": "Parcel",
    }


def amounts(sandbox: Sandbox, order: dict[str, Any]) -> dict[str, int]:
    """What became of the amount."""
    found: dict[str, int] = sandbox.read(order, "amount_details")["amount_details"]
    return found


def lines(sandbox: Sandbox, order: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Line, quantity and status of every detail."""
    return [
        (entry["merchant_order_line_id"], entry["quantity"], entry["status"])
        for entry in sandbox.read(order, "order_line_details")["order_line_details"]
    ]


@pytest.mark.rule("CARD-03", "CAP-01", "SET-38", "SET-27")
@pytest.mark.parametrize("method", ["credit-card", "pay-later-a"])
def test_an_authorized_order_is_completed_and_capturable(sandbox: Sandbox, method: str) -> None:
    """Money is reserved, none has moved."""
    order = sandbox.pay(sandbox.place_with_lines(method, capture_mode="manual"))
    (transaction,) = order["transactions"]
    assert (order["status"], transaction["status"]) == ("completed", "completed")
    assert (transaction["is_capturable"], transaction["is_fully_captured"]) == (True, False)
    assert amounts(sandbox, order) == {"original": 2000, "captured": 0, "voided": 0, "remaining": 2000}


def test_a_card_without_capture_mode_is_an_immediate_sale(sandbox: Sandbox) -> None:
    """There is nothing to capture: the money has moved."""
    order = sandbox.pay(sandbox.place(card()))
    assert order["transactions"][0]["is_capturable"] is False
    refused(sandbox.take(order, "captures"), 409, "AuthorizationMissing")
    assert amounts(sandbox, order)["captured"] == 1000


@pytest.mark.rule("CAP-02")
def test_nothing_is_captured_before_the_customer_authorized(sandbox: Sandbox) -> None:
    """Not when new, not when visited; then it works."""
    order = sandbox.place_with_lines("credit-card", capture_mode="manual")
    refused(sandbox.take(order, "captures"), 409, "AuthorizationMissing")
    sandbox.acted(order, "customer visit")
    refused(sandbox.take(order, "captures/amount", {"amount": 1}), 409, "AuthorizationMissing")
    sandbox.pay(order)
    assert sandbox.take(order, "captures").status_code == 200


@pytest.mark.rule("END-11", "END-12", "SET-10", "SET-46", "PLA-03")
@pytest.mark.parametrize(
    "options", [{}, {"data": b""}, {"data": b"{}", "headers": {"Content-Type": "application/json"}}]
)
def test_a_capture_in_full_needs_no_body(sandbox: Sandbox, options: dict[str, Any]) -> None:
    """No body, an empty body and an empty object do; the transaction is answered."""
    order = sandbox.pay(sandbox.place_with_lines("pay-later-a"))
    answer = sandbox.take(order, "captures", **options)
    assert answer.status_code == 200
    assert (answer.json()["id"], answer.json()["is_fully_captured"]) == (order["transactions"][0]["id"], True)
    assert amounts(sandbox, order)["captured"] == 2000


def test_a_capture_without_content_length_works(sandbox: Sandbox) -> None:
    """A bare POST, as some clients send it."""
    order = sandbox.authorized()
    path = f"/v1/orders/{order['id']}/transactions/{order['transactions'][0]['id']}/captures/"
    prepared = requests.Request("POST", sandbox.url + path, auth=(sandbox.key, "")).prepare()
    prepared.headers.pop("Content-Length", None)
    assert sandbox.http.send(prepared).status_code == 200


def test_captures_address_a_transaction_of_this_order(sandbox: Sandbox) -> None:
    """Another order's transaction is unknown here."""
    order, other = sandbox.authorized(), sandbox.authorized()
    answer = sandbox.post(f"/v1/orders/{order['id']}/transactions/{other['transactions'][0]['id']}/captures/")
    refused(answer, 404, "NotFound")


@pytest.mark.rule("END-14", "SET-47")
def test_captures_by_amount_add_up_to_the_amount_and_no_further(sandbox: Sandbox) -> None:
    """One cent over the remainder is refused and changes nothing."""
    order = sandbox.authorized()
    for _ in range(3):
        assert sandbox.take(order, "captures/amount", {"amount": 500, "description": "x"}).status_code == 200
    before = sandbox.read(order, "amount_details", "order_line_details")
    refused(sandbox.take(order, "captures/amount", {"amount": 501}), 409, "CaptureExceedsRemainder")
    assert sandbox.read(order, "amount_details", "order_line_details") == before
    assert sandbox.take(order, "captures/amount", {"amount": 500}).json()["is_fully_captured"] is True
    refused(sandbox.take(order, "captures"), 409, "CaptureExceedsRemainder")
    refused(sandbox.take(order, "captures/amount", {"amount": 1}), 409, "CaptureExceedsRemainder")


@pytest.mark.rule("END-13", "STA-19", "LDET-01", "LDET-02", "LDET-03", "LDET-04", "ADET-01")
def test_captured_lines_move_from_authorized_to_captured(sandbox: Sandbox) -> None:
    """A line id stands in one entry per status, its numbers as strings."""
    order = sandbox.authorized()
    assert sandbox.take(order, "captures/orderlines", socks(2)).status_code == 200
    found = sandbox.read(order, "order_line_details", "amount_details")
    line = {key: str(LINES[0][key]) for key in ("amount", "vat_percentage", "name", "type", "currency")}
    assert found["order_line_details"][0] == {
        **line, "merchant_order_line_id": "socks", "quantity": "1", "status": "authorized"
    }  # fmt: skip
    assert lines(sandbox, order) == [
        ("socks", "1", "authorized"), ("post", "2", "authorized"), ("socks", "2", "captured")
    ]  # fmt: skip
    assert found["amount_details"] == {"original": 2000, "captured": 1000, "voided": 0, "remaining": 1000}
    assert "has-captures" in found["flags"]


@pytest.mark.rule("LDET-01", "ADET-01")
@pytest.mark.parametrize("method", ["credit-card", "pay-later-a"])
@pytest.mark.parametrize(
    ("taken", "shown"),
    [
        (
            [("captures/orderlines", socks(2)), ("voids/amount", {"amount": 1000})],
            {("socks", "2", "captured"), ("socks", "1", "voided"), ("post", "2", "voided")},
        ),
        (
            [("captures/amount", {"amount": 1}), ("voids/amount", {"amount": 1999})],
            {("socks", "1", "captured"), ("socks", "2", "voided"), ("post", "2", "voided")},
        ),
        (
            [("voids/amount", {"amount": 500}), ("captures", {})],
            {("socks", "3", "captured"), ("post", "2", "voided")},
        ),
        ([("captures/amount", {"amount": 2000})], {("socks", "3", "captured"), ("post", "2", "captured")}),
        ([("voids/amount", {"amount": 2000})], {("socks", "3", "voided"), ("post", "2", "voided")}),
    ],
)
def test_what_amounts_took_shows_in_the_lines(
    sandbox: Sandbox, method: str, taken: list[tuple[str, dict[str, Any]]], shown: set[tuple[str, str, str]]
) -> None:
    """A void by amount voids the items that it covers whole, the last first (A41)."""
    order = sandbox.pay(sandbox.place_with_lines(method, capture_mode="manual"))
    for what, body in taken:
        assert sandbox.take(order, what, body).status_code == 200
    assert amounts(sandbox, order)["remaining"] == 0
    assert set(lines(sandbox, order)) == shown


def test_after_a_delayed_capture_nothing_is_left_to_wait_for(sandbox: Sandbox) -> None:
    """And the refusal speaks of what was."""
    order = sandbox.authorized(capture_mode="delayed", expiration_period="P1D")
    sandbox.advance("P2D")
    error = refused(sandbox.take(order, "captures"), 409, "AuthorizationDelayed")
    assert "nothing is left: 2000 of 2000 cents are captured" in error["value"]


@pytest.mark.rule("END-15", "STA-20", "VOID-01")
def test_voided_lines_shrink_the_authorization(sandbox: Sandbox) -> None:
    """They move from authorized to voided and can be captured no more."""
    order = sandbox.authorized()
    assert sandbox.take(order, "voids/orderlines", socks(2)).status_code == 200
    assert ("socks", "2", "voided") in lines(sandbox, order)
    refused(sandbox.take(order, "captures/orderlines", socks(2)), 409, "CaptureExceedsRemainder")
    assert sandbox.take(order, "captures/orderlines", socks(1)).status_code == 200
    assert "has-voids" in sandbox.read(order)["flags"]


@pytest.mark.rule("END-16", "VOID-01", "PLA-04")
def test_a_void_by_amount_shrinks_the_authorization(sandbox: Sandbox) -> None:
    """What is voided cannot be captured; more than what remains cannot be voided."""
    order = sandbox.pay(sandbox.place_with_lines("pay-later-a"))
    assert sandbox.take(order, "voids/amount", {"amount": 1500, "description": "gone"}).status_code == 200
    refused(sandbox.take(order, "captures/amount", {"amount": 501}), 409, "CaptureExceedsRemainder")
    refused(sandbox.take(order, "voids/amount", {"amount": 501}), 409, "VoidExceedsRemainder")
    assert sandbox.take(order, "captures").status_code == 200
    assert amounts(sandbox, order) == {"original": 2000, "captured": 500, "voided": 1500, "remaining": 0}


@pytest.mark.rule("VOID-02", "SET-43")
@pytest.mark.parametrize("kind", ["amount", "lines"])
def test_a_void_in_full_cancels_the_order(sandbox: Sandbox, kind: str) -> None:
    """At once, and for good."""
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


@pytest.mark.rule("CAP-08", "ERR-04")
def test_after_lines_no_amount_is_captured(sandbox: Sandbox) -> None:
    """The refusal names what is possible instead; more lines and the rest still are."""
    order = sandbox.authorized()
    sandbox.take(order, "captures/orderlines", socks(1))
    error = refused(sandbox.take(order, "captures/amount", {"amount": 1}), 409, "CaptureStyleMixed")
    assert error["allowed"] == ["capture by order lines", "capture in full"]
    assert sandbox.take(order, "voids/amount", {"amount": 100}).status_code == 200
    assert sandbox.take(order, "captures/orderlines", socks(1)).status_code == 200
    assert sandbox.take(order, "captures").json()["is_fully_captured"] is True


@pytest.mark.rule("CAP-09", "ERR-04")
def test_after_amounts_no_line_is_captured(sandbox: Sandbox) -> None:
    """And the reverse."""
    order = sandbox.authorized()
    sandbox.take(order, "captures/amount", {"amount": 1})
    refused(sandbox.take(order, "captures/orderlines", socks(1)), 409, "CaptureStyleMixed")
    assert sandbox.take(order, "voids/orderlines", socks(1)).status_code == 200
    assert sandbox.take(order, "captures").status_code == 200


def test_an_unknown_line_is_named(sandbox: Sandbox) -> None:
    """By its path, with the ids that the order has."""
    order = sandbox.authorized()
    body = {"order_lines": [{"merchant_order_line_id": "hat", "quantity": 1}, {"quantity": 1.5}]}
    assert set(violations(sandbox.take(order, "captures/orderlines", body))) == {
        "order_lines[1].merchant_order_line_id",
        "order_lines[1].quantity",
    }
    answer = sandbox.take(order, "voids/orderlines", {"order_lines": body["order_lines"][:1]})
    assert list(violations(answer)) == ["order_lines[0].merchant_order_line_id"]
    assert answer.json()["error"]["violations"][0]["allowed"] == ["post", "socks"]
    assert list(violations(sandbox.take(order, "captures/orderlines", {"order_lines": []}))) == [
        "order_lines"
    ]
    assert list(violations(sandbox.take(order, "captures/amount", {}))) == ["amount"]


def test_a_line_asked_for_twice_counts_twice(sandbox: Sandbox) -> None:
    """Two entries for one id cannot take more than there is."""
    order = sandbox.authorized()
    twice = {"order_lines": socks(2)["order_lines"] * 2}
    refused(sandbox.take(order, "captures/orderlines", twice), 409, "CaptureExceedsRemainder")


def test_lines_that_share_an_id_are_taken_in_their_order(sandbox: Sandbox) -> None:
    """Together they have the quantity of both."""
    shared = [{**LINES[0], "quantity": 1}, {**LINES[0], "amount": 100, "quantity": 2}]
    order = sandbox.authorized(amount=700, order_lines=shared)
    sandbox.take(order, "captures/orderlines", socks(2))
    assert amounts(sandbox, order)["captured"] == 600
    assert sandbox.take(order, "captures/orderlines", socks(1)).json()["is_fully_captured"] is True


def test_a_discount_lowers_what_its_lines_capture(sandbox: Sandbox) -> None:
    """A discount alone adds up to nothing that could be captured."""
    discount = {
        **LINES[0],
        "type": "discount",
        "amount": -300,
        "quantity": 1,
        "merchant_order_line_id": "less",
    }
    order = sandbox.authorized(amount=1200, order_lines=[LINES[0], discount])
    less = {"merchant_order_line_id": "less", "quantity": 1}
    assert "order_lines" in violations(sandbox.take(order, "captures/orderlines", {"order_lines": [less]}))
    both = {"order_lines": [*socks(3)["order_lines"], less]}
    assert sandbox.take(order, "captures/orderlines", both).json()["is_fully_captured"] is True


@pytest.mark.rule("CAP-03", "CAP-04", "SET-41", "ERR-03")
def test_an_unused_authorization_expires(sandbox: Sandbox) -> None:
    """Its period counts anew from the authorization; at its end nothing can be captured."""
    order = sandbox.place_with_lines("credit-card", capture_mode="manual", expiration_period="P7D")
    sandbox.advance("P6D")
    sandbox.pay(order)
    sandbox.advance("P6DT23H59M59S")
    assert sandbox.status(order) == ("completed", "completed")
    assert [event["kind"] for event in sandbox.advance("PT1S")] == ["authorization-expiry"]
    assert sandbox.status(order) == ("expired", "expired")
    for kind, body in (
        ("captures", None),
        ("captures/amount", {"amount": 1}),
        ("captures/orderlines", socks(1)),
    ):
        refused(sandbox.take(order, kind, body), 409, "AuthorizationExpired")
    refused(sandbox.take(order, "voids/amount", {"amount": 1}), 409, "AuthorizationExpired")
    assert sandbox.read(order)["transactions"][0]["is_capturable"] is False


@pytest.mark.rule("SET-42")
def test_a_partly_used_authorization_completes_at_its_end(project: Callable[..., Sandbox]) -> None:
    """What was captured stays, the rest can be captured never again."""
    sandbox = project(authorized_status="accepted")
    order = sandbox.authorized()
    sandbox.take(order, "captures/amount", {"amount": 500})
    assert sandbox.status(order) == ("accepted", "accepted")
    sandbox.advance("PT30M")
    assert sandbox.status(order) == ("completed", "completed")
    refused(sandbox.take(order, "captures"), 409, "AuthorizationExpired")
    assert amounts(sandbox, order)["captured"] == 500


@pytest.mark.rule("SET-39", "SET-35")
def test_authorized_status_accepted_shows_until_fully_captured(project: Callable[..., Sandbox]) -> None:
    """Accepted, then completed with the last cent."""
    sandbox = project(authorized_status="accepted")
    order = sandbox.authorized()
    assert sandbox.status(order) == ("accepted", "accepted")
    sandbox.take(order, "captures/amount", {"amount": 1999})
    assert sandbox.status(order) == ("accepted", "accepted")
    sandbox.take(order, "voids/amount", {"amount": 1})
    assert sandbox.status(order) == ("completed", "completed")


@pytest.mark.rule("CAP-05", "SET-44")
def test_a_delayed_authorization_captures_itself(sandbox: Sandbox) -> None:
    """One period after the customer authorized, not a second before, on the agenda meanwhile."""
    order = sandbox.place_with_lines("credit-card", capture_mode="delayed", expiration_period="P7D")
    sandbox.advance("P1D")
    sandbox.pay(order)
    assert [(item["kind"], item["at"]) for item in sandbox.agenda()] == [
        ("delayed-capture", "2026-03-09T12:00:00.000000+00:00")
    ]
    sandbox.advance("P6DT23H59M59S")
    assert amounts(sandbox, order)["captured"] == 0
    assert [event["label"] for event in sandbox.advance("PT1S")] == [f"delayed capture of {order['id']}"]
    assert amounts(sandbox, order) == {"original": 2000, "captured": 2000, "voided": 0, "remaining": 0}
    assert sandbox.read(order)["transactions"][0]["is_fully_captured"] is True


@pytest.mark.rule("CAP-06", "ERR-05")
def test_a_delayed_authorization_is_never_captured_by_hand(sandbox: Sandbox) -> None:
    """In full, by amount or by lines: refused, before and after it has captured itself."""
    order = sandbox.authorized(capture_mode="delayed")
    for kind, body in (
        ("captures", None),
        ("captures/amount", {"amount": 1}),
        ("captures/orderlines", socks(1)),
    ):
        refused(sandbox.take(order, kind, body), 409, "AuthorizationDelayed")
    sandbox.advance("PT30M")
    refused(sandbox.take(order, "captures"), 409, "AuthorizationDelayed")


@pytest.mark.rule("CAP-07")
def test_what_is_voided_in_time_is_not_captured(sandbox: Sandbox) -> None:
    """By amount and by lines alike."""
    order = sandbox.authorized(capture_mode="delayed")
    sandbox.take(order, "voids/amount", {"amount": 300})
    sandbox.take(order, "voids/orderlines", socks(1))
    sandbox.advance("PT30M")
    assert amounts(sandbox, order) == {"original": 2000, "captured": 1200, "voided": 800, "remaining": 0}


def test_a_delayed_authorization_voided_in_full_is_cancelled(sandbox: Sandbox) -> None:
    """Nothing is left to capture when its time comes, so nothing is on the agenda."""
    order = sandbox.authorized(capture_mode="delayed")
    sandbox.take(order, "voids/amount", {"amount": LINES_TOTAL})
    assert sandbox.status(order) == ("cancelled", "cancelled")
    assert sandbox.agenda() == []
    assert sandbox.advance("P1D") == []


@pytest.mark.rule("SET-45")
@pytest.mark.parametrize(("method", "period"), [("credit-card", "PT30M"), ("pay-later-a", "PT48H")])
def test_delayed_without_a_period_takes_the_methods_default(
    sandbox: Sandbox, method: str, period: str
) -> None:
    """The same period that an attempt of the method has."""
    order = sandbox.pay(sandbox.place_with_lines(method, capture_mode="delayed"))
    assert [event["kind"] for event in sandbox.advance(period)] == ["delayed-capture"]
    assert amounts(sandbox, order)["captured"] == 2000


@pytest.mark.rule("SET-22")
@pytest.mark.parametrize(
    ("start", "period", "due"),
    [
        ("2027-01-31T10:00:00Z", "P1M", "2027-02-28T10:00:00.000000+00:00"),
        ("2028-01-31T10:00:00Z", "P1M", "2028-02-29T10:00:00.000000+00:00"),
        ("2028-02-29T10:00:00Z", "P1Y", "2029-02-28T10:00:00.000000+00:00"),
        ("2027-12-31T23:30:00Z", "P2MT1H", "2028-03-01T00:30:00.000000+00:00"),
    ],
)
def test_months_and_years_follow_the_calendar(
    project: Callable[..., Sandbox], start: str, period: str, due: str
) -> None:
    """The last day of a month and leap days included."""
    sandbox = project(clock=f"frozen@{start}")
    sandbox.place(card(expiration_period=period))
    assert [item["at"] for item in sandbox.agenda()] == [due]


def test_eight_threads_never_capture_more_than_was_authorized(sandbox: Sandbox) -> None:
    """Eighty captures of 50 compete for 2000 cents: forty win."""
    order = sandbox.authorized()
    path = f"{sandbox.url}/v1/orders/{order['id']}/transactions/{order['transactions'][0]['id']}/captures/amount/"

    def capture_ten(_: int) -> list[int]:
        with requests.Session() as session:
            session.auth = (sandbox.key, "")
            return [session.post(path, json={"amount": 50}).status_code for _ in range(10)]

    with ThreadPoolExecutor(8) as threads:
        statuses = [status for found in threads.map(capture_ten, range(8)) for status in found]
    assert (statuses.count(200), statuses.count(409)) == (40, 40)
    assert amounts(sandbox, order) == {"original": 2000, "captured": 2000, "voided": 0, "remaining": 0}
