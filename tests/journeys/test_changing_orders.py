"""Orders are updated and cancelled; ETags guard every change."""

import re
from collections.abc import Callable

import pytest

from tests.support.driver import LINES, LINES_TOTAL, Sandbox, card, violations


@pytest.mark.rule("SET-51", "A35")
def test_an_order_can_be_updated(sandbox: Sandbox) -> None:
    """Texts, addresses, customer and extra change; other fields stay the same."""
    order = sandbox.place(card(), description="Socks", merchant_order_id="1")
    change = {
        "description": "Blue socks",
        "merchant_order_id": "2",
        "return_url": "https://shop.example/2",
        "webhook_url": "https://shop.example/3",
        "customer": {"country": "BE"},
        "extra": {"gift": True},
    }
    updated = sandbox.put(f"/v1/orders/{order['id']}/", change)
    assert updated.status_code == 200
    assert {key: updated.json()[key] for key in change} == change
    assert sandbox.read(order) == updated.json()


@pytest.mark.rule("SET-52")
def test_the_sum_can_change_until_a_customer_acts(sandbox: Sandbox) -> None:
    """A new amount applies to the open transaction; after a visit it is refused and nothing changes."""
    order = sandbox.place(card())
    changed = sandbox.put(f"/v1/orders/{order['id']}/", {"amount": 1500, "order_lines": [LINES[0]]}).json()
    assert (changed["amount"], changed["transactions"][0]["amount"]) == (1500, 1500)
    assert changed["order_lines"] == [LINES[0]]
    before = sandbox.acted(order, "customer visit")
    answer = sandbox.put(f"/v1/orders/{order['id']}/", {"amount": 1600, "description": "New"})
    assert (answer.status_code, answer.json()["error"]["type"]) == (409, "OrderNotUpdatable")
    assert sandbox.read(order) == before
    assert (
        sandbox.put(f"/v1/orders/{order['id']}/", {"amount": 1500, "description": "New"}).status_code == 200
    )


@pytest.mark.rule("SET-53", "A35")
def test_a_whole_order_can_be_written_back_as_read(project: Callable[..., Sandbox]) -> None:
    """Unchanged read-only keys are accepted silently; changed ones are ignored and named in a header."""
    sandbox = project(unknown_fields="reject")
    order = sandbox.authorized()
    path = f"/v1/orders/{order['id']}/"
    whole = sandbox.read(order, "amount_details", "order_line_details")
    del whole["amount_details"], whole["order_line_details"]
    same = sandbox.put(path, whole)
    assert (same.status_code, same.json()) == (200, whole)
    assert "Sandbox-Ignored-Fields" not in same.headers
    differing = sandbox.put(path, {**whole, "status": "new", "id": "x", "description": "Changed"})
    assert differing.status_code == 200
    assert differing.headers["Sandbox-Ignored-Fields"] == "id, status"
    assert (differing.json()["status"], differing.json()["description"]) == ("completed", "Changed")


def test_an_update_is_checked_like_a_creation(sandbox: Sandbox) -> None:
    """All violations are reported together; lines that the method needs cannot be removed."""
    order = sandbox.place_with_lines("pay-later-a")
    path = f"/v1/orders/{order['id']}/"
    answer = sandbox.put(path, {"amount": "5", "return_url": "x", "customer": []})
    assert set(violations(answer)) == {"amount", "return_url", "customer"}
    assert list(violations(sandbox.put(path, {"order_lines": []}))) == ["order_lines"]
    assert sandbox.read(order) == order


@pytest.mark.rule("END-07", "SET-50", "A34")
def test_an_order_can_be_cancelled_until_money_moved(sandbox: Sandbox) -> None:
    """New, hosted, processing and authorized orders are cancelled; paid ones are not."""
    hosted, new, visited = sandbox.place(), sandbox.place(card()), sandbox.place(card())
    sandbox.acted(visited, "customer visit")
    authorized = sandbox.authorized()
    for order in (hosted, new, visited, authorized):
        answer = sandbox.delete(f"/v1/orders/{order['id']}/")
        assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    assert sandbox.read(authorized, "amount_details")["amount_details"]["voided"] == LINES_TOTAL
    paid = sandbox.pay(sandbox.place(card()))
    captured = sandbox.authorized()
    sandbox.take(captured, "captures/amount", {"amount": 1})
    for order in (paid, captured, hosted):
        answer = sandbox.delete(f"/v1/orders/{order['id']}/")
        assert (answer.status_code, answer.json()["error"]["type"]) == (409, "OrderNotCancellable")


@pytest.mark.rule("SET-32", "SET-34")
def test_every_version_has_a_strong_etag(sandbox: Sandbox) -> None:
    """Create, read, update and cancel return an ETag; a read with a current If-None-Match gets 304."""
    answer = sandbox.create(card())
    path = f"/v1/orders/{answer.json()['id']}/"
    first = answer.headers["ETag"]
    assert re.fullmatch(r'"[^"]+"', first)
    assert sandbox.get(path).headers["ETag"] == first
    known = sandbox.get(path, headers={"If-None-Match": first})
    assert (known.status_code, known.content, known.headers["ETag"]) == (304, b"", first)
    second = sandbox.put(path, {"description": "x"}).headers["ETag"]
    third = sandbox.delete(path).headers["ETag"]
    assert len({first, second, third}) == 3
    assert sandbox.get(path, headers={"If-None-Match": first}).status_code == 200


@pytest.mark.rule("SET-33", "IFM-01", "IFM-02")
def test_if_match_guards_every_change(sandbox: Sandbox) -> None:
    """A stale ETag gets 412 and changes nothing; the current ETag or a star is accepted."""
    order = sandbox.authorized()
    path = f"/v1/orders/{order['id']}/"
    stale = {"If-Match": '"stale"'}
    lines = {"order_lines": [{"merchant_order_line_id": "socks", "quantity": 1}]}
    before = sandbox.read(order, "amount_details")
    for answer in (
        sandbox.take(order, "captures", headers=stale),
        sandbox.take(order, "captures/amount", {"amount": 1}, headers=stale),
        sandbox.take(order, "captures/orderlines", lines, headers=stale),
        sandbox.take(order, "voids/amount", {"amount": 1}, headers=stale),
        sandbox.take(order, "voids/orderlines", lines, headers=stale),
        sandbox.post(f"{path}refunds/", {}, headers=stale),
        sandbox.put(path, {"description": "x"}, headers=stale),
        sandbox.delete(path, headers=stale),
    ):
        assert (answer.status_code, answer.json()["error"]["type"]) == (412, "PreconditionFailed")
    assert sandbox.read(order, "amount_details") == before
    etag = sandbox.get(f"{path}?fields[]=amount_details").headers["ETag"]
    taken = sandbox.take(order, "captures/orderlines", lines, headers={"If-Match": f'"other", {etag}'})
    assert taken.status_code == 200
    outdated = sandbox.take(order, "captures/orderlines", lines, headers={"If-Match": etag})
    assert outdated.status_code == 412
    assert sandbox.take(order, "captures/orderlines", lines, headers={"If-Match": "*"}).status_code == 200
