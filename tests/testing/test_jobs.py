"""The shop's scheduled jobs on the agenda of a test's project."""

import asyncio
from datetime import timedelta
from threading import Event, current_thread
from typing import Any

import pytest

from payment_sandbox.testing.project_fixture import PaymentJobWarning, PaymentSandbox
from tests.support.in_process import on_a_loop, place, shop_that


def test_a_job_runs_at_its_times(payment_sandbox: PaymentSandbox) -> None:
    """Each run of a job sees the clock at its scheduled time, in order with the other events."""
    start, seen = payment_sandbox.clock.now, []
    payment_sandbox.every("PT10M", lambda: seen.append(payment_sandbox.clock.now - start), name="look")
    place(payment_sandbox)  # expires after 30 minutes
    advance = payment_sandbox.clock.advance("PT35M")
    assert seen == [timedelta(minutes=minutes) for minutes in (10, 20, 30)]
    kinds = [event["kind"] for event in advance.events]
    assert kinds == ["job", "job", "expiry", "job"], "events of the service precede jobs"
    assert advance.labels[0] == "the shop's job look"
    assert [(entry["kind"], entry["label"]) for entry in payment_sandbox.client.agenda()] == [
        ("job", "the shop's job look")
    ]


def test_a_job_makes_up_for_a_lost_webhook(payment_sandbox: PaymentSandbox) -> None:
    """Webhooks that a job causes follow it on the thread of the test, before the advance continues."""
    notified: list[str] = []

    def handle(order_id: str) -> None:
        assert is_idle, "the job may not have stored what the webhook is about"
        assert current_thread() is tests_thread
        notified.append(order_id)

    is_idle, tests_thread = [True], current_thread()
    payment_sandbox.deliver_to(shop_that(handle))
    payment_sandbox.client.faults(webhooks=[{"then": {"drop": True}}])
    order_id = place(payment_sandbox)
    payment_sandbox.act(order_id)
    payment_sandbox.client.faults()

    def refund() -> None:
        url = f"{payment_sandbox.base_url}/v1/orders/{order_id}/"
        if payment_sandbox.session.get(url).json()["status"] == "completed" and not notified:
            is_idle.clear()
            answer = payment_sandbox.session.post(f"{url}refunds/", json={"amount": 5})
            assert answer.status_code == 201
            Event().wait(0.05)  # another thread could deliver the webhook meanwhile
            is_idle.append(True)

    payment_sandbox.every("PT1M", refund)
    payment_sandbox.clock.advance("PT2M")
    assert len(notified) == 1


def test_a_failing_job_is_reported_and_runs_again(payment_sandbox: PaymentSandbox) -> None:
    """A failing job is reported with a warning and in the timeline, and runs again."""
    runs: list[int] = []

    def tidy() -> None:
        runs.append(1)
        raise KeyError("stock")

    payment_sandbox.every("PT1M", tidy)
    with pytest.warns(PaymentJobWarning, match="the shop's job tidy failed: KeyError: 'stock'"):
        advance = payment_sandbox.clock.advance("PT2M")
    assert len(runs) == 2
    place = f"(test_jobs.py, line {tidy.__code__.co_firstlineno + 2})"
    assert [event["failed"] for event in advance.events] == [f"KeyError: 'stock' {place}"] * 2
    assert "KeyError: 'stock'" in payment_sandbox.timeline()


def test_a_coroutine_runs_on_the_tests_loop(payment_sandbox: PaymentSandbox) -> None:
    """A coroutine job runs on the test's event loop."""

    async def test() -> None:
        loops: list[Any] = []

        async def record_time() -> None:
            loops.append(asyncio.get_running_loop())

        payment_sandbox.every("PT1M", record_time)
        await payment_sandbox.aio.clock.advance("PT1M")
        assert loops == [asyncio.get_running_loop()]

    on_a_loop(test)


def test_an_advance_until_idle_ignores_jobs(payment_sandbox: PaymentSandbox) -> None:
    """An advance until idle runs jobs only while other events are due; a reset removes them."""
    runs: list[int] = []
    payment_sandbox.every(timedelta(minutes=20), lambda: runs.append(1))
    assert payment_sandbox.clock.advance(until="idle").events == []
    place(payment_sandbox)
    payment_sandbox.clock.advance(until="idle")
    assert len(runs) == 1
    payment_sandbox.client.reset()
    assert payment_sandbox.client.agenda() == []
