"""Skips runs of the shop's jobs while the state is unchanged, and detects new calls of jobs."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from payment_sandbox.projects.changes import Moment
from payment_sandbox.projects.jobs import Job

if TYPE_CHECKING:
    from payment_sandbox.projects.project import Project

IDLE_AFTER: Final = 2  # consecutive equal runs

BusyTimes = Mapping[str, Sequence[datetime]]
"""The start times of runs with new calls, by job."""


class _Seen(NamedTuple):
    """The input of a run: the earlier changes in the project, and the number of advances by the test."""

    changes: Moment
    advances: int


@dataclass(slots=True)
class _History:
    """The latest runs of a job."""

    runs: int = 0
    begins: datetime | None = None  # start of the current or next run
    sees: _Seen | None = None  # input of the current or next run
    calls: list[str] = field(default_factory=list)  # of the current run, so far
    seen: _Seen | None = None  # input of the last finished run
    called: list[str] = field(default_factory=list)  # of the last finished run
    alike: int = 0  # consecutive runs with equal input and calls
    ended: datetime | None = None


class JobPace:
    """Runs jobs at increasing intervals while their input and calls stay the same.

    A job always runs before an event, at the end of an advance, and whenever it made new calls in the
    unchanged test. The unchanged test itself runs all jobs at their usual times.
    """

    def __init__(self, project: "Project") -> None:
        self._project = project
        self._jobs: dict[int, _History] = defaultdict(_History)  # by function, because names are not unique
        self.busy: dict[str, list[datetime]] = defaultdict(list)
        self.known_busy: BusyTimes | None = None  # in the unchanged test
        self.is_resting = False

    def next_run(self, job: Job, limit: datetime) -> datetime:
        """Return the time of a job's next run, up to ``limit``: the next event, or the end of the advance."""
        history, sees = self._jobs[id(job.run)], self._sees()
        if job.runs > history.runs:
            self._note(job, history)
        history.sees, history.begins = sees, job.at
        is_idle = history.alike >= IDLE_AFTER and history.seen == sees
        if not is_idle or history.ended is None or (self.known_busy is None and not self.is_resting):
            return job.at
        times = 2 ** (history.alike - 1)
        aim = min([limit, history.ended + times * (job.at - history.ended), *self._busy_after(job)])
        history.begins = job.period.last_up_to(aim, job.at)
        return history.begins

    def call(self, job: Job, call: str) -> bool:
        """Record a call of a running job; return whether the call is new in this state."""
        history = self._jobs[id(job.run)]
        history.calls.append(call)
        return history.seen != history.sees or call not in history.called

    def _sees(self) -> _Seen:
        epoch = self._project.epoch
        return _Seen(epoch.changes.watch(), epoch.advances)

    def _note(self, job: Job, history: _History) -> None:
        """Record the end of a job's run."""
        is_alike = history.seen == history.sees and history.called == history.calls
        history.alike = history.alike + 1 if is_alike else 1
        if not is_alike and history.begins is not None:
            self.busy[job.name].append(history.begins)
        history.runs, history.ended = job.runs, history.begins
        history.seen, history.called, history.calls = history.sees, history.calls, []

    def _busy_after(self, job: Job) -> list[datetime]:
        """Return the next time at which the job made new calls in the unchanged test, or no time."""
        times = (self.known_busy or {}).get(job.name, ())
        return (
            [min(time for time in times if time >= job.at)] if any(time >= job.at for time in times) else []
        )
