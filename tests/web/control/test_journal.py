"""The journal of calls is filtered and counted."""

import pytest

from tests.support.driver import START, Sandbox, card


@pytest.mark.rule("CTL-25")
def test_the_journal_can_be_filtered_and_counted(sandbox: Sandbox) -> None:
    """By method, path, status and order; the final slash does not matter."""
    order = sandbox.place(card())
    sandbox.read(order)
    sandbox.create(amount=0)
    items = sandbox.get("/control/journal/").json()["items"]
    assert [(item["method"], item["path"], item["status"]) for item in items] == [
        ("POST", "/v1/orders/", 201),
        ("GET", f"/v1/orders/{order['id']}/", 200),
        ("POST", "/v1/orders/", 400),
    ]
    assert items[0]["at"] == START
    assert items[0]["order_id"] == order["id"]
    assert items[0]["request"]["transactions"] == [{"payment_method": "credit-card"}]
    assert items[0]["response"] == order
    assert items[1]["request"] is None

    def count(query: str) -> int:
        found: int = sandbox.get(f"/control/journal/?count=1&{query}").json()["count"]
        return found

    assert [count("method=GET"), count("path=/v1/orders"), count("status=400")] == [1, 2, 1]
    assert count(f"order_id={order['id']}") == 2
    assert count(f"order_id={order['id']}&method=GET&path=/v1/orders/{order['id']}") == 1


def test_the_journal_names_the_rule_of_a_refusal(sandbox: Sandbox) -> None:
    """By its id in the ledger."""
    order = sandbox.place(card(capture_mode="manual"))
    sandbox.take(order, "captures")
    assert sandbox.get("/control/journal/?status=409").json()["items"][0]["rule"] == "CAP-02"
