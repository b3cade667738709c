"""Judges tests announced by the helpers in a suite in another language."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus
from itertools import islice
from typing import Final
from urllib.parse import urlsplit
from zlib import crc32

import requests

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.operations.advance import AdvanceLimits
from payment_sandbox.operations.move_clock import advance_clock, change_clock
from payment_sandbox.projects.jobs import Job
from payment_sandbox.projects.project import Project
from payment_sandbox.scenarios.variation import ShopCall
from pytest_payment_sandbox.rehearsal.budget import Budget
from pytest_payment_sandbox.rehearsal.changes import ChangedSteps
from pytest_payment_sandbox.rehearsal.helpers import AnnouncedCall, Conversation, EndOfTest
from pytest_payment_sandbox.rehearsal.judging import (
    RunVerdict,
    Trial,
    Verdicts,
    error_problem,
    judge,
    judge_unfinished,
)
from pytest_payment_sandbox.rehearsal.places import LocatedCall, SourceLine, deciding_line
from pytest_payment_sandbox.rehearsal.planning import Run
from pytest_payment_sandbox.rehearsal.reconciliation import BookProblem
from pytest_payment_sandbox.rehearsal.run import RehearsedRun
from pytest_payment_sandbox.rehearsal.showing import CustomerView, Emails, PageFailed, read_pages
from pytest_payment_sandbox.rehearsal.timelines import describe_timeline

SETTLE_SECONDS: Final = 10.0
PAGE_SECONDS_MAX: Final = 20.0
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
ONE_HOUR: Final = timedelta(hours=1)
SERVER_ERROR: Final = 500


@dataclass
class TestMemory:
    """State shared by the runs of a test: the verdicts on the unchanged test, and on earlier runs."""

    __test__ = False

    baseline: RunVerdict | None = None
    verdicts: Verdicts = field(default_factory=dict)


class AnnouncedTest:
    """A run of a test that a helper announced."""

    def __init__(
        self, name: str, project: Project, variation: ChangedSteps, memory: TestMemory, budget: Budget
    ) -> None:
        """Rehearse the project; each run starts with the same identifiers, and a clock frozen on the hour."""
        self.name = name
        self.project = project
        self.variation = variation
        self.memory = memory
        self.error = ""  # the reason why the unchanged test cannot be judged
        self.run = RehearsedRun(project, variation)
        self._budget = budget
        self._verdict: RunVerdict | None = None
        self._timeline = ""
        self._line: SourceLine | None = None
        if memory.baseline is not None:
            self.run.follow(memory.baseline.most_calls, memory.baseline.busy)
        project.epoch.ids = Ids(crc32(name.encode()))
        if not project.epoch.state.clock.running:
            change_clock(project, now=_next_hour(project.now()))
        project.rehearse(self.run)

    @property
    def is_judged(self) -> bool:
        """Whether the test has ended and has a verdict."""
        return self._verdict is not None

    @property
    def result(self) -> Run:
        """The result of the run."""
        verdict = self._verdict or RunVerdict([], (), ())
        return Run(verdict, self.run.steps, self.run.applied, self._timeline, self._line)

    def judge(self, ending: EndOfTest, conversation: Conversation) -> None:
        """Judge the test right after its end, while its shop still handles webhooks."""
        project, run = self.project, self.run
        trial = Trial(
            run,
            self.variation,
            ending.failure,
            self.memory.baseline,
            self.memory.verdicts,
            lambda: self._read_view(ending, conversation),
        )
        try:
            project.settle(SETTLE_SECONDS)
            for name, period in ending.jobs:
                job = Job(name, period, period.after(project.now()), partial(conversation.run_job, name))
                project.epoch.jobs.add(job)
            books = conversation.books if ending.has_books else None
            verdict = judge(trial, partial(advance_to, project, self._budget), books)
        except Exception as error:
            if not self.variation:
                self.error = f"the test {self.name!r} could not be judged: {error}"
            verdict = judge_unfinished(run, error_problem(error))
        if verdict.problems:
            baseline_calls = self.memory.baseline.calls if self.memory.baseline is not None else ()
            self._line = _changed_line(run, ending.calls, baseline_calls)
            notes = [*ending.stack.splitlines(), *_error_lines(project)]
            self._timeline = describe_timeline([run], notes)
        self._verdict = verdict._replace(calls=[each.located for each in ending.calls])

    def _read_view(self, ending: EndOfTest, conversation: Conversation) -> CustomerView:
        get: Callable[[str], str | None] = conversation.page if ending.has_pages else request_page
        twice = self.memory.baseline is None
        pages = read_pages(self.run, get, (), twice=twice)
        return CustomerView(pages, Emails((), 0))


def request_page(url: str) -> str | None:
    """Request a page of a shop on this machine, without cookies; return None if the page does not exist.

    Raises:
        PageFailed: the shop responds with an error.
    """
    if urlsplit(url).hostname not in LOOPBACK:
        return None
    try:
        answer = requests.get(url, timeout=PAGE_SECONDS_MAX)
    except requests.RequestException:
        return None
    if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise PageFailed(f"status {answer.status_code}")
    return answer.text if answer.status_code == HTTPStatus.OK else None


def unfinished_run(test: AnnouncedTest | None, variation: ChangedSteps, failure: str | None) -> Run:
    """Return the run of an unfinished test: it hangs, or the suite crashed."""
    reason = failure or "the suite ended before the test"
    if test is not None and "longer than" in reason:
        problem = BookProblem("hangs", f"the run of the suite did not finish: {reason}")
    else:
        problem = BookProblem("not-judged", f"the test did not finish: {reason.partition(chr(10))[0]}")
    steps = test.run.steps if test is not None else []
    applied = test.run.applied if test is not None else []
    return Run(RunVerdict([problem], (), ()), steps, applied or variation, reason)


def _changed_line(
    run: RehearsedRun, calls: Sequence[AnnouncedCall], baseline_calls: Sequence[LocatedCall]
) -> SourceLine | None:
    """Return the location of the changed call in the shop, if the helper reported it."""
    changed = _find_changed_call(run, calls)
    if changed is None:
        return None
    return deciding_line(changed.located, [*(each.located for each in calls), *baseline_calls])


def _find_changed_call(run: RehearsedRun, calls: Sequence[AnnouncedCall]) -> AnnouncedCall | None:
    made = [(step.name, step.about) for step in run.steps if isinstance(step.about, ShopCall)]
    changed = {each.step for each in run.applied}
    earlier: list[ShopCall] = []
    for name, about in made:
        if name in changed:
            same_calls = (each for each in calls if (each.method, each.path) == about)
            return next(islice(same_calls, earlier.count(about), None), None)
        earlier.append(about)
    return None


def _error_lines(project: Project) -> list[str]:
    """Return the lines of the error responses from the shop's handlers."""
    attempts = [each for delivery in project.epoch.store.deliveries() for each in delivery.attempts]
    answers = [each.reply.body for each in attempts if (each.reply.status or 0) >= SERVER_ERROR]
    return [line for answer in dict.fromkeys(answers) for line in answer.splitlines()]


def _next_hour(now: datetime) -> datetime:
    return now.replace(minute=0, second=0, microsecond=0) + ONE_HOUR


def advance_to(project: Project, budget: Budget, until: datetime) -> None:
    """Advance the clock as far as possible, ignoring errors."""
    with suppress(Exception):  # the history lists failed events
        advance_clock(project, {"to": until}, AdvanceLimits(timeout_seconds=budget.wait_seconds))
