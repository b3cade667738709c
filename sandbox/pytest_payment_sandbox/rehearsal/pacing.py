"""Skips runs of the shop's jobs while the state is unchanged, and detects new calls by jobs."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from payment_sandbox.projects.jobs import Job

EQUAL_RUNS_MIN: Final = 2  # consecutive equal runs after which the interval grows

BusyTimes = Mapping[str, Sequence[datetime]]
"""The start times of runs with new calls, by job."""


@dataclass(slots=True)
class _JobHistory:
    """The latest runs of a job."""

    runs: int = 0
    start: datetime | None = None  # start of the current or next run
    next_input: int | None = None  # the edits before the current or next run
    calls: list[str] = field(default_factory=list)  # calls in the current run so far
    last_input: int | None = None  # the edits before the last finished run
    last_calls: list[str] = field(default_factory=list)  # calls in the last finished run
    equal_runs: int = 0  # consecutive runs with equal input and calls
    last_start: datetime | None = None


class JobPace:
    """Runs jobs at increasing intervals while their input and calls stay the same.

    A job always runs before an event, at the end of an advance, and whenever it made new calls in the
    unchanged test. The unchanged test itself runs all jobs at their usual times.
    """

    def __init__(self) -> None:
        self.edit_count = 0  # the edits so far that a job may notice
        self._jobs: dict[int, _JobHistory] = defaultdict(
            _JobHistory
        )  # keyed by function, because names are not unique
        self.busy: dict[str, list[datetime]] = defaultdict(list)
        self.baseline_busy: BusyTimes | None = None  # busy times in the unchanged test
        self.has_test_ended = False

    def next_run(self, job: Job, limit: datetime) -> datetime:
        """Return the time of a job's next run, up to ``limit``: the next event, or the end of the advance."""
        history, next_input = self._jobs[id(job.run)], self.edit_count
        if job.runs > history.runs:
            self._record_run(job, history)
        history.next_input, history.start = next_input, job.at
        is_idle = history.equal_runs >= EQUAL_RUNS_MIN and history.last_input == next_input
        is_baseline = self.baseline_busy is None and not self.has_test_ended
        if not is_idle or history.last_start is None or is_baseline:
            return job.at
        interval = 2 ** (history.equal_runs - 1) * (job.at - history.last_start)
        target = min([limit, history.last_start + interval, *self._next_busy_time(job)])
        history.start = job.period.last_up_to(target, job.at)
        return history.start

    def record_call(self, job: Job, call: str) -> bool:
        """Record a call by a running job; return whether the call is new in this state."""
        history = self._jobs[id(job.run)]
        history.calls.append(call)
        return history.last_input != history.next_input or call not in history.last_calls

    def _record_run(self, job: Job, history: _JobHistory) -> None:
        """Record the end of a job's run."""
        is_equal = history.last_input == history.next_input and history.last_calls == history.calls
        history.equal_runs = history.equal_runs + 1 if is_equal else 1
        if not is_equal and history.start is not None:
            self.busy[job.name].append(history.start)
        history.runs, history.last_start = job.runs, history.start
        history.last_input, history.last_calls, history.calls = history.next_input, history.calls, []

    def _next_busy_time(self, job: Job) -> list[datetime]:
        """Return the next time at which the job made new calls in the unchanged test, if any."""
        times = (self.baseline_busy or {}).get(job.name, ())
        return (
            [min(time for time in times if time >= job.at)] if any(time >= job.at for time in times) else []
        )
