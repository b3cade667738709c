"""Orders and attempts expire after their periods."""

from typing import Any

import pytest

from tests.support.driver import Sandbox, card, violations


@pytest.mark.rule("ORD-11", "SET-21", "TRQ-03")
@pytest.mark.parametrize(
    "period",
    ["", "P", "PT", "30M", "PT0S", "P0D", "-PT30M", "PT-5M", "P1.5DT1H", "P1.5M", "pt5m", 30, None, "PT5M "],
)
def test_a_period_is_an_iso_8601_duration_above_zero(sandbox: Sandbox, period: Any) -> None:
    """Negative, zero and misspelled periods are refused in orders and in transactions."""
    answer = sandbox.create(card(expiration_period=period), expiration_period=period)
    assert set(violations(answer)) == {"expiration_period", "transactions[0].expiration_period"}


@pytest.mark.rule("SET-20", "TX-08")
@pytest.mark.parametrize("period", ["PT60M", "PT1H", "P7D", "P1W", "P1M", "P1Y2M3DT4H5M6S", "PT0.5S"])
def test_periods_keep_their_spelling(sandbox: Sandbox, period: str) -> None:
    """Periods are not normalized: PT60M is returned as PT60M."""
    order = sandbox.place(card(expiration_period=period), expiration_period=period)
    assert order["expiration_period"] == period
    assert order["transactions"][0]["expiration_period"] == period


@pytest.mark.rule("ORD-12", "SET-35", "A12")
def test_a_hosted_page_expires_after_the_orders_period(sandbox: Sandbox) -> None:
    """The page is open until one second before its expiry."""
    order = sandbox.place(expiration_period="PT90M")
    sandbox.advance("PT89M59S")
    assert sandbox.read(order)["status"] == "new"
    events = sandbox.advance("PT1S")
    assert [event["kind"] for event in events] == ["page-expiry"]
    assert sandbox.read(order)["status"] == "expired"


@pytest.mark.rule("SET-69")
def test_a_hosted_page_expires_after_a_day_by_default(sandbox: Sandbox) -> None:
    """The page of an order without a period is open for one day."""
    order = sandbox.place()
    assert [(item["at"], item["order_id"]) for item in sandbox.agenda()] == [
        ("2026-03-02T12:00:00.000000+00:00", order["id"])
    ]


@pytest.mark.rule("TRQ-04", "SET-65", "SET-66", "SET-67", "SET-68", "LIM-12", "LIM-13", "LIM-14")
@pytest.mark.parametrize(
    ("method", "period"),
    [
        ("credit-card", "PT30M"),
        ("wallet-qr", "PT30M"),
        ("wallet-web", "PT30M"),
        ("wallet-apple", "PT30M"),
        ("wallet-google", "PT30M"),
        ("bank-redirect-nl", "PT60M"),
        ("bank-redirect-be", "PT60M"),
        ("bank-redirect-de", "PT60M"),
        ("bank-transfer", "P30D"),
        ("invoice-later-b", "P30D"),
        ("pay-later-a", "PT48H"),
    ],
)
def test_every_method_has_a_default_expiration(live: Sandbox, method: str, period: str) -> None:
    """An attempt without a period has the default of its method."""
    order = live.place_with_lines(method)
    assert order["transactions"][0]["expiration_period"] == period


@pytest.mark.rule("TRQ-05", "SET-35", "A12")
def test_an_attempt_expires_after_its_period_and_cannot_be_captured(sandbox: Sandbox) -> None:
    """Order and transaction expire together when the merchant chose the method."""
    order = sandbox.place(card(expiration_period="P1M", capture_mode="manual"))
    sandbox.advance(to="2026-04-01T11:59:59Z")
    assert sandbox.status(order) == ("new", "new")
    sandbox.advance("PT1S")
    assert sandbox.status(order) == ("expired", "expired")
    assert sandbox.take(order, "captures").json()["error"]["type"] == "AuthorizationExpired"
    assert sandbox.act(order, "customer pay").status_code == 409
