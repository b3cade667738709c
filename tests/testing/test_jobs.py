"""The shop's own jobs, on the agenda of a test's project."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from payment_sandbox.kernel.times import LAST_MOMENT
from payment_sandbox.testing.project import PaymentJobWarning, PaymentSandbox
from tests.support.in_process import on_a_loop, place, shop_that


def test_a_job_runs_at_its_times(payment_sandbox: PaymentSandbox) -> None:
    """Each run sees the clock at its own time, between the other events."""
    begun, seen = payment_sandbox.clock.now, []
    payment_sandbox.every("PT10M", lambda: seen.append(payment_sandbox.clock.now - begun), name="look")
    place(payment_sandbox)  # expires after 30 minutes
    advanced = payment_sandbox.clock.advance("PT35M")
    assert seen == [timedelta(minutes=minutes) for minutes in (10, 20, 30)]
    kinds = [event["kind"] for event in advanced.events]
    assert kinds == ["job", "job", "expiry", "job"], "what the service does comes first"
    assert advanced.labels[0] == "the shop's job look"
    assert [(due["kind"], due["label"]) for due in payment_sandbox.client.agenda()] == [
        ("job", "the shop's job look")
    ]


def test_jobs_alone_keep_nobody_waiting(payment_sandbox: PaymentSandbox) -> None:
    """Until idle, they run as long as something else is due."""
    runs: list[int] = []
    payment_sandbox.every(timedelta(minutes=20), lambda: runs.append(1))
    assert payment_sandbox.clock.advance(until="idle").events == []
    place(payment_sandbox)
    payment_sandbox.clock.advance(until="idle")
    assert len(runs) == 1


def test_a_job_makes_up_for_a_lost_webhook(payment_sandbox: PaymentSandbox) -> None:
    """What it causes is delivered before the advance goes on."""
    told: list[str] = []
    payment_sandbox.deliver_to(shop_that(told.append))
    payment_sandbox.client.faults(webhooks=[{"then": {"drop": True}}])
    order_id = place(payment_sandbox)
    payment_sandbox.act(order_id)
    payment_sandbox.client.faults()

    def refund() -> None:
        url = f"{payment_sandbox.base_url}/v1/orders/{order_id}/"
        if payment_sandbox.session.get(url).json()["status"] == "completed" and not told:
            made = payment_sandbox.session.post(f"{url}refunds/", json={"amount": 5})
            assert made.status_code == 201

    payment_sandbox.every("PT1M", refund)
    payment_sandbox.clock.advance("PT2M")
    assert len(told) == 1


def test_a_job_that_fails_is_told_and_runs_again(payment_sandbox: PaymentSandbox) -> None:
    """Its warning names it."""
    runs: list[int] = []

    def tidy() -> None:
        runs.append(1)
        raise KeyError("stock")

    payment_sandbox.every("PT1M", tidy)
    with pytest.warns(PaymentJobWarning, match="the shop's job tidy failed: KeyError: 'stock'"):
        advanced = payment_sandbox.clock.advance("PT2M")
    assert len(runs) == 2
    assert [event["failed"] for event in advanced.events] == ["KeyError: 'stock'"] * 2
    assert "KeyError: 'stock'" in payment_sandbox.timeline()


def test_a_coroutine_runs_on_the_tests_loop(payment_sandbox: PaymentSandbox) -> None:
    """As the shop's scheduler would."""

    async def test() -> None:
        loops: list[Any] = []

        async def look() -> None:
            loops.append(asyncio.get_running_loop())

        payment_sandbox.every("PT1M", look)
        await payment_sandbox.aio.clock.advance("PT1M")
        assert loops == [asyncio.get_running_loop()]

    on_a_loop(test)


@pytest.mark.parametrize("period", ["10 minutes", "PT0S", timedelta(), timedelta(-1), 600])
def test_a_wrong_period_is_refused(payment_sandbox: PaymentSandbox, period: Any) -> None:
    """With what was expected."""
    with pytest.raises(ValueError, match="every takes a"):
        payment_sandbox.every(period, print)


def test_a_reset_ends_them(payment_sandbox: PaymentSandbox) -> None:
    """They belong to what is reset."""
    payment_sandbox.every("PT1M", print)
    payment_sandbox.client.reset()
    assert payment_sandbox.client.agenda() == []


def test_a_job_ends_with_the_calendar(payment_sandbox: PaymentSandbox) -> None:
    """It has no other time then."""
    payment_sandbox.clock.advance(to=datetime(9999, 12, 31, 21, 30, tzinfo=UTC))
    runs: list[datetime] = []

    def look() -> None:
        runs.append(payment_sandbox.clock.now)
        if len(runs) > 9:
            pytest.fail("it runs at the last moment again and again")

    payment_sandbox.every("PT1H", look)
    payment_sandbox.clock.advance(to=LAST_MOMENT)
    assert [run.hour for run in runs] == [22, 23]
    assert payment_sandbox.client.agenda() == []
