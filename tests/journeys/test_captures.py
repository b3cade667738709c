"""Authorizations are captured in full, by amount or by lines, and never beyond their amount."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from tests.journeys.authorizations import amounts, lines, socks
from tests.support.driver import LINES, Sandbox, refused, violations


@pytest.mark.rule("END-11", "END-12", "SET-07", "SET-10", "SET-27", "SET-46", "PLA-03", "A05")
@pytest.mark.parametrize(
    "options", [{}, {"data": b""}, {"data": b"{}", "headers": {"Content-Type": "application/json"}}]
)
def test_a_capture_in_full_needs_no_body(sandbox: Sandbox, options: dict[str, Any]) -> None:
    """No body, an empty body and an empty object are accepted; the response is the transaction."""
    order = sandbox.pay(sandbox.place_with_lines("pay-later-a"))
    answer = sandbox.take(order, "captures", **options)
    assert answer.status_code == 200
    taken = answer.json()
    assert taken["id"] == order["transactions"][0]["id"]
    assert (taken["is_capturable"], taken["is_fully_captured"]) == (False, True)
    assert amounts(sandbox, order)["captured"] == 2000


def test_a_capture_without_content_length_works(sandbox: Sandbox) -> None:
    """A POST without Content-Length and without a body is accepted."""
    order = sandbox.authorized()
    path = f"/v1/orders/{order['id']}/transactions/{order['transactions'][0]['id']}/captures/"
    prepared = requests.Request("POST", sandbox.url + path, auth=(sandbox.key, "")).prepare()
    prepared.headers.pop("Content-Length", None)
    assert sandbox.http.send(prepared).status_code == 200


@pytest.mark.rule("END-12", "SET-07")
def test_captures_address_a_transaction_of_this_order(sandbox: Sandbox) -> None:
    """A transaction of another order gets 404."""
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
    """A line id has one entry per status; its numbers are strings."""
    order = sandbox.authorized()
    assert sandbox.take(order, "captures/orderlines", socks(2)).status_code == 200
    details = sandbox.read(order, "order_line_details", "amount_details")
    line = {key: str(LINES[0][key]) for key in ("amount", "vat_percentage", "name", "type", "currency")}
    assert details["order_line_details"][0] == {
        **line, "merchant_order_line_id": "socks", "quantity": "1", "status": "authorized"
    }  # fmt: skip
    assert lines(sandbox, order) == [
        ("socks", "1", "authorized"), ("post", "2", "authorized"), ("socks", "2", "captured")
    ]  # fmt: skip
    assert details["amount_details"] == {"original": 2000, "captured": 1000, "voided": 0, "remaining": 1000}
    assert "has-captures" in details["flags"]


@pytest.mark.rule("LINE-04", "LDET-02", "LDET-03")
def test_each_line_is_addressed_by_its_own_id(sandbox: Sandbox) -> None:
    """Captures, voids and refunds address a line by its id; one line can have three entries."""
    order = sandbox.authorized()
    post = {"order_lines": [{"merchant_order_line_id": "post", "quantity": 1}]}
    assert sandbox.take(order, "captures/orderlines", post).status_code == 200
    assert sandbox.take(order, "voids/orderlines", socks(1)).status_code == 200
    assert sandbox.take(order, "captures/orderlines", socks(1)).status_code == 200
    assert set(lines(sandbox, order)) == {
        ("socks", "1", "authorized"),
        ("post", "1", "authorized"),
        ("socks", "1", "captured"),
        ("post", "1", "captured"),
        ("socks", "1", "voided"),
    }
    refund = sandbox.post(f"/v1/orders/{order['id']}/refunds/", post).json()
    assert (refund["amount"], refund["order_lines"][0]["merchant_order_line_id"]) == (250, "post")


@pytest.mark.rule("LDET-01", "ADET-01", "A41")
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
    """A void by amount voids the items that it covers completely, starting with the last (A41)."""
    order = sandbox.pay(sandbox.place_with_lines(method, capture_mode="manual"))
    for operation, body in taken:
        assert sandbox.take(order, operation, body).status_code == 200
    assert amounts(sandbox, order)["remaining"] == 0
    assert set(lines(sandbox, order)) == shown


@pytest.mark.rule("CAP-08", "ERR-04")
def test_after_lines_no_amount_is_captured(sandbox: Sandbox) -> None:
    """The refusal lists the possible captures; captures by lines and in full still succeed."""
    order = sandbox.authorized()
    sandbox.take(order, "captures/orderlines", socks(1))
    error = refused(sandbox.take(order, "captures/amount", {"amount": 1}), 409, "CaptureStyleMixed")
    assert error["allowed"] == ["capture by order lines", "capture in full"]
    assert sandbox.take(order, "voids/amount", {"amount": 100}).status_code == 200
    assert sandbox.take(order, "captures/orderlines", socks(1)).status_code == 200
    assert sandbox.take(order, "captures").json()["is_fully_captured"] is True


@pytest.mark.rule("CAP-09", "ERR-04")
def test_after_amounts_no_line_is_captured(sandbox: Sandbox) -> None:
    """After a capture by amount, a capture by lines is refused."""
    order = sandbox.authorized()
    sandbox.take(order, "captures/amount", {"amount": 1})
    refused(sandbox.take(order, "captures/orderlines", socks(1)), 409, "CaptureStyleMixed")
    assert sandbox.take(order, "voids/orderlines", socks(1)).status_code == 200
    assert sandbox.take(order, "captures").status_code == 200


def test_an_unknown_line_is_named(sandbox: Sandbox) -> None:
    """The violation has the path of the line and lists the order's line ids."""
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


