"""The control API lists orders, shows the details of each, and performs possible actions."""

from typing import Any

import pytest

from tests.support.driver import NOBODY, Sandbox, by, card, details, refused, violations
from tests.support.shop import Shop


def list_orders(sandbox: Sandbox, **query: Any) -> list[dict[str, Any]]:
    """Return the rows of the list."""
    items: list[dict[str, Any]] = sandbox.get("/control/orders/", params=query).json()["items"]
    return items


def read_overview(sandbox: Sandbox, order: dict[str, Any]) -> dict[str, Any]:
    """Return the details of an order."""
    overview: dict[str, Any] = sandbox.get(f"/control/orders/{order['id']}/").json()
    return overview


def test_orders_are_listed_newest_first(watched: Sandbox, shop: Shop) -> None:
    """Rows have the main facts of an order, and count its webhooks; refunds have no rows of their own."""
    customer = {"email_address": "ann@example.com"}
    first = watched.pay(watched.place(card(), merchant_order_id="shop-1", customer=customer))
    watched.settle()
    shop.answer = lambda received: 500
    second = watched.acted(watched.place(card(), amount=500), "customer visit")
    watched.settle()
    watched.post(f"/v1/orders/{first['id']}/refunds/", {"amount": 100})
    hosted = watched.place()
    rows = list_orders(watched)
    assert [row["id"] for row in rows] == [hosted["id"], second["id"], first["id"]]
    columns = ("merchant_order_id", "status", "amount", "payment_method", "customer")
    expected = ["shop-1", "completed", 1000, "credit-card", "ann@example.com"]
    assert [rows[2][name] for name in columns] == expected
    assert rows[0]["payment_method"] is None
    assert rows[1]["webhooks"] == {"pending": 1, "delivered": 0, "lost": 0, "failed": 0, "attempts": 1}
    assert rows[2]["webhooks"] == {"pending": 0, "delivered": 2, "lost": 0, "failed": 0, "attempts": 2}


def test_orders_are_found(sandbox: Sandbox) -> None:
    """The list can be filtered by status, method and text."""
    sandbox.pay(sandbox.place(card(), merchant_order_id="paid"))
    customer = {"email_address": "ann@example.com"}
    transfer = by("bank-transfer")
    sandbox.place(transfer, merchant_order_id="open", description="Wool socks", customer=customer)
    sandbox.place(merchant_order_id="hosted")
    queries: list[tuple[dict[str, Any], list[str]]] = [
        ({"status": "completed"}, ["paid"]),
        ({"method": "bank-transfer"}, ["open"]),
        ({"text": "ann@"}, ["open"]),
        ({"text": "wool"}, ["open"]),
        ({"status": "new", "limit": 1}, ["hosted"]),
    ]
    for query, expected in queries:
        assert [row["merchant_order_id"] for row in list_orders(sandbox, **query)] == expected, query


def test_an_overview_holds_what_belongs_to_an_order(watched: Sandbox) -> None:
    """The details have the decision, agenda, webhooks, refunds and pages of this order only."""
    watched.scenario({"when": {"refund": True}, "then": {"processor": "settles", "after": "PT1M"}})
    other = watched.place(card())
    order = watched.pay(watched.place(card()))
    refund = watched.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 100}).json()
    watched.settle()
    overview = read_overview(watched, order)
    assert overview["order"] == watched.read(order)
    assert overview["actions"]["merchant"] == [{"action": "refund", "amount_max": 900}]
    assert [decision["scenario"] for decision in overview["decisions"]] == ["of-the-test"]
    assert [(row["id"], row["actions"]["processor"]) for row in overview["refunds"]] == [
        (refund["id"], ["settle", "fail"])
    ]
    assert [(due["kind"], due["order_id"]) for due in overview["agenda"]] == [("action", refund["id"])]
    assert {webhook["order_id"] for webhook in overview["webhooks"]} == {order["id"], refund["id"]}
    (page,) = overview["pages"]
    assert order["id"] in page
    assert read_overview(watched, other)["agenda"][0]["order_id"] == other["id"]


def test_reading_has_no_side_effects(sandbox: Sandbox) -> None:
    """Reading adds no journal entry, triggers no fault and changes nothing."""
    order = sandbox.place(card())
    sandbox.put("/control/faults/", {"faults": [{"when": {"nth": 1}, "then": {"status": 503}}]})
    before = sandbox.get("/control/state/").json()
    for path in ("/control/orders/", f"/control/orders/{order['id']}/", "/control/timeline/"):
        assert sandbox.get(path).status_code == 200
    assert sandbox.get("/control/state/").json() == before
    assert sandbox.get("/control/journal/?count=1").json() == {"count": 1}
    refused(sandbox.get(f"/control/orders/{NOBODY}/"), 404, "NotFound")


def test_cards_and_codes_are_listed(sandbox: Sandbox) -> None:
    """Stored cards have no numbers, and QR requests have their scans."""
    sandbox.pay(sandbox.place(details(recurring_type="first"), amount=700))
    request = sandbox.post("/v1/bankqr/", {"amount": 500, "one_off": False}).json()
    sandbox.post(f"/control/bankqr/{request['id']}/scan/")
    (stored,) = sandbox.get("/control/cards/").json()["items"]
    assert (stored["use"], stored["amount"]) == ("recurring", 700)
    assert "number" not in stored["card"]
    (code,) = sandbox.get("/control/bankqr/").json()["items"]
    assert (code["id"], code["amount"], code["scans"]) == (request["id"], 500, 1)


@pytest.mark.rule("CTL-20")
def test_an_impossible_action_names_the_possible_ones(sandbox: Sandbox) -> None:
    """The error message and ``allowed`` name the possible actions; nothing changes."""
    order = sandbox.place(card())
    error = refused(sandbox.act(order, "bank credit"), 409, "ActionNotPossible")
    assert error["allowed"] == ["visit", "pay", "cancel", "fail"]
    assert "customer pay" in error["value"]
    assert sandbox.read(order) == order
    hosted = sandbox.place()
    assert refused(sandbox.act(hosted, "customer pay"), 409, "ActionNotPossible")["allowed"] == [
        "visit",
        "choose",
    ]


def test_a_choice_is_checked(sandbox: Sandbox) -> None:
    """A choice needs an available method and a listed issuer."""
    order = sandbox.place()
    assert set(violations(sandbox.act(order, "customer choose"))) == {"payment_method"}
    answer = sandbox.act(order, "customer choose", payment_method="bank-redirect-nl", issuer_id="NOBANK")
    assert set(violations(answer)) == {"issuer_id"}
    assert sandbox.read(order) == order
