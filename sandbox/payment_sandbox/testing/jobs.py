"""Runs the jobs of a shop, as its scheduler would: whatever one raises, the next run comes."""

import warnings
from collections.abc import Callable
from datetime import timedelta
from inspect import iscoroutinefunction
from typing import Any, Final

from payment_sandbox.kernel.periods import Period, PeriodError
from payment_sandbox.testing.calling import CALLING_LOOP

JOB_SECONDS_MAX: Final = 30.0

Work = Callable[[], Any]


class PaymentJobWarning(UserWarning):
    """A job of the shop raised an exception."""


def period_of(period: str | timedelta) -> Period:
    """The interval between two runs.

    Raises:
        ValueError: it is no period, or it is zero.
    """
    try:
        found = Period(str(period), 0, period) if isinstance(period, timedelta) else Period.parse(period)
    except (PeriodError, TypeError, AttributeError) as error:
        raise ValueError(f"every takes a timedelta, or a period such as PT10M; not {period!r}") from error
    if found.is_zero or found.rest < timedelta():
        raise ValueError(f"every takes a period that is longer than {period!r}")
    return found


def runner(name: str, work: Work, is_rehearsed: Callable[[], bool]) -> Callable[[], str | None]:
    """A function that runs the job once, on the test's event loop if it has one, and says why it failed.

    In a rehearsal, where jobs may fail, it gives no warning.
    """

    def run() -> str | None:
        try:
            _run(work)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            if not is_rehearsed():
                warnings.warn(PaymentJobWarning(f"the shop's job {name} failed: {problem}"), stacklevel=2)
            return problem
        return None

    return run


def _run(work: Work) -> None:
    loop = CALLING_LOOP.get()
    if not iscoroutinefunction(work):
        if loop is None:
            work()
        else:
            loop.call(work)
    elif loop is not None:
        loop.run(work, JOB_SECONDS_MAX)
    else:
        from payment_sandbox.testing.loops import OwnLoop  # here, because few suites have a loop

        own = OwnLoop()
        try:
            own.run(work, JOB_SECONDS_MAX)
        finally:
            own.close()