def test_a_line_that_is_listed_twice_counts_twice(sandbox: Sandbox) -> None:
    """Two entries for one id cannot exceed its quantity."""
    order = sandbox.authorized()
    twice = {"order_lines": socks(2)["order_lines"] * 2}
    refused(sandbox.take(order, "captures/orderlines", twice), 409, "CaptureExceedsRemainder")


def test_a_discount_lowers_what_its_lines_capture(sandbox: Sandbox) -> None:
    """A discount reduces the captured amount; a capture of a discount alone is refused."""
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


def test_threads_that_change_the_same_order_keep_its_books(sandbox: Sandbox) -> None:
    """Each of many concurrent captures, voids, refunds, updates and cancellations is done once, or refused."""
    order = sandbox.authorized()
    assert sandbox.take(order, "captures/amount", {"amount": 200}).status_code == 200
    path = f"{sandbox.url}/v1/orders/{order['id']}/"
    transaction = f"{path}transactions/{order['transactions'][0]['id']}/"
    calls: dict[str, tuple[str, str, dict[str, Any]]] = {
        "capture": ("POST", f"{transaction}captures/amount/", {"amount": 50}),
        "void": ("POST", f"{transaction}voids/amount/", {"amount": 30}),
        "refund": ("POST", f"{path}refunds/", {"amount": 5}),
        "update": ("PUT", path, {"description": "changed"}),
        "cancel": ("DELETE", path, {}),
    }

    def call_in_turn(first: int) -> list[tuple[str, int]]:
        names = [*calls][first % len(calls) :] + [*calls][: first % len(calls)]
        with requests.Session() as session:
            session.auth = (sandbox.key, "")
            return [
                (name, session.request(method, url, json=body).status_code)
                for name in names * 10
                for method, url, body in [calls[name]]
            ]

    with ThreadPoolExecutor(8) as threads:
        answers = Counter(answer for each in threads.map(call_in_turn, range(8)) for answer in each)
    captured, voided = 200 + 50 * answers["capture", 200], 30 * answers["void", 200]
    assert 2000 - 30 < captured + voided <= 2000, "the calls ask for more than was authorized"
    assert amounts(sandbox, order) == {
        "original": 2000, "captured": captured, "voided": voided, "remaining": 2000 - captured - voided
    }  # fmt: skip
    assert {status for _, status in answers} == {200, 201, 409}
    assert (answers["update", 200], answers["cancel", 409]) == (80, 80)
    rest = sandbox.post(f"/v1/orders/{order['id']}/refunds/", {}).json()["amount"]
    assert rest == captured - 5 * answers["refund", 201]
