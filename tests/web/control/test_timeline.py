"""The timeline lists all events, with causes before effects."""

from typing import Any

from tests.support.driver import NOBODY, Sandbox, by, card, refused
from tests.support.payer import Payer, payment_page
from tests.support.shop import Received, Shop


def read_timeline(
    sandbox: Sandbox, order: dict[str, Any] | None = None, **query: Any
) -> list[dict[str, Any]]:
    """Return the entries of the timeline."""
    if order is not None:
        query["order_id"] = order["id"]
    items: list[dict[str, Any]] = sandbox.get("/control/timeline/", params=query).json()["items"]
    return items


def summarize(items: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Return sender, receiver and label of each entry, without durations."""
    return [(item["from"], item["to"], item["label"].partition(" · ")[0]) for item in items]


def test_the_timeline_of_a_card_payment(watched: Sandbox, shop: Shop) -> None:
    """The timeline of a card payment has the request, customer, bank, statuses and webhooks."""

    def read_order(received: Received) -> int:
        watched.read(received.body["order_id"])
        return 204

    shop.answer = read_order
    order = watched.place(card())
    watched.settle()
    watched.pay(order)
    watched.settle()
    assert summarize(read_timeline(watched, order)) == [
        ("shop", "service", "POST /v1/orders/"),
        ("service", "service", "new"),
        ("service", "shop", "201"),
        ("customer", "bank", "pays"),
        ("bank", "service", "approved"),
        ("service", "service", "processing"),
        ("service", "service", "completed"),
        ("service", "shop", "webhook, attempt 1: processing"),
        ("shop", "service", "GET /v1/orders/…/"),
        ("service", "shop", "200"),
        ("shop", "service", "204"),
        ("service", "shop", "webhook, attempt 1: completed"),
        ("shop", "service", "GET /v1/orders/…/"),
        ("service", "shop", "200"),
        ("shop", "service", "204"),
    ]


def test_every_cause_comes_before_its_effect(watched: Sandbox, shop: Shop) -> None:
    """Each cause is in the list, before its effect."""
    shop.answer = lambda received: 500
    payer = Payer(watched)
    order = watched.place(by("wallet-web"))
    payer.press(payer.open(payment_page(order)), "pay")
    watched.settle()
    watched.advance("PT2M")
    watched.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 1})
    expiring = watched.place(card())
    watched.advance("P2D")
    items = read_timeline(watched)
    positions = {item["id"]: position for position, item in enumerate(items)}
    assert len(positions) == len(items), "ids are unique"
    for position, item in enumerate(items):
        assert item["cause"] is None or positions[item["cause"]] < position, item
    kinds = {item["cause"].partition("-")[0] for item in items if item["kind"] == "status"}
    assert kinds == {"request", "action", "event"}
    assert [item["label"] for item in read_timeline(watched, expiring) if item["kind"] == "agenda-event"] == [
        "expiry"
    ]


def test_retries_are_listed_with_their_responses(watched: Sandbox, shop: Shop) -> None:
    """Failed attempts are marked, and each retry has the previous attempt as its cause."""
    shop.answer = lambda received: 204 if len(shop.received) > 1 else 503
    order = watched.acted(watched.place(card()), "customer visit")
    watched.settle()
    watched.advance("PT2M")
    attempts = [item for item in read_timeline(watched, order) if item["kind"] == "webhook"]
    answers = [item for item in read_timeline(watched, order) if item["kind"] == "webhook-response"]
    assert [item["label"] for item in attempts] == [
        "webhook, attempt 1: processing",
        "webhook, attempt 2: processing",
    ]
    assert [(item["status"], item["failed"]) for item in answers] == [(503, True), (204, False)]
    assert attempts[1]["cause"] == attempts[0]["id"]
    assert attempts[1]["at"] > attempts[0]["at"]


def test_a_refusal_names_its_rule(sandbox: Sandbox) -> None:
    """The response's entry names the rule."""
    order = sandbox.place(card())
    sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 5})
    response = read_timeline(sandbox, order)[-1]
    assert (response["label"], response["rule"], response["failed"]) == ("409 SET-49", "SET-49", True)


def test_the_timeline_can_be_limited_to_one_order(watched: Sandbox) -> None:
    """The timeline covers one order with its refunds, all orders or the newest entries."""
    order, other = watched.pay(watched.place(card())), watched.place(card())
    refund = watched.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 5}).json()
    watched.settle()
    ids = {item["order_id"] for item in read_timeline(watched, order)}
    assert ids == {order["id"], refund["id"]}
    assert {item["order_id"] for item in read_timeline(watched)} == {*ids, other["id"]}
    assert read_timeline(watched, limit=3) == read_timeline(watched)[-3:]
    refused(watched.get("/control/timeline/", params={"order_id": NOBODY}), 404, "NotFound")


def test_a_report_has_the_timeline_and_the_findings(watched: Sandbox) -> None:
    """The report covers one order with its refunds or all orders, with findings."""
    order, other = watched.pay(watched.place(card())), watched.place(card())
    refused_refund = watched.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 9999}).json()
    watched.settle()
    report = watched.get("/control/report/", params={"order_id": order["id"]}).json()["text"]
    assert f"order {order['id']} is completed" in report
    assert f"  {refused_refund['error']['type']}: {refused_refund['error']['value']}" in report
    assert "\nreview: " in report
    assert other["id"] not in report
    whole = watched.get("/control/report/").json()["text"]
    assert set(report.splitlines()) <= set(whole.splitlines())
    assert f"order {other['id']} is new" in whole
    refused(watched.get("/control/report/", params={"order_id": NOBODY}), 404, "NotFound")
