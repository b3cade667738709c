"""Listing orders, and everything about one of them."""

from typing import Any

import pytest

from tests.support.driver import NOBODY, Sandbox, by, card, refused
from tests.support.payer import Payer, payment_page


def listed(sandbox: Sandbox, **query: Any) -> list[dict[str, Any]]:
    """The rows."""
    items: list[dict[str, Any]] = sandbox.get("/control/orders/", params=query).json()["items"]
    return items


def overview(sandbox: Sandbox, order: dict[str, Any]) -> dict[str, Any]:
    """Everything about an order."""
    found: dict[str, Any] = sandbox.get(f"/control/orders/{order['id']}/").json()
    return found


def test_orders_are_listed_newest_first(sandbox: Sandbox) -> None:
    """With the facts that tell one from another; refunds belong to their order."""
    customer = {"email_address": "ann@example.com"}
    first = sandbox.pay(sandbox.place(card(), merchant_order_id="shop-1", customer=customer))
    sandbox.post(f"/v1/orders/{first['id']}/refunds/", {"amount": 100})
    second = sandbox.place(amount=500)
    rows = listed(sandbox)
    assert [row["id"] for row in rows] == [second["id"], first["id"]]
    told = ("merchant_order_id", "status", "amount", "payment_method", "customer")
    assert [rows[1][name] for name in told] == ["shop-1", "completed", 1000, "credit-card", "ann@example.com"]
    assert rows[0]["payment_method"] is None


def test_webhooks_are_summed_up(watched: Sandbox, shop: Any) -> None:
    """By their state."""
    watched.pay(watched.place(card()))
    watched.settle()
    shop.answer = lambda received: 500
    watched.acted(watched.place(card()), "customer visit")
    watched.settle()
    failing, paid = listed(watched)
    assert failing["webhooks"] == {"pending": 1, "delivered": 0, "lost": 0, "failed": 0, "attempts": 1}
    assert paid["webhooks"] == {"pending": 0, "delivered": 2, "lost": 0, "failed": 0, "attempts": 2}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"status": "completed"}, ["paid"]),
        ({"status": "expired"}, []),
        ({"method": "bank-transfer"}, ["open"]),
        ({"text": "PAI"}, ["paid"]),
        ({"text": "ann@"}, ["open"]),
        ({"text": "wool"}, ["open"]),
        ({"text": "completed"}, ["paid"]),
        ({"text": "nothing like it"}, []),
        ({"limit": 1}, ["hosted"]),
        ({"status": "new", "limit": 1}, ["hosted"]),
    ],
)
def test_orders_are_found(sandbox: Sandbox, query: dict[str, Any], found: list[str]) -> None:
    """By status, method, and any text in them."""
    sandbox.pay(sandbox.place(card(), merchant_order_id="paid"))
    sandbox.place(
        by("bank-transfer"),
        merchant_order_id="open",
        description="Wool socks",
        customer={"email_address": "ann@example.com"},
    )
    sandbox.place(merchant_order_id="hosted")
    assert [row["merchant_order_id"] for row in listed(sandbox, **query)] == found


def test_pages_follow_each_other(sandbox: Sandbox) -> None:
    """None is shown twice, and new orders move nothing."""
    ids = [sandbox.place(amount=cents)["id"] for cents in range(1, 8)]
    seen: list[str] = []
    while page := listed(sandbox, limit=3, **({"before": seen[-1]} if seen else {})):
        seen += [row["id"] for row in page]
        sandbox.place(amount=99)
    assert seen == ids[::-1]
    error = refused(sandbox.get("/control/orders/", params={"before": NOBODY}), 400, "ValidationError")
    assert error["violations"][0]["path"] == "before"


def test_an_overview_says_what_is_possible(sandbox: Sandbox) -> None:
    """By actor, and with limits for the merchant."""
    order = sandbox.place(card())
    assert overview(sandbox, order)["actions"] == {
        "customer": ["visit", "pay", "cancel", "fail"],
        "bank": [],
        "screening": [],
        "processor": [],
        "merchant": [{"action": "cancel", "amount_max": None}],
    }
    held = sandbox.authorized()
    sandbox.take(held, "captures/amount", {"amount": 500})
    assert overview(sandbox, held)["actions"]["merchant"] == [
        {"action": "capture", "amount_max": 1500},
        {"action": "void", "amount_max": 1500},
        {"action": "refund", "amount_max": 500},
    ]


def test_every_possible_action_can_be_done(sandbox: Sandbox) -> None:
    """What the overview offers, the act call takes; what it does not, it refuses."""
    order = sandbox.place(amount=500)
    possible = overview(sandbox, order)["actions"]
    assert sandbox.act(order, "customer choose", payment_method="wallet-web").status_code == 200
    assert possible["customer"] == ["visit", "choose"]
    sandbox.pay(order)
    assert overview(sandbox, order)["actions"]["customer"] == []
    assert sandbox.act(order, "customer pay").status_code == 409


