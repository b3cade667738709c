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
Course = list[tuple[str, str, int]]
COURSES: list[tuple[str, str, Course]] = [
    # scenario, method, and what follows: a period, the order's status and the number of received webhooks
    ("webhook-before-response", "bank-transfer", [("", "processing", 1)]),
    ("webhook-twice", "credit-card", [("PT10S", "completed", 4)]),
    ("webhook-late", "credit-card", [("PT30M", "completed", 1), ("PT31M", "completed", 2)]),
    ("webhook-lost", "credit-card", [("P1D", "completed", 0)]),
    ("transfer-late", "bank-transfer", [("P30D", "expired", 2), ("P1D", "completed", 3)]),
    ("customer-walks-away", "credit-card", [("PT5S", "processing", 1), ("P1D", "expired", 2)]),
]
CREATIONS = [("service-unavailable", [503, 503, 201]), ("rate-limited", [*[201] * 5, 429])]
REFUNDS = [("refund-fails-later", "P2D", "error"), ("refund-settles-later", "PT47H", "completed")]


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
    assert names - {"default"} <= {*played, *(row[0] for row in (*COURSES, *CREATIONS, *REFUNDS))}
    assert names == catalogue().scenarios.keys()


@pytest.mark.parametrize(
    ("name", "method", "course"), COURSES, ids=lambda part: part if isinstance(part, str) else ""
)
def test_an_order_takes_the_course_of_its_scenario(
    play: Play, shop: Shop, name: str, method: str, course: Course
) -> None:
    """The order has these statuses as time passes, and so many webhooks have arrived."""
    sandbox = play(name)
    order = sandbox.place(by(method))
    for period, status, count in course:
        if period:
            sandbox.advance(period)
        assert (sandbox.read(order)["status"], len(shop.received)) == (status, count)


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


@pytest.mark.parametrize(("name", "statuses"), CREATIONS)
def test_creations_are_refused(play: Play, name: str, statuses: list[int]) -> None:
    """Successive creations have these statuses; refused ones create nothing, and a second later one succeeds."""
    sandbox = play(name)
    assert [sandbox.create(card()).status_code for _ in statuses] == statuses
    assert len(sandbox.get("/control/orders/").json()["items"]) == statuses.count(201)
    sandbox.advance("PT1S")
    assert sandbox.create(card()).status_code == 201


@pytest.mark.parametrize(("name", "period", "status"), REFUNDS)
def test_a_refund_ends_later(play: Play, name: str, period: str, status: str) -> None:
    """The refund is in progress for this period; the amount of one that fails can be refunded again."""
    sandbox = play(name)
    order = sandbox.pay(sandbox.place(card()))
    refund = sandbox.post(f"/v1/orders/{order['id']}/refunds/", {}).json()
    sandbox.advance(period)
    assert sandbox.read(refund)["status"] == "processing"
    sandbox.advance("P1D" if status == "error" else "PT1H")
    assert sandbox.read(refund)["status"] == status
    again = sandbox.post(f"/v1/orders/{order['id']}/refunds/", {})
    assert (again.status_code == 201) is (status == "error")


def test_the_second_try_works(play: Play, shop: Shop) -> None:
    """The first payment is declined, the second succeeds, and the first attempt of each webhook is lost."""
    sandbox = play("second-try-works")
    first, second = sandbox.place(card()), sandbox.place(card())
    sandbox.advance("PT1M")
    assert (sandbox.read(first)["status"], sandbox.read(second)["status"]) == ("error", "completed")
    assert shop.received == []
    sandbox.advance("PT2M")
    assert {item["state"] for item in sandbox.webhooks()} == {"delivered"}


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


def test_a_transfer_has_the_wrong_sum(play: Play) -> None:
    """A transfer below the amount leaves the order pending; a credit of the rest completes it."""
    sandbox = play("transfer-wrong-sum")
    order = sandbox.place(by("bank-transfer"), amount=1000)
    sandbox.advance("P3D")
    assert sandbox.status(order) == ("processing", "pending")
    assert sandbox.acted(order, "bank credit", amount=1)["status"] == "completed"


def test_an_order_is_paid_twice(play: Play) -> None:
    """The transfer that was given up arrives after the card has paid."""
    sandbox = play("paid-twice")
    order = sandbox.place(amount=1000)
    for method in ("bank-transfer", "credit-card"):
        sandbox.acted(order, "customer choose", payment_method=method)
    sandbox.advance("PT1M")
    assert sandbox.read(order)["status"] == "completed"
    sandbox.advance("P2D")
    assert sandbox.read(order, "amount_details")["amount_details"]["received"] == 2000


def test_a_screening_needs_two_days(play: Play) -> None:
    """The order is processing during the screening; then the customer authorizes it."""
    sandbox = play("screening-two-days")
    order = sandbox.place_with_lines("pay-later-a", expiration_period="P3D")
    sandbox.advance("P1D")
    assert sandbox.status(order) == ("processing", "pending")
    sandbox.advance("P1D")
    assert sandbox.read(order)["transactions"][0]["is_capturable"] is True


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
