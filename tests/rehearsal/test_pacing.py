"""The shop's jobs run less often in a rehearsal while they see nothing new, and each new call is a step."""

from datetime import datetime, timedelta

from payment_sandbox.projects.project import Project
from payment_sandbox.testing.project import PaymentSandbox
from pytest_payment_sandbox.rehearsal.run import RehearsedRun
from tests.support.in_process import place

DAYS = 40


def project_of(payment_sandbox: PaymentSandbox) -> Project:
    """The project itself."""
    project = payment_sandbox.server.project_of(payment_sandbox.api_key)
    assert project is not None
    return project


def rehearsed(payment_sandbox: PaymentSandbox) -> RehearsedRun:
    """A rehearsal of the project."""
    project = project_of(payment_sandbox)
    run = RehearsedRun(project)
    project.rehearse(run)
    return run


def runs_of_a_job(payment_sandbox: PaymentSandbox, run: RehearsedRun) -> list[datetime]:
    """When a job runs that reads an order every hour, and once a month does something else."""
    times: list[datetime] = []
    order_id, begun = place(payment_sandbox), payment_sandbox.clock.now

    def look() -> None:
        times.append(payment_sandbox.clock.now)
        payment_sandbox.session.get(f"{payment_sandbox.base_url}/v1/orders/{order_id}/", timeout=5)
        if timedelta(days=30) <= times[-1] - begun < timedelta(days=30, hours=1):
            payment_sandbox.session.get(f"{payment_sandbox.base_url}/v1/merchant/", timeout=5)

    payment_sandbox.every("PT1H", look)
    payment_sandbox.clock.advance(timedelta(days=DAYS))
    assert run.pace.busy, "the first run is new"
    return times


def test_the_test_as_it_is_has_every_run(payment_sandbox: PaymentSandbox) -> None:
    """Nothing is skipped, until it has ended."""
    run = rehearsed(payment_sandbox)
    times = runs_of_a_job(payment_sandbox, run)
    assert len(times) == DAYS * 24
    run.end_test()
    before = len(times)
    payment_sandbox.clock.advance(timedelta(days=DAYS))
    assert 1 < len(times) - before < DAYS
    assert times[-1] == payment_sandbox.clock.now, "the last one is not skipped"


def test_a_variation_has_the_runs_that_were_new(payment_sandbox: PaymentSandbox) -> None:
    """At their own times, and one at the end; others become rare."""
    begun = payment_sandbox.clock.now
    month = begun + timedelta(days=30)
    run = rehearsed(payment_sandbox)
    run.pace.baseline_busy = {"look": [month]}
    times = runs_of_a_job(payment_sandbox, run)
    assert len(times) < DAYS
    assert {begun + timedelta(hours=1), begun + timedelta(hours=2), month, begun + timedelta(days=DAYS)} <= {
        *times
    }


def test_every_charge_of_a_subscription_is_a_step(payment_sandbox: PaymentSandbox) -> None:
    """A job that does something in each run is observed in each; what it repeats in the same state is not."""
    run = rehearsed(payment_sandbox)
    payment_sandbox.every("P30D", lambda: place(payment_sandbox))
    payment_sandbox.clock.advance("P95D")
    assert [step.name for step in run.steps if step.kind == "create"] == ["create:1", "create:2", "create:3"]


def test_a_read_that_is_repeated_is_no_step(payment_sandbox: PaymentSandbox) -> None:
    """Until something changes."""
    run, order_id = rehearsed(payment_sandbox), place(payment_sandbox)
    url = f"{payment_sandbox.base_url}/v1/orders/{order_id}/"
    payment_sandbox.every("PT1M", lambda: payment_sandbox.session.get(url, timeout=5))
    payment_sandbox.clock.advance("PT4M")
    assert [step.kind for step in run.steps].count("read") == 1
    payment_sandbox.act(order_id)
    payment_sandbox.clock.advance("PT4M")
    assert [step.kind for step in run.steps].count("read") == 2
