"""Sandbox time for a shop that reads the wall clock."""

# ruff: noqa: TID251 (the shop reads it)

import builtins
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from payment_sandbox.testing.project import PaymentSandbox
from tests.support.in_process import place, shop_that


def test_the_wall_clock_moves_with_the_projects_clock(payment_sandbox: PaymentSandbox) -> None:
    """Also in a handler and in a job, each at its own time."""
    seen: list[datetime] = []
    payment_sandbox.deliver_to(shop_that(lambda order_id: seen.append(datetime.now(UTC))))
    payment_sandbox.every("PT20M", lambda: seen.append(datetime.now(UTC)))
    begun = payment_sandbox.clock.now
    with payment_sandbox.wall_clock():
        assert datetime.now(UTC) == begun
        place(payment_sandbox)
        payment_sandbox.clock.advance("PT1H")
        assert time.time() == (begun + timedelta(hours=1)).timestamp()
    # the attempt expires after half an hour, between two runs of the job
    assert seen == [begun + timedelta(minutes=minutes) for minutes in (20, 30, 40, 60)]
    assert abs(datetime.now(UTC) - begun) < timedelta(minutes=5)
    payment_sandbox.clock.advance("PT1H")
    assert abs(datetime.now(UTC) - begun) < timedelta(minutes=5)


def test_without_freezegun_it_says_so(
    payment_sandbox: PaymentSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no dependency of the sandbox."""
    found = builtins.__import__

    def missing(name: str, *given: Any, **more: Any) -> Any:
        if name == "freezegun":
            raise ImportError(name)
        return found(name, *given, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(RuntimeError, match="pip install freezegun"), payment_sandbox.wall_clock():
        pass
