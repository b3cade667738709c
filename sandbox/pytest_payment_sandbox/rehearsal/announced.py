"""Judges the tests that the helpers of a suite in another language announce."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Final
from zlib import crc32

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.operations.advance import AdvanceLimits
from payment_sandbox.operations.clock import advance_clock, change_clock
from payment_sandbox.operations.history import history, short_path
from payment_sandbox.projects.jobs import Job
from payment_sandbox.projects.project import Project
from payment_sandbox.scenarios.variation import ShopCall
from payment_sandbox.web.pictures import sequence, svg
from pytest_payment_sandbox.rehearsal.books import BookProblem, Books
from pytest_payment_sandbox.rehearsal.exploring import ChangedSteps, Ran
from pytest_payment_sandbox.rehearsal.helpers import Conversation, Ending
from pytest_payment_sandbox.rehearsal.judging import (
    Ends,
    Judged,
    Trial,
    judge,
    not_judged,
)
from pytest_payment_sandbox.rehearsal.outside import BooksElsewhere, page_at
from pytest_payment_sandbox.rehearsal.places import Line, PlacedCall, deciding_line, shop_lines
from pytest_payment_sandbox.rehearsal.run import RehearsedRun
from pytest_payment_sandbox.rehearsal.showing import Mails, Showing, pages_of

ADVANCE: Final = AdvanceLimits(timeout_seconds=20)
SETTLE_SECONDS: Final = 10.0
EVERY: Final = timedelta(hours=1)
FAILED: Final = 500


@dataclass(frozen=True)
class Outside:
    """Sources of information outside the suite: the shop's books, and its pages about an order."""

    books: BooksElsewhere | None = None
    pages: Sequence[str] = ()


@dataclass
class TestMemory:
    """State shared by the runs of a test: the verdicts on the unchanged test, and on earlier runs."""

    __test__ = False

    baseline: Judged | None = None
    ends: Ends = field(default_factory=dict)


class AnnouncedTest:
    """One run of a test that a helper announced."""

    def __init__(
        self, name: str, project: Project, variation: ChangedSteps, memory: TestMemory, outside: Outside
    ) -> None:
        """Rehearse the project; each run starts with the same identifiers, and a clock frozen on the hour."""
        self.name = name
        self.project = project
        self.variation = variation
        self.memory = memory
        self.error = ""  # why the unchanged test cannot be judged
        self.run = RehearsedRun(project, variation)
        self._outside = outside
        self._judged: Judged | None = None
        self._timeline = self._picture = ""
        if memory.baseline is not None:
            self.run.calls.limit(memory.baseline.most_calls)
        project.epoch.ids = Ids(crc32(name.encode()))
        if not project.epoch.state.clock.running:
            change_clock(project, now=_next_hour(project.now()))
        project.rehearse(self.run)

    @property
    def is_judged(self) -> bool:
        """Whether the test has ended and has a verdict."""
        return self._judged is not None

    @property
    def ran(self) -> Ran:
        """The result of the run."""
        judged = self._judged or Judged([], (), ())
        return Ran(judged, self.run.steps, self.run.happened, self._timeline, self._picture)

    def judge(self, ending: Ending, conversation: Conversation, environment: Mapping[str, str]) -> None:
        """Judge the test when it has just ended, and its shop still handles webhooks."""
        project, run = self.project, self.run
        trial = Trial(
            run,
            self.variation,
            ending.failure,
            self.memory.baseline,
            [],
            self.memory.ends,
            lambda: self._look(ending, conversation),
        )
        try:
            project.settle(SETTLE_SECONDS)
            for name, period in ending.jobs:
                job = Job(name, period, period.after(project.now()), partial(conversation.run_job, name))
                project.epoch.jobs.add(job)
            books = self._books(ending, conversation, environment)
            judged = judge(trial, lambda until: advanced_to(project, until), books)
        except Exception as error:
            if not self.variation:
                self.error = f"the test {self.name!r} could not be judged: {error}"
            judged = not_judged(run, error)
        if judged.problems:
            happenings = list(history(project.epoch))
            lines = [f"{happening.at.isoformat()}  {happening.label}" for happening in happenings]
            stacks = [*_changed_at(run, ending), *ending.stack.splitlines(), *_stacks(project)]
            self._timeline = "\n".join([*lines, *stacks])
            self._picture = svg(sequence(happenings), is_file=True)
        self._judged = judged

    def _books(
        self, ending: Ending, conversation: Conversation, environment: Mapping[str, str]
    ) -> Books | None:
        if ending.has_books:
            return conversation.books
        elsewhere = self._outside.books
        if elsewhere is None:
            return None
        key = self.project.masking.api_key or ""
        own = {**environment, "SANDBOX_API_KEY": key, "SANDBOX_TEST": self.name}
        return lambda: elsewhere.of(self.project, own)

    def _look(self, ending: Ending, conversation: Conversation) -> Showing:
        get: Callable[[str], str | None] = conversation.page if ending.has_pages else page_at
        is_first = self.memory.baseline is None
        pages = pages_of(self.project, get, self._outside.pages, is_first=is_first)
        return Showing(pages, Mails((), 0))


def unended(test: AnnouncedTest | None, variation: ChangedSteps, failure: str | None) -> Ran:
    """Return the result of a run whose test did not finish: the test hangs, or the suite crashed."""
    why = failure or "the suite ended before the test did"
    if test is not None and "longer than" in why:
        problem = BookProblem("hangs", f"the run of the suite did not finish: {why}")
    else:
        problem = BookProblem("not-judged", f"the test did not finish: {why.partition(chr(10))[0]}")
    steps = test.run.steps if test is not None else []
    happened = test.run.happened if test is not None else []
    return Ran(Judged([problem], (), ()), steps, happened or variation, why, "")


def _changed_at(run: RehearsedRun, ending: Ending) -> list[str]:
    """Return the location of the changed call in the shop, if the helper reported it."""
    asked = {step.name: step.about[:2] for step in run.steps if isinstance(step.about, ShopCall)}
    for name in [each.step for each in run.happened if each.step in asked]:
        number = [same for same, call in asked.items() if call == asked[name]].index(name)
        line = _line_of_call(ending, asked[name], number)
        return [f"the changed call is made at {line[0]}:{line[1]}"] if line is not None else []
    return []


def _line_of_call(ending: Ending, call: tuple[str, str], number: int) -> Line | None:
    """Return the line that decided on the nth call with this method and path."""
    placed = [
        ((method, path), PlacedCall(f"{method} {short_path(path)}", shop_lines(stack)))
        for method, path, stack in ending.calls
    ]
    alike = [each for asked, each in placed if asked == call]
    return deciding_line(alike[number], [each for _, each in placed]) if number < len(alike) else None


def _stacks(project: Project) -> list[str]:
    """Return the lines of the error responses from the shop's handlers."""
    tries = [each for delivery in project.epoch.store.deliveries() for each in delivery.attempts]
    answers = [each.reply.body for each in tries if (each.reply.status or 0) >= FAILED]
    return [line for answer in dict.fromkeys(answers) for line in answer.splitlines()]


def _next_hour(now: datetime) -> datetime:
    return now.replace(minute=0, second=0, microsecond=0) + EVERY


def advanced_to(project: Project, until: datetime) -> None:
    """Advance the clock as far as possible, and ignore errors."""
    with suppress(Exception):  # the history lists failed events
        advance_clock(project, {"to": until}, ADVANCE)