def test_an_overview_holds_what_belongs_to_an_order(watched: Sandbox) -> None:
    """Rule, agenda, webhooks, refunds and pages; of this order only."""
    watched.scenario({"when": {"refund": True}, "then": {"processor": "settles", "after": "PT1M"}})
    other = watched.place(card())
    order = watched.pay(watched.place(card()))
    refund = watched.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 100}).json()
    watched.settle()
    found = overview(watched, order)
    assert found["order"] == watched.read(order)
    assert [decision["scenario"] for decision in found["decisions"]] == ["of-the-test"]
    assert [(row["id"], row["actions"]["processor"]) for row in found["refunds"]] == [
        (refund["id"], ["settle", "fail"])
    ]
    assert [(due["kind"], due["order_id"]) for due in found["agenda"]] == [("action", refund["id"])]
    assert {webhook["order_id"] for webhook in found["webhooks"]} == {order["id"], refund["id"]}
    (page,) = found["pages"]
    assert order["id"] in page
    assert overview(watched, other)["agenda"][0]["order_id"] == other["id"]


def test_looking_leaves_no_trace(sandbox: Sandbox) -> None:
    """No journal entry, no fault used, nothing changed."""
    order = sandbox.place(card())
    sandbox.put("/control/faults/", {"faults": [{"when": {"nth": 1}, "then": {"status": 503}}]})
    before = sandbox.get("/control/state/").json()
    for path in ("/control/orders/", f"/control/orders/{order['id']}/", "/control/timeline/"):
        assert sandbox.get(path).status_code == 200
    assert sandbox.get("/control/state/").json() == before
    assert sandbox.get("/control/journal/?count=1").json() == {"count": 1}
    refused(sandbox.get(f"/control/orders/{NOBODY}/"), 404, "NotFound")


def test_rules_are_counted(sandbox: Sandbox) -> None:
    """While their scenario is active."""
    rule = {"when": {"amount": 5}, "then": {"customer": "pays"}}
    sandbox.scenario({"when": {"amount": 4}, "then": {"customer": "fails"}}, rule)
    sandbox.place(card(), amount=5)
    found = sandbox.get("/control/scenarios/of-the-test/").json()
    assert [(rule["rule"], rule["uses"]) for rule in found["rules"]] == [(0, 0), (1, 1)]
    assert (found["is_active"], found["rules"][1]["then"]) == (True, {"customer": "pays"})
    ready = sandbox.get("/control/scenarios/second-try-works/").json()
    assert (ready["is_active"], {rule["uses"] for rule in ready["rules"]}) == (False, {0})
    refused(sandbox.get("/control/scenarios/no-such/"), 404, "NotFound")


def test_stored_cards_and_codes_are_listed(sandbox: Sandbox) -> None:
    """Without card numbers."""
    details = {"recurring_type": "first"}
    sandbox.pay(sandbox.place(card(payment_method_details=details), amount=700))
    asked = sandbox.post("/v1/bankqr/", {"amount": 500, "one_off": False}).json()
    sandbox.post(f"/control/bankqr/{asked['id']}/scan/")
    (stored,) = sandbox.get("/control/cards/").json()["items"]
    assert (stored["use"], stored["amount"]) == ("recurring", 700)
    assert "number" not in stored["card"]
    (code,) = sandbox.get("/control/bankqr/").json()["items"]
    assert (code["id"], code["amount"], code["scans"]) == (asked["id"], 500, 1)


def test_actions_say_who_did_what_and_how(sandbox: Sandbox) -> None:
    """By a page, a control call, or a scenario."""
    payer = Payer(sandbox)
    paid = sandbox.place(by("wallet-web"))
    payer.press(payer.open(payment_page(paid)), "pay")
    failed = sandbox.place(card())
    sandbox.acted(failed, "customer fail", reason="Do not honour")
    planned = sandbox.place(card(), customer={"email_address": "pays@example.com"})
    sandbox.advance("PT10S")
    items = sandbox.get("/control/actions/").json()["items"]
    told = [(taken["actor"], taken["action"], taken["via"], taken["order_id"]) for taken in items]
    assert told == [
        ("customer", "visit", "page", paid["id"]),
        ("customer", "pay", "page", paid["id"]),
        ("customer", "fail", "control", failed["id"]),
        ("customer", "pay", "scenario", planned["id"]),
    ]
    assert items[2]["how"] == {"reason": "Do not honour"}
    assert items[2]["transaction_id"] == failed["transactions"][0]["id"]
    (only,) = sandbox.get("/control/actions/", params={"order_id": failed["id"]}).json()["items"]
    assert only == items[2]
    page = sandbox.get("/control/actions/", params={"limit": 1, "before": items[2]["id"]}).json()["items"]
    assert page == [items[1]]
