"""Operations on a project without a server, a courier or a running clock."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from payment_sandbox.kernel.times import Period
from payment_sandbox.operations.act import act
from payment_sandbox.operations.advance import AdvanceLimits, advance
from payment_sandbox.operations.agenda import agenda
from payment_sandbox.operations.clock import advance_clock, change_clock
from payment_sandbox.operations.create_order import create_order
from payment_sandbox.operations.refund import refund
from payment_sandbox.operations.review import review
from payment_sandbox.orders.actions import Action
from payment_sandbox.orders.refusals import ClockBusy, Invalid, Refusal
from payment_sandbox.projects.project import Project
from tests.support.projects import made_project

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = Period.parse("PT1H").after


@pytest.fixture
def project() -> Project:
    """A project without courier and scheduler."""
    return made_project(START)


def place(project: Project, period: str = "PT30M", **more: Any) -> str:
    """Create a card order whose attempt expires after a period."""
    attempt = {"payment_method": "credit-card", "expiration_period": period}
    body = {"currency": "EUR", "amount": 1000, "client": {}, "transactions": [attempt], **more}
    return create_order(project, body).id


def test_ties_run_in_the_order_in_which_they_were_put_down(project: Project) -> None:
    """Ties run in the order of scheduling, whatever was scheduled between them."""
    orders = [place(project, period) for period in ("PT20M", "PT10M", "PT20M", "PT20M")]
    advanced = advance(project, HOUR)
    assert [event["order_id"] for event in advanced.events] == [orders[n] for n in (1, 0, 2, 3)]
    assert [project.find_order(order_id).status for order_id in orders] == ["expired"] * 4


def test_next_runs_all_ties_and_nothing_later(project: Project) -> None:
    """The clock stops at the time of the ties."""
    for period in ("PT10M", "PT10M", "PT20M"):
        place(project, period)
    advanced = advance(project, None, next_only=True)
    assert (len(advanced.events), advanced.ended) == (2, START + timedelta(minutes=10))
    assert len(agenda(project.epoch)) == 1


def test_an_advance_stops_at_the_event_limit(project: Project) -> None:
    """It stops at the time of the last event, and the next advance continues from there."""
    for minutes in (10, 11, 12):
        place(project, f"PT{minutes}M")
    stopped = advance(project, HOUR, limits=AdvanceLimits(events_max=2))
    assert (stopped.stopped, stopped.ended) == (True, START + timedelta(minutes=11))
    rest = advance(project, HOUR, limits=AdvanceLimits(events_max=2))
    assert (rest.stopped, len(rest.events), rest.begun) == (False, 1, stopped.ended)


def test_as_many_events_as_are_allowed_are_not_too_many(project: Project) -> None:
    """An advance stops only if more events than allowed are due."""
    for minutes in (10, 11):
        place(project, f"PT{minutes}M")
    advanced = advance(project, HOUR, limits=AdvanceLimits(events_max=2))
    assert (advanced.stopped, advanced.ended) == (False, START + timedelta(hours=1))


def test_an_advance_without_time_does_nothing(project: Project) -> None:
    """With a timeout of zero, the advance is stopped before its first event."""
    place(project)
    advanced = advance(project, HOUR, limits=AdvanceLimits(timeout_seconds=0.0))
    assert (advanced.stopped, advanced.events, advanced.ended) == (True, [], START)


def test_one_advance_at_a_time(project: Project) -> None:
    """A concurrent advance is refused and does not block later ones."""
    with project.epoch.advance_lock, pytest.raises(ClockBusy):
        advance(project, HOUR)
    assert advance(project, HOUR).ended == START + timedelta(hours=1)


def test_time_only_moves_forward(project: Project) -> None:
    """No call can set the clock back."""
    early = START - timedelta(seconds=1)
    with pytest.raises(Invalid):
        advance_clock(project, {"to": early})
    with pytest.raises(Invalid):
        change_clock(project, now=early)
    assert advance_clock(project, {"to": START}).ended == START


def test_a_refused_call_changes_nothing(project: Project) -> None:
    """A refused refund leaves the order unchanged."""
    order_id = place(project)
    before = project.find_order(order_id)
    with pytest.raises(Refusal):
        refund(project, order_id, {"amount": 5}, None)
    assert project.find_order(order_id) is before


def test_a_paid_order_can_be_refunded_once_in_full(project: Project) -> None:
    """After a refund in full, a further cent is refused."""
    order_id = place(project)
    act(project, order_id, Action("customer", "pay"))
    refund(project, order_id, {"amount": 1000}, None)
    with pytest.raises(Refusal):
        refund(project, order_id, {"amount": 1}, None)


def test_a_review_of_nothing_finds_nothing(project: Project) -> None:
    """Without requests, the review has no findings."""
    assert review(project.epoch) == []
