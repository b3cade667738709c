"""Sandbox time for a shop that reads the wall clock."""

# ruff: noqa: TID251 (the shop reads it)

import time
from datetime import UTC, datetime, timedelta

from payment_sandbox.testing.project_fixture import PaymentSandbox
from tests.support.in_process import place, shop_that


def test_the_wall_clock_moves_with_the_projects_clock(payment_sandbox: PaymentSandbox) -> None:
    """The wall clock follows the project's clock, in handlers and jobs, too."""
    seen: list[datetime] = []
    payment_sandbox.deliver_to(shop_that(lambda order_id: seen.append(datetime.now(UTC))))
    payment_sandbox.every("PT20M", lambda: seen.append(datetime.now(UTC)))
    start = payment_sandbox.clock.now
    with payment_sandbox.wall_clock():
        assert datetime.now(UTC) == start
        place(payment_sandbox)
        payment_sandbox.clock.advance("PT1H")
        assert time.time() == (start + timedelta(hours=1)).timestamp()
    # the attempt expires after half an hour, between two runs of the job
    assert seen == [start + timedelta(minutes=minutes) for minutes in (20, 30, 40, 60)]
    assert abs(datetime.now(UTC) - start) < timedelta(minutes=5)
    payment_sandbox.clock.advance("PT1H")
    assert abs(datetime.now(UTC) - start) < timedelta(minutes=5)
