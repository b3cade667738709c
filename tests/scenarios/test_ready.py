"""Every ready scenario, activated by one call, over real HTTP with a real receiver."""

from collections.abc import Callable
from types import FunctionType
from typing import Any

import pytest
import requests

from tests.support.driver import Sandbox, by, card, details, refused
from tests.support.projects import catalogue
from tests.support.shop import Received, Shop

Play = Callable[[str], Sandbox]


@pytest.fixture
def play(watched: Sandbox) -> Play:
    """Activate a ready scenario in a project with a shop."""

    def switch(name: str) -> Sandbox:
        answer = watched.put("/control/scenario/", {"name": name})
        assert answer.status_code == 200, answer.text
        return watched

    return switch


@pytest.mark.rule("CTL-18", "SCN-08")
def test_every_ready_scenario_has_a_description_and_a_test(sandbox: Sandbox) -> None:
    """There are twelve ready scenarios at least, each with a sentence and a test in this file."""
    items = sandbox.get("/control/scenarios/").json()["items"]
    names = {item["name"] for item in items}
    assert len(names - {"default"}) >= 12
    assert all(item["description"].endswith((".", "?")) for item in items)
    played = {
        word
        for test in globals().values()
        if isinstance(test, FunctionType)
        for word in test.__code__.co_consts
    }
    assert names - {"default"} <= played
    assert names == catalogue().scenarios.keys()


def test_the_second_try_works(play: Play, shop: Shop) -> None:
    """The first payment is declined, the second succeeds, and the first attempt of each webhook is lost."""
    sandbox = play("second-try-works")
    first, second = sandbox.place(card()), sandbox.place(card())
    sandbox.advance("PT1M")
    assert (sandbox.read(first)["status"], sandbox.read(second)["status"]) == ("error", "completed")
    assert shop.received == []
    sandbox.advance("PT2M")
    assert {item["state"] for item in sandbox.webhooks()} == {"delivered"}


def test_a_webhook_comes_before_the_response(play: Play, shop: Shop) -> None:
    """The webhook of a creation arrives before the response."""
    sandbox = play("webhook-before-response")
    order = sandbox.place(by("bank-transfer"))
    assert shop.orders() == [order["id"]]


def test_webhooks_come_twice_at_the_same_moment(play: Play, shop: Shop) -> None:
    """Each webhook is delivered twice, and the second copy arrives while the shop handles the first."""
    from threading import Barrier

    both_received = Barrier(2)

    def answer_both(received: Received) -> int:
        both_received.wait(4)
        return 200

    shop.answer = answer_both
    sandbox = play("webhook-twice")
    order = sandbox.place(card())
    sandbox.advance("PT10S")
    assert shop.orders() == [order["id"]] * 4
    assert {item["state"] for item in sandbox.webhooks()} == {"delivered"}


def test_webhooks_are_swapped(play: Play, shop: Shop) -> None:
    """The webhook of ``processing`` arrives last, and both webhooks find the order completed."""
    statuses: list[str] = []
    sandbox = play("webhooks-swapped")

    def read_back(received: Received) -> int:
        statuses.append(sandbox.read(received.body["order_id"])["status"])
        return 200

    shop.answer = read_back
    sandbox.place(card())
    sandbox.advance("PT10S")
    first, second = sandbox.webhooks()
    assert first["attempts"][0]["real_at"] > second["attempts"][0]["real_at"]
    assert statuses == ["completed", "completed"]


def test_a_webhook_is_late(play: Play, shop: Shop) -> None:
    """The order is paid after ten seconds, and its webhook arrives after an hour."""
    sandbox = play("webhook-late")
    order = sandbox.place(card())
    sandbox.advance("PT30M")
    assert (sandbox.read(order)["status"], len(shop.received)) == ("completed", 1)
    sandbox.advance("PT31M")
    assert len(shop.received) == 2


def test_webhooks_are_lost(play: Play, shop: Shop) -> None:
    """The order is paid, and no webhook arrives."""
    sandbox = play("webhook-lost")
    order = sandbox.place(card())
    sandbox.advance("P1D")
    assert (sandbox.read(order)["status"], shop.received) == ("completed", [])


def test_a_shop_is_down(play: Play, shop: Shop) -> None:
    """Ten deliveries fail; a manual redelivery succeeds once the shop is reachable."""
    sandbox = play("shop-down-for-an-hour")
    sandbox.place(card())
    sandbox.advance("PT1H")
    failed = sandbox.webhooks(state="failed")
    assert [len(item["attempts"]) for item in failed] == [10, 10]
    sandbox.delete("/control/scenario/")
    sandbox.post(f"/control/webhooks/{failed[0]['id']}/redeliver/")
    assert len(shop.received) == 1


def test_a_create_response_is_lost(play: Play) -> None:
    """The connection is reset although the order is created; the journal has its id."""
    sandbox = play("lost-create-response")
    with pytest.raises(requests.ConnectionError):
        sandbox.create(card(), merchant_order_id="once")
    (entry,) = sandbox.get("/control/journal/").json()["items"]
    assert entry["fault"] == {"reset": True, "phase": "after"}
    assert sandbox.read(entry["order_id"])["merchant_order_id"] == "once"
    assert sandbox.create(card()).status_code == 201


