"""In a rehearsal, repetitive jobs run less often, and each new call is a step."""

from datetime import datetime, timedelta

from payment_sandbox.testing.project_fixture import PaymentSandbox
from pytest_payment_sandbox.rehearsal.run import RehearsedRun
from tests.support.in_process import place, project_of

DAYS = 40


def start_rehearsal(payment_sandbox: PaymentSandbox) -> RehearsedRun:
    """Start a rehearsal of the project."""
    project = project_of(payment_sandbox)
    run = RehearsedRun(project)
    project.rehearse(run)
    return run


def job_run_times(payment_sandbox: PaymentSandbox, run: RehearsedRun) -> list[datetime]:
    """Return the run times of an hourly job that reads an order, and makes another call once a month."""
    times: list[datetime] = []
    order_id, start = place(payment_sandbox), payment_sandbox.clock.now

    def read_order() -> None:
        times.append(payment_sandbox.clock.now)
        payment_sandbox.session.get(f"{payment_sandbox.base_url}/v1/orders/{order_id}/", timeout=5)
        if timedelta(days=30) <= times[-1] - start < timedelta(days=30, hours=1):
            payment_sandbox.session.get(f"{payment_sandbox.base_url}/v1/merchant/", timeout=5)

    payment_sandbox.every("PT1H", read_order)
    payment_sandbox.clock.advance(timedelta(days=DAYS))
    assert run.pace.busy, "the first run is new"
    return times


def test_the_unchanged_test_has_every_job_run(payment_sandbox: PaymentSandbox) -> None:
    """No run of a job is skipped before the end of the unchanged test."""
    run = start_rehearsal(payment_sandbox)
    times = job_run_times(payment_sandbox, run)
    assert len(times) == DAYS * 24
    run.end_test()
    before = len(times)
    payment_sandbox.clock.advance(timedelta(days=DAYS))
    assert 1 < len(times) - before < DAYS
    assert times[-1] == payment_sandbox.clock.now, "the last one is not skipped"


def test_a_variation_has_the_new_job_runs(payment_sandbox: PaymentSandbox) -> None:
    """A variation has the new runs at their times and a last one; other runs become rare."""
    start = payment_sandbox.clock.now
    month = start + timedelta(days=30)
    run = start_rehearsal(payment_sandbox)
    run.pace.baseline_busy = {"read_order": [month]}
    times = job_run_times(payment_sandbox, run)
    assert len(times) < DAYS
    assert {start + timedelta(hours=1), start + timedelta(hours=2), month, start + timedelta(days=DAYS)} <= {
        *times
    }


def test_every_charge_of_a_subscription_is_a_step(payment_sandbox: PaymentSandbox) -> None:
    """A job that creates an order in each run is observed in each run."""
    run = start_rehearsal(payment_sandbox)
    payment_sandbox.every("P30D", lambda: place(payment_sandbox))
    payment_sandbox.clock.advance("P95D")
    assert [step.name for step in run.steps if step.kind == "create"] == ["create:1", "create:2", "create:3"]


def test_a_repeated_read_is_no_step(payment_sandbox: PaymentSandbox) -> None:
    """A repeated read is a step only if the state has changed."""
    run, order_id = start_rehearsal(payment_sandbox), place(payment_sandbox)
    url = f"{payment_sandbox.base_url}/v1/orders/{order_id}/"
    payment_sandbox.every("PT1M", lambda: payment_sandbox.session.get(url, timeout=5))
    payment_sandbox.clock.advance("PT4M")
    assert [step.kind for step in run.steps].count("read") == 1
    payment_sandbox.act(order_id)
    payment_sandbox.clock.advance("PT4M")
    assert [step.kind for step in run.steps].count("read") == 2
