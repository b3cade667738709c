"""The timeline lists all events, with causes before effects."""

from typing import Any

from tests.support.driver import NOBODY, Sandbox, by, card, refused
from tests.support.payer import Payer, payment_page
from tests.support.shop import Shop


def read_timeline(
    sandbox: Sandbox, order: dict[str, Any] | None = None, **query: Any
) -> list[dict[str, Any]]:
    """Return the entries of the timeline."""
    if order is not None:
        query["order_id"] = order["id"]
    items: list[dict[str, Any]] = sandbox.get("/control/timeline/", params=query).json()["items"]
    return items


def test_every_cause_comes_before_its_effect(watched: Sandbox, shop: Shop) -> None:
    """Each cause is in the list, before its effect; a failed attempt is marked, and the cause of its retry."""
    shop.answer = lambda received: 204 if len(shop.received) > 2 else 503
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
    ended = read_timeline(watched, expiring)
    assert [item["label"] for item in ended if item["kind"] == "agenda-event"] == ["expiry"]
    attempts = [item for item in read_timeline(watched, order) if item["label"].endswith(": processing")]
    answers = [item for item in read_timeline(watched, order) if item["kind"] == "webhook-response"]
    assert [item["label"] for item in attempts] == [
        f"webhook, attempt {number}: processing" for number in (1, 2)
    ]
    assert (attempts[1]["cause"], attempts[1]["at"] > attempts[0]["at"]) == (attempts[0]["id"], True)
    assert [(each["status"], each["failed"]) for each in answers][:3] == [(503, True)] * 2 + [(204, False)]


def test_timeline_and_report_can_be_limited_to_one_order(watched: Sandbox) -> None:
    """They cover one order with its refunds or all orders; a refusal names its rule, and the report has findings."""
    order, other = watched.pay(watched.place(card())), watched.place(card())
    path = f"/v1/orders/{order['id']}/refunds/"
    refund = watched.post(path, {"amount": 5}).json()
    refusal = refused(watched.post(path, {"amount": 9999}), 409, "RefundExceedsCaptured")
    watched.settle()
    items = read_timeline(watched, order)
    assert {item["order_id"] for item in items} == {order["id"], refund["id"]}
    assert {item["order_id"] for item in read_timeline(watched)} == {order["id"], refund["id"], other["id"]}
    assert read_timeline(watched, limit=3) == read_timeline(watched)[-3:]
    (response,) = [item for item in items if item.get("rule")]
    assert (response["label"], response["rule"], response["failed"]) == ("409 SET-49", "SET-49", True)
    report = watched.get("/control/report/", params={"order_id": order["id"]}).json()["text"]
    assert f"order {order['id']} is completed" in report
    assert f"  {refusal['type']}: {refusal['value']}" in report
    assert "\nreview: " in report
    assert other["id"] not in report
    whole = watched.get("/control/report/").json()["text"]
    assert set(report.splitlines()) <= set(whole.splitlines())
    assert f"order {other['id']} is new" in whole
    for name in ("timeline", "report"):
        answer = watched.get(f"/control/{name}/", params={"order_id": NOBODY})
        refused(answer, 404, "NotFound")
