"""Delayed authorizations are captured automatically."""

from collections.abc import Callable

import pytest

from tests.journeys.authorizations import amounts, socks
from tests.support.driver import LINES_TOTAL, Sandbox, card, refused


@pytest.mark.rule("CAP-05", "SET-44")
def test_a_delayed_authorization_captures_itself(sandbox: Sandbox) -> None:
    """The capture is on the agenda and runs exactly one period after the authorization."""
    order = sandbox.place_with_lines("credit-card", capture_mode="delayed", expiration_period="P7D")
    sandbox.advance("P1D")
    sandbox.pay(order)
    assert [(item["kind"], item["at"]) for item in sandbox.agenda()] == [
        ("delayed-capture", "2026-03-09T12:00:00.000000+00:00")
    ]
    sandbox.advance("P6DT23H59M59S")
    assert amounts(sandbox, order)["captured"] == 0
    assert [event["label"] for event in sandbox.advance("PT1S")] == [f"delayed capture of {order['id']}"]
    assert amounts(sandbox, order) == {"original": 2000, "captured": 2000, "voided": 0, "remaining": 0}
    assert sandbox.read(order)["transactions"][0]["is_fully_captured"] is True


@pytest.mark.rule("CAP-06", "ERR-05")
def test_a_delayed_authorization_is_never_captured_by_hand(sandbox: Sandbox) -> None:
    """Manual captures are refused before and after the delayed capture."""
    order = sandbox.authorized(capture_mode="delayed")
    for kind, body in (
        ("captures", None),
        ("captures/amount", {"amount": 1}),
        ("captures/orderlines", socks(1)),
    ):
        refused(sandbox.take(order, kind, body), 409, "AuthorizationDelayed")
    sandbox.advance("PT30M")
    error = refused(sandbox.take(order, "captures"), 409, "AuthorizationDelayed")
    assert "nothing is left: 2000 of 2000 cents are captured" in error["value"]


@pytest.mark.rule("CAP-07")
def test_what_is_voided_in_time_is_not_captured(sandbox: Sandbox) -> None:
    """The delayed capture excludes parts that were voided by amount or by lines."""
    order = sandbox.authorized(capture_mode="delayed")
    sandbox.take(order, "voids/amount", {"amount": 300})
    sandbox.take(order, "voids/orderlines", socks(1))
    sandbox.advance("PT30M")
    assert amounts(sandbox, order) == {"original": 2000, "captured": 1200, "voided": 800, "remaining": 0}


def test_a_delayed_authorization_voided_in_full_is_cancelled(sandbox: Sandbox) -> None:
    """The order is cancelled, and the capture is removed from the agenda."""
    order = sandbox.authorized(capture_mode="delayed")
    sandbox.take(order, "voids/amount", {"amount": LINES_TOTAL})
    assert sandbox.status(order) == ("cancelled", "cancelled")
    assert sandbox.agenda() == []
    assert sandbox.advance("P1D") == []


@pytest.mark.rule("SET-45")
@pytest.mark.parametrize(("method", "period"), [("credit-card", "PT30M"), ("pay-later-a", "PT48H")])
def test_delayed_without_a_period_takes_the_methods_default(
    sandbox: Sandbox, method: str, period: str
) -> None:
    """The delay is the default expiration period of the method."""
    order = sandbox.pay(sandbox.place_with_lines(method, capture_mode="delayed"))
    assert [event["kind"] for event in sandbox.advance(period)] == ["delayed-capture"]
    assert amounts(sandbox, order)["captured"] == 2000


@pytest.mark.rule("SET-22")
@pytest.mark.parametrize(
    ("start", "period", "due"),
    [
        ("2027-01-31T10:00:00Z", "P1M", "2027-02-28T10:00:00.000000+00:00"),
        ("2028-01-31T10:00:00Z", "P1M", "2028-02-29T10:00:00.000000+00:00"),
        ("2028-02-29T10:00:00Z", "P1Y", "2029-02-28T10:00:00.000000+00:00"),
        ("2027-12-31T23:30:00Z", "P2MT1H", "2028-03-01T00:30:00.000000+00:00"),
    ],
)
def test_months_and_years_follow_the_calendar(
    project: Callable[..., Sandbox], start: str, period: str, due: str
) -> None:
    """Periods are clipped to the last day of a month and handle leap days."""
    sandbox = project(clock=f"frozen@{start}")
    sandbox.place(card(expiration_period=period))
    assert [item["at"] for item in sandbox.agenda()] == [due]
