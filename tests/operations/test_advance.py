"""An advance runs everything that is due, in order; one advance runs at a time."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from tests.support.driver import START, Sandbox, card, refused, violations
from tests.support.shop import Shop


@pytest.mark.rule("CTL-13", "CTL-17")
def test_an_advance_runs_everything_due_in_order(sandbox: Sandbox) -> None:
    """The events are those of the agenda; ties run in the order of scheduling."""
    orders = [sandbox.place(card(expiration_period=f"PT{minutes}M")) for minutes in (20, 10, 20, 30)]
    agenda = sandbox.agenda()
    assert [item["order_id"] for item in agenda] == [orders[n]["id"] for n in (1, 0, 2, 3)]
    answer = sandbox.post("/control/clock/advance/", {"by": "PT20M"}).json()
    assert (answer["from"], answer["to"]) == (START, "2026-03-01T12:20:00.000000+00:00")
    assert answer["events"] == agenda[:3]
    assert "stopped" not in answer
    assert sandbox.read(orders[1])["modified"] == "2026-03-01T12:10:00.000000+00:00"
    assert sandbox.agenda() == agenda[3:]


@pytest.mark.rule("CTL-13")
def test_an_advance_can_go_to_the_next_event_or_until_idle(sandbox: Sandbox) -> None:
    """Next runs all ties of the next time; idle runs all events; without events the clock stays."""
    for period in ("PT10M", "PT10M", "PT20M"):
        sandbox.place(card(expiration_period=period))
    assert len(sandbox.advance(until="next")) == 2
    assert sandbox.now() == "2026-03-01T12:10:00.000000+00:00"
    assert len(sandbox.advance(until="idle")) == 1
    assert sandbox.now() == "2026-03-01T12:20:00.000000+00:00"
    for until in ("next", "idle"):
        assert sandbox.advance(until=until) == []
    assert sandbox.now() == "2026-03-01T12:20:00.000000+00:00"


def test_obsolete_entries_are_neither_due_nor_run(sandbox: Sandbox) -> None:
    """The expiry of a paid order is removed from the agenda, and an advance does not stop at it."""
    sandbox.pay(sandbox.place(card()))
    assert sandbox.agenda() == sandbox.advance(until="next") == []
    assert sandbox.now() == START


@pytest.mark.rule("CTL-16")
def test_max_events_stops_an_advance(sandbox: Sandbox) -> None:
    """The response contains the time reached, and the next advance continues from there."""
    for minutes in range(10, 15):
        sandbox.place(card(expiration_period=f"PT{minutes}M"))
    stopped = sandbox.post("/control/clock/advance/", {"by": "PT1H", "max_events": 2}).json()
    assert (stopped["stopped"], len(stopped["events"]), stopped["to"][14:16]) == (True, 2, "11")
    rest = sandbox.post("/control/clock/advance/", {"to": "2026-03-01T13:00:00Z", "max_events": 3}).json()
    assert ("stopped" in rest, len(rest["events"]), rest["to"][11:16]) == (False, 3, "13:00")


@pytest.mark.rule("CTL-15")
def test_a_second_advance_meanwhile_is_refused(watched: Sandbox, shop: Shop) -> None:
    """While a receiver delays an advance, another one and changes to the clock are refused."""
    arrived, released = shop.hold()
    watched.place(card())
    with ThreadPoolExecutor(1) as thread:
        first = thread.submit(watched.advance, "PT1H")
        assert arrived.wait(60)
        second = Sandbox.__new__(Sandbox)
        second.__dict__.update(watched.__dict__, http=requests.Session())
        busy = second.post("/control/clock/advance/", {"by": "PT1H"})
        refused(busy, 409, "ClockBusy")
        assert "pytest-run-parallel, need a project each: payment_sandbox_server.project()" in busy.text
        refused(second.patch("/control/clock/", {"mode": "running"}), 409, "ClockBusy")
        assert second.now() == "2026-03-01T12:30:00.000000+00:00"
        released.set()
        assert [event["kind"] for event in first.result()] == ["expiry", "webhook"]
        second.http.close()


@pytest.mark.parametrize(
    "body",
    [{}, {"by": "PT1M", "to": "2027-01-01T00:00:00Z"}, {"by": "-PT1M"}, {"until": "later"},
     {"by": "PT1M", "max_events": 0}, {"by": "PT1M", "steps": 1}, {"by": "PT1H", "timeout": 601}],
)  # fmt: skip
def test_a_wrong_advance_is_refused(sandbox: Sandbox, body: Any) -> None:
    """A refused advance does not move the clock."""
    violations(sandbox.post("/control/clock/advance/", body))
    assert sandbox.now() == START


def test_an_advance_ends_at_the_calendars_end(sandbox: Sandbox) -> None:
    """A period beyond the calendar ends at the last date."""
    sandbox.place(card(expiration_period="P99999Y"))
    sandbox.advance("P99999Y")
    assert sandbox.now().startswith("9999-12-31T23:59:59")


def test_a_running_clock_does_not_conflict_with_advances(project: Callable[..., Sandbox]) -> None:
    """Entries that come due on a running clock never make an advance fail."""
    sandbox = project(clock="running")
    sandbox.scenario({"then": {"customer": "pays"}})
    for _ in range(50):
        sandbox.place(card())
        sandbox.settle()
    assert {item["status"] for item in sandbox.get("/control/journal/?status=201").json()["items"]} == {201}
