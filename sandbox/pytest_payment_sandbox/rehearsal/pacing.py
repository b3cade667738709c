"""Skips runs of the shop's jobs that see nothing new, and tells which of their calls do."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from payment_sandbox.projects.changes import Moment
from payment_sandbox.projects.jobs import Job

if TYPE_CHECKING:
    from payment_sandbox.projects.project import Project

IDLE_AFTER: Final = 2  # runs that saw and did the same

BusyTimes = Mapping[str, Sequence[datetime]]
"""The times of the runs that did something new, by job."""


class _Seen(NamedTuple):
    """The input of a run: the changes in the project before it, and the number of advances by the test."""

    changes: Moment
    advances: int


@dataclass(slots=True)
class _History:
    """The latest runs of a job."""

    runs: int = 0
    begins: datetime | None = None  # start of the current or the next run
    sees: _Seen | None = None  # before it
    calls: list[str] = field(default_factory=list)  # of it, so far
    seen: _Seen | None = None  # before the run that ended last
    called: list[str] = field(default_factory=list)
    alike: int = 0  # runs in a row that saw and did the same
    ended: datetime | None = None


class JobPace:
    """Runs jobs at increasing intervals while they see and do nothing new.

    A job always runs before an event and at the end of an advance, and at the times at which it did something
    new in the test as it is. The test as it is runs as it does without a rehearsal.
    """

    def __init__(self, project: "Project") -> None:
        self._project = project
        self._jobs: dict[int, _History] = defaultdict(_History)  # by their work: names can be the same
        self.busy: dict[str, list[datetime]] = defaultdict(list)
        self.known_busy: BusyTimes | None = None  # of the test as it is
        self.is_resting = False

    def next_run(self, job: Job, limit: datetime) -> datetime:
        """When a job runs next; ``limit`` is the time of the next event, or the end of the advance."""
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
        """Note a call of a job that runs; whether its last run has not made it in the same state."""
        history = self._jobs[id(job.run)]
        history.calls.append(call)
        return history.seen != history.sees or call not in history.called

    def _sees(self) -> _Seen:
        epoch = self._project.epoch
        return _Seen(epoch.changes.watch(), epoch.advances)

    def _note(self, job: Job, history: _History) -> None:
        """A run has ended."""
        is_alike = history.seen == history.sees and history.called == history.calls
        history.alike = history.alike + 1 if is_alike else 1
        if not is_alike and history.begins is not None:
            self.busy[job.name].append(history.begins)
        history.runs, history.ended = job.runs, history.begins
        history.seen, history.called, history.calls = history.sees, history.calls, []

    def _busy_after(self, job: Job) -> list[datetime]:
        """The next time at which the job did something new in the test as it is."""
        times = (self.known_busy or {}).get(job.name, ())
        return (
            [min(time for time in times if time >= job.at)] if any(time >= job.at for time in times) else []
        )
