"""Webhooks: content, triggers and addresses."""

from collections.abc import Callable

import pytest

from tests.support.driver import Sandbox, by, card
from tests.support.shop import Shop


@pytest.mark.rule("HOOK-01", "HOOK-03", "HOOK-05", "HOOK-06", "HOOK-07", "HOOK-08", "AUTH-03")
def test_a_webhook_says_which_order_and_nothing_else(watched: Sandbox, shop: Shop) -> None:
    """A webhook is a POST with three JSON fields, without status or credentials."""
    order = watched.place(card())
    watched.acted(order, "customer visit")
    watched.settle()
    (received,) = shop.received
    assert received.headers["Content-Type"] == "application/json"
    assert received.body == {
        "event": "status_changed",
        "order_id": order["id"],
        "project_id": order["project_id"],
    }
    assert "Authorization" not in received.headers
    assert received.path == "/webhook"


@pytest.mark.rule("HOOK-02", "A32")
def test_every_change_of_an_orders_status_is_sent(watched: Sandbox, shop: Shop) -> None:
    """A payment without a visit makes two changes: a visit and a payment."""
    order = watched.place(card())
    watched.pay(order)
    watched.settle()
    assert shop.orders() == [order["id"]] * 2
    assert [webhook["status"] for webhook in watched.webhooks()] == ["processing", "completed"]
    watched.put(f"/v1/orders/{order['id']}/", {"description": "no change of status"})
    watched.settle()
    assert len(shop.received) == 2


@pytest.mark.rule("SET-55", "HOOK-02")
def test_a_creation_sends_one_unless_the_order_is_new(watched: Sandbox, shop: Shop) -> None:
    """Processing, accepted and cancelled orders send one webhook, new orders none."""
    orders = [
        watched.place(card()),
        watched.place(),
        watched.place(by("bank-transfer")),
        watched.place_with_lines("invoice-later-b"),
        watched.place_with_lines("pay-later-a", amount=66601),
    ]
    watched.settle()
    assert shop.orders() == [order["id"] for order in orders[2:]]


@pytest.mark.rule("HOOK-04", "ORD-10")
def test_an_orders_address_beats_the_projects_for_that_order(watched: Sandbox, shop: Shop) -> None:
    """Other orders use the project's address; an updated address takes effect, too."""
    own = watched.place(card(), webhook_url=f"{shop.url}/own")
    other, updated = watched.place(card()), watched.place(card())
    watched.put(f"/v1/orders/{updated['id']}/", {"webhook_url": f"{shop.url}/new"})
    for order in (own, other, updated):
        watched.acted(order, "customer visit")
    watched.settle()
    assert [received.path for received in shop.received] == ["/webhook/own", "/webhook", "/webhook/new"]


@pytest.mark.rule("HOOK-13", "SEPA-02")
def test_a_transfer_reports_by_webhook(project: Callable[..., Sandbox], shop: Shop) -> None:
    """The webhook of a later credit is sent at the time of the credit."""
    live = project(mode="live", webhook_url=shop.url)
    live.scenario({"then": {"credit": {"after": "P2D"}}})
    order = live.place(by("bank-transfer"))
    live.advance("P3D")
    assert shop.orders() == [order["id"]] * 2
    assert live.webhooks()[-1]["attempts"][0]["at"] == "2026-03-03T12:00:00.000000+00:00"


@pytest.mark.rule("CTL-21")
def test_webhooks_can_be_filtered(watched: Sandbox, shop: Shop) -> None:
    """Filters are order and state; an unknown state is refused."""
    first, second = watched.place(by("bank-transfer")), watched.place(by("bank-transfer"))
    watched.settle()
    shop.answer = lambda received: 500
    third = watched.place(by("bank-transfer"))
    watched.settle()
    assert [item["order_id"] for item in watched.webhooks()] == [first["id"], second["id"], third["id"]]
    assert [item["order_id"] for item in watched.webhooks(order_id=second["id"])] == [second["id"]]
    assert [item["order_id"] for item in watched.webhooks(state="pending")] == [third["id"]]
    assert watched.webhooks(state="failed") == []
    assert watched.webhooks(state="pending", order_id=second["id"]) == []
    assert watched.get("/control/webhooks/?state=gone").status_code == 400


@pytest.mark.rule("CTL-21")
def test_an_attempt_records_what_was_sent_and_answered(watched: Sandbox, shop: Shop) -> None:
    """An attempt records headers, body, response and both times."""
    order = watched.place(by("bank-transfer"))
    watched.settle()
    (attempt,) = watched.webhooks()[0]["attempts"]
    assert order["id"] in attempt["request"]["body"]
    assert attempt["request"]["headers"]["Content-Type"] == "application/json"
    assert attempt["response"] == {"status": 200, "body": "noted"}
    assert attempt["at"] == "2026-03-01T12:00:00.000000+00:00"
    assert attempt["real_at"] > "2026"
    assert attempt["duration_ms"] > 0
