"""A project's clock is frozen, runs at a rate, or is set forward."""

import pytest

from tests.support.driver import START, Sandbox, card, violations
from tests.support.shop import Shop


@pytest.mark.rule("CTL-12")
def test_a_frozen_clock_stands(sandbox: Sandbox) -> None:
    """A frozen clock changes only when it is set, and only forward."""
    assert sandbox.get("/control/clock/").json() == {"now": START, "mode": "frozen", "rate": 1.0}
    later = sandbox.patch("/control/clock/", {"now": "2026-03-02T12:00:00+01:00"}).json()
    assert later["now"] == "2026-03-02T11:00:00.000000+00:00"
    assert set(violations(sandbox.patch("/control/clock/", {"now": START}))) == {"now"}
    assert set(violations(sandbox.post("/control/clock/advance/", {"to": START}))) == {"to"}
    assert sandbox.now() == later["now"]


@pytest.mark.rule("CTL-12")
def test_setting_the_clock_forward_runs_due_events(watched: Sandbox, shop: Shop) -> None:
    """Due events happen at their own times, and first webhook attempts are made."""
    order = watched.place(card())
    watched.patch("/control/clock/", {"now": "2026-03-01T13:00:00Z"})
    assert watched.read(order)["modified"] == "2026-03-01T12:30:00.000000+00:00"
    assert shop.orders() == [order["id"]]
