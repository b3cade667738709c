"""Judges tests announced by the helpers in a suite in another language."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit
from zlib import crc32

import requests

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.operations.advance import AdvanceLimits
from payment_sandbox.operations.move_clock import advance_clock, change_clock
from payment_sandbox.projects.jobs import Job
from payment_sandbox.projects.project import Project
from pytest_payment_sandbox.rehearsal.budget import Budget
from pytest_payment_sandbox.rehearsal.changes import ChangedSteps
from pytest_payment_sandbox.rehearsal.helpers import Conversation, EndOfTest
from pytest_payment_sandbox.rehearsal.judging import (
    RunVerdict,
    Trial,
    error_problem,
    judge_unfinished,
)
from pytest_payment_sandbox.rehearsal.places import SourceLine
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


class AnnouncedTest:
    """A run of a test that a helper announced."""

    def __init__(
        self,
        name: str,
        project: Project,
        variation: ChangedSteps,
        baseline: RunVerdict | None,
        budget: Budget,
    ) -> None:
        """Rehearse the project; each run starts with the same identifiers, and a clock frozen on the hour.

        ``baseline`` is the verdict on the unchanged test, if that has run.
        """
        self.name = name
        self.project = project
        self._variation = variation
        self._baseline = baseline
        self.error = ""  # the reason why the unchanged test cannot be judged
        self.run = RehearsedRun(project, variation)
        self._budget = budget
        self._verdict: RunVerdict | None = None
        self._timeline = ""
        self._line: SourceLine | None = None
        if baseline is not None:
            self.run.follow(baseline.most_calls, baseline.busy)
        project.epoch.ids = Ids(crc32(name.encode()))
        if not project.epoch.state.clock.running:
            change_clock(project, now=project.now().replace(minute=0, second=0, microsecond=0) + ONE_HOUR)
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
        run.locate_calls(ending.calls)
        read_view = partial(self._read_view, ending, conversation)
        books = conversation.books if ending.has_books else None
        advance = partial(advance_to, project, self._budget)
        trial = Trial(run, self._variation, ending.failure, self._baseline, read_view, advance, books)
        try:
            project.settle(SETTLE_SECONDS)
            for name, period in ending.jobs:
                job = Job(name, period, period.after(project.now()), partial(conversation.run_job, name))
                project.epoch.jobs.add(job)
            verdict = trial.verdict()
        except Exception as error:
            if not self._variation:
                self.error = f"the test {self.name!r} could not be judged: {error}"
            verdict = judge_unfinished(run, error_problem(error))
        if verdict.problems:
            self._line = run.find_changed_line(self._baseline.calls if self._baseline is not None else ())
            notes = [*ending.stack.splitlines(), *_error_lines(project)]
            self._timeline = describe_timeline([run], notes)
        self._verdict = verdict

    def _read_view(self, ending: EndOfTest, conversation: Conversation) -> CustomerView:
        get: Callable[[str], str | None] = conversation.page if ending.has_pages else request_page
        pages = read_pages(self.run, get, (), twice=self._baseline is None)
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


def _error_lines(project: Project) -> list[str]:
    """Return the lines of the error responses from the shop's handlers."""
    attempts = [each for delivery in project.epoch.store.deliveries() for each in delivery.attempts]
    answers = [each.reply.body for each in attempts if (each.reply.status or 0) >= SERVER_ERROR]
    return [line for answer in dict.fromkeys(answers) for line in answer.splitlines()]


def advance_to(project: Project, budget: Budget, until: datetime) -> None:
    """Advance the clock as far as possible, ignoring errors."""
    with suppress(Exception):  # the history lists failed events
        advance_clock(project, {"to": until}, AdvanceLimits(timeout_seconds=budget.wait_seconds))