def test_the_service_is_unavailable(play: Play) -> None:
    """Two creations are refused with 503; the third succeeds."""
    sandbox = play("service-unavailable")
    for _ in range(2):
        refused(sandbox.create(card()), 503, "ServiceUnavailable")
    assert sandbox.agenda() == []
    assert sandbox.create(card()).status_code == 201


def test_requests_are_rate_limited(play: Play) -> None:
    """The sixth creation within a second is refused; a second later creations succeed again."""
    sandbox = play("rate-limited")
    assert [sandbox.create(card()).status_code for _ in range(6)] == [201] * 5 + [429]
    sandbox.advance("PT1S")
    assert sandbox.create(card()).status_code == 201


def test_a_transfer_is_late(play: Play) -> None:
    """A transfer that arrives a day after expiry completes the order."""
    sandbox = play("transfer-late")
    order = sandbox.place(by("bank-transfer"))
    sandbox.advance("P30D")
    assert sandbox.read(order)["status"] == "expired"
    sandbox.advance("P1D")
    assert sandbox.read(order)["status"] == "completed"


def test_a_transfer_has_the_wrong_sum(play: Play) -> None:
    """A transfer below the amount leaves the order pending; a credit of the rest completes it."""
    sandbox = play("transfer-wrong-sum")
    order = sandbox.place(by("bank-transfer"), amount=1000)
    sandbox.advance("P3D")
    assert sandbox.status(order) == ("processing", "pending")
    assert sandbox.acted(order, "bank credit", amount=1)["status"] == "completed"


def test_a_screening_needs_two_days(play: Play) -> None:
    """The order is processing during the screening; then the customer authorizes it."""
    sandbox = play("screening-two-days")
    order = sandbox.place_with_lines("pay-later-a", expiration_period="P3D")
    sandbox.advance("P1D")
    assert sandbox.status(order) == ("processing", "pending")
    sandbox.advance("P1D")
    assert sandbox.read(order)["transactions"][0]["is_capturable"] is True


def test_a_customer_walks_away(play: Play) -> None:
    """The customer opens the payment page after five seconds, and the order expires."""
    sandbox = play("customer-walks-away")
    order = sandbox.place(card())
    sandbox.advance("PT5S")
    assert sandbox.status(order) == ("processing", "processing")
    sandbox.advance("P1D")
    assert sandbox.status(order) == ("expired", "expired")


def test_an_authorization_runs_out(play: Play) -> None:
    """A capture after the authorization has expired is refused."""
    sandbox = play("authorization-runs-out")
    order = sandbox.place(card(capture_mode="manual", expiration_period="P7D"))
    sandbox.advance("P8D")
    refused(sandbox.take(order, "captures"), 409, "AuthorizationExpired")


def test_a_delayed_capture_with_a_partial_void(play: Play) -> None:
    """A line is voided before the delayed capture, which captures the rest."""
    sandbox = play("delayed-capture-partial-void")
    order = sandbox.place_with_lines("credit-card", capture_mode="delayed", expiration_period="P7D")
    sandbox.advance("P1D")
    lines = {"order_lines": [{"merchant_order_line_id": "socks", "quantity": 1}]}
    assert sandbox.take(order, "voids/orderlines", lines).status_code == 200
    sandbox.advance("P7D")
    amounts = sandbox.read(order, "amount_details")["amount_details"]
    assert (amounts["captured"], amounts["voided"]) == (1500, 500)


def test_a_refund_fails_later(play: Play) -> None:
    """A refund fails three days after its creation, and its amount can be refunded again."""
    sandbox = play("refund-fails-later")
    order = sandbox.pay(sandbox.place(card()))
    record = sandbox.post(f"/v1/orders/{order['id']}/refunds/", {}).json()
    sandbox.advance("P2D")
    assert sandbox.read(record)["status"] == "processing"
    sandbox.advance("P1D")
    assert sandbox.read(record)["status"] == "error"
    assert sandbox.post(f"/v1/orders/{order['id']}/refunds/", {}).status_code == 201


def test_a_refund_settles_later(play: Play) -> None:
    """A refund completes two days after its creation."""
    sandbox = play("refund-settles-later")
    order = sandbox.pay(sandbox.place(card()))
    record = sandbox.post(f"/v1/orders/{order['id']}/refunds/", {}).json()
    assert record["status"] == "processing"
    sandbox.advance("P2D")
    assert sandbox.read(record)["status"] == "completed"


def test_a_recurring_payment_is_declined(play: Play) -> None:
    """The customer pays the first payment; the next one fails a day later."""
    sandbox = play("recurring-declined")
    first = sandbox.place(details(recurring_type="first"))
    sandbox.advance("PT1M")
    attempt: dict[str, Any] = sandbox.read(first)["transactions"][0]
    token = attempt["payment_method_details"]["vault_token"]
    order = sandbox.place(details(recurring_type="recurring", vault_token=token))
    sandbox.advance("P1D")
    assert sandbox.status(order) == ("error", "error")
