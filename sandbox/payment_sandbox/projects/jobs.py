"""Periodic jobs of the shop, run in sandbox time while the clock advances."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from payment_sandbox.kernel.times import LAST_MOMENT, Period

JOB_KIND: Final = "job"


@dataclass(slots=True)
class Job:
    """A periodic job of the shop; ``run`` returns an error message, or None."""

    name: str
    period: Period
    at: datetime
    run: Callable[[], str | None]
    runs: int = 0

    @property
    def label(self) -> str:
        """The label on the agenda."""
        return f"the shop's job {self.name}"


class Jobs(list[Job]):
    """The jobs of an epoch; they are not stored, because only this process can run them."""

    running: Job | None = None

    def by_next_run(self) -> list[Job]:
        """Return the jobs in the order of their next runs."""
        return sorted(self, key=lambda job: job.at)

    def take(self, until: datetime | None, before: datetime | None) -> Job | None:
        """Take the next job that is due up to ``until`` and earlier than ``before``, an event's time.

        If both are None, no job is due: jobs alone do not prolong an advance. The job is rescheduled until
        the calendar ends.
        """
        limits = [limit for limit in (until, before) if limit is not None]
        if not limits or not self:
            return None
        job = self.by_next_run()[0]
        if job.at > min(limits) or job.at == before:
            return None
        job.runs += 1
        due_job = replace(job)
        job.at = job.period.after(job.at)
        if job.at == LAST_MOMENT:  # the calendar has ended
            self.remove(job)
        return due_job
