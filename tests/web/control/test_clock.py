"""A project's clock is frozen, runs at a rate, or is set forward."""

from threading import Event

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


@pytest.mark.rule("CTL-12")
def test_a_clock_can_run_at_a_rate(watched: Sandbox, shop: Shop) -> None:
    """With a fast clock an order expires and its webhook is sent without a call."""
    delivered = Event()
    shop.tell(delivered)
    order = watched.place(card())
    running = watched.patch("/control/clock/", {"mode": "running", "rate": 86_400}).json()
    assert (running["mode"], running["rate"]) == ("running", 86_400)
    assert delivered.wait(60)
    expired = watched.read(order)
    assert (expired["status"], expired["modified"]) == ("expired", "2026-03-01T12:30:00.000000+00:00")
    frozen = watched.patch("/control/clock/", {"mode": "frozen"}).json()
    assert frozen["now"] > "2026-03-01T12:30"
    assert watched.now() == frozen["now"]


def test_immediate_events_need_no_advance(watched: Sandbox, shop: Shop) -> None:
    """A customer who pays immediately does so after the response, even on a frozen clock."""
    paid = Event()
    shop.tell(paid, after=2)
    watched.scenario({"then": {"customer": "pays"}})
    order = watched.place(card())
    assert order["status"] == "new"
    assert paid.wait(60)
    assert watched.read(order)["status"] == "completed"
