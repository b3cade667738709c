"""Rehearses a test under pytest: runs it unchanged, then in its variations, and reports the findings."""

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import datetime
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from threading import get_ident
from typing import Any, Final
from zlib import crc32

import pytest
from _pytest import runner  # as in plugins that rerun tests

from payment_sandbox.operations.history import history
from payment_sandbox.scenarios.variation import WEBHOOK
from payment_sandbox.scenarios.variations import WEBHOOKS_FIRST
from payment_sandbox.serving.realtime import monotonic_seconds, wall_now
from payment_sandbox.testing.books import BookEntry
from payment_sandbox.testing.clients.in_process import EndlessRun
from payment_sandbox.testing.project import PaymentSandbox
from payment_sandbox.testing.rehearsed_test import FixtureLookup, set_current_test
from payment_sandbox.testing.shops.submitting import Submission, set_submission_choice
from payment_sandbox.web.pictures import sequence, svg
from pytest_payment_sandbox import exploring_options
from pytest_payment_sandbox.hanging import SECONDS_MAX, Watch, allowed_seconds, end_process, last_line
from pytest_payment_sandbox.options import ERROR, review_expected, review_mode
from pytest_payment_sandbox.rehearsal.books import BookProblem
from pytest_payment_sandbox.rehearsal.causes import Glimpse
from pytest_payment_sandbox.rehearsal.exploring import ChangedSteps, Explored, Explorer, Ran, parse_variation
from pytest_payment_sandbox.rehearsal.judging import (
    OF_REVIEW,
    Ends,
    Judged,
    Trial,
    changes_calls,
    given_up,
    hangs,
    judge,
    not_judged,
    read_books,
    unrelated,
)
from pytest_payment_sandbox.rehearsal.leaks import SECRET, all_logs, leaks_in_output, leaks_in_storage
from pytest_payment_sandbox.rehearsal.progress import Progress, duration
from pytest_payment_sandbox.rehearsal.remembering import PytestMemory, TriedVariations
from pytest_payment_sandbox.rehearsal.report import (
    TestReport,
    lines_of,
    report_of,
    summary,
    write,
)
from pytest_payment_sandbox.rehearsal.run import RehearsedRun
from pytest_payment_sandbox.rehearsal.showing import (
    MailBox,
    Showing,
    ShownPage,
    page_in,
    pages_of,
    visited,
    visited_wrong,
)

PROPERTY: Final = "payment_rehearsal"


def tell(report: pytest.TestReport, explored: Explored, item: pytest.Item) -> None:
    """Add the findings of a test's variations to its report; findings fail the test."""
    test = report_of(
        item.nodeid,
        explored,
        lambda finding: f'pytest "{item.nodeid}" --payment-rehearse-only="{finding.name}"',
    )
    report.user_properties.append((PROPERTY, test))
    if explored.findings or explored.unplayed:
        lines = [
            f"payment rehearsal: {summary([test])}",
            "",
            *lines_of(test),
            *explored.unplayed,
            *explored.notes,
        ]
        report.outcome = "failed"
        report.longrepr = "\n".join(lines)


def summarize(config: pytest.Config, terminalreporter: Any) -> None:
    """Print a summary of the rehearsals at the end of a run, and write the report."""
    tests = _rehearsed(terminalreporter)
    if not tests:
        return
    terminalreporter.write_line(f"payment rehearsal: {summary(tests)}")
    notes = Counter(note for test in tests for note in test["notes"])
    for note, count in sorted(notes.items()):
        terminalreporter.write_line(f"  in {count} tests {note}")
    file = config.getoption("payment_rehearse_report")
    if file:
        write(Path(file), tests)
        terminalreporter.write_line(f"  the full report is in {file}")


def _rehearsed(terminalreporter: Any) -> list[TestReport]:
    """Collect the reports of all rehearsed tests, including those of pytest-xdist workers."""
    reports = [report for group in terminalreporter.stats.values() for report in group]
    properties = [each for report in reports for each in getattr(report, "user_properties", ())]
    tests = {value["test"]: value for name, value in properties if name == PROPERTY}
    return [tests[name] for name in sorted(tests)]


BOOKS: Final = "payment_books"
TRACES: Final = "payment_traces"
PAGES: Final = "payment_pages"
RESTART: Final = "payment_shop_restart"
NOT_JUDGED: Final = Judged([], (), ())
NOT_SET_UP: Final = Judged(
    [BookProblem("not-judged", "the test was not set up, so nothing is judged")], (), ()
)


class OneRun:
    """One run of a test: its project is rehearsed as soon as the fixture has created it."""

    def __init__(
        self,
        item: pytest.Item,
        variation: ChangedSteps = (),
        *,
        elsewhere: bool = False,
        works_elsewhere: bool = True,
        baseline: Judged | None = None,
        ends: Ends | None = None,
    ) -> None:
        self.variation = variation
        self._baseline = baseline
        self._ends: Ends = {} if ends is None else ends
        self._item = item
        self.judged: Judged | None = None
        self.timeline = self.picture = ""
        self._elsewhere = elsewhere
        self._works_elsewhere = works_elsewhere
        self._project: PaymentSandbox | None = None
        self._told: FixtureLookup | None = None
        self._run: RehearsedRun | None = None
        self._has_restart = self._has_return = False
        self._thread_id = get_ident()
        self._believed: list[list[BookEntry]] = []
        self._glimpses: list[Glimpse] = []
        self._mails = MailBox()
        self._visits: list[ShownPage] = []
        self._hangs_at = ""  # its position in the code when it was given up
        self.watch: Callable[[], AbstractContextManager[object]] = nullcontext  # wraps the judgement

    def give_up(self, place: str) -> None:
        """Make this run, which takes too long, end at its next call to the sandbox."""
        self._hangs_at = place
        if self._run is not None:
            self._run.is_given_up = True

    def abandoned(self, place: str) -> Ran:
        """Return the result of a run that never ends."""
        steps = self._run.steps if self._run is not None else []
        return Ran(Judged([hangs(last_line(place))], (), ()), steps, self.variation, place, "")

    def attach(self, project: PaymentSandbox, report: FixtureLookup | None = None) -> None:
        """Rehearse the test's project, but no further projects of the same test.

        ``report`` looks up, in a test case, what fixtures provide elsewhere.
        """
        own = project.server.project_of(project.api_key)
        if own is None or self._run is not None:
            return
        self._project, self._told = project, report
        self._run = RehearsedRun(
            own,
            self.variation,
            elsewhere=self._elsewhere,
            visit=self._visit,
            restart=self._restarted,
        )
        self._run.works_elsewhere = self._works_elsewhere
        self._run.on_act = self._mails.mark
        self._run.on_webhook = self._glimpse
        if self._baseline is not None:
            self._run.calls.limit(self._baseline.most_calls)
            self._run.pace.known_busy = self._baseline.busy
        project._on_action = self._observe
        own.rehearse(self._run)
        set_submission_choice(self._pressed)

    def ended(self, failure: BaseException | None) -> None:
        """Judge the run after the end of its test."""
        set_submission_choice(None)
        self._has_restart = self._fixture(RESTART) is not None
        project, run = self._project, self._run
        if project is None or run is None or self.judged is not None:
            return
        self._has_return = project.application is not None
        self.judged = self._ended(project, run, failure)
        if not self.judged.problems:
            return
        self.timeline = self._hangs_at  # the timeline of a hanging run can be very long
        if not self._hangs_at:
            self.timeline = f"{project.timeline()}{_changed_at(run)}"
            self.picture = svg(sequence(history(run.project.epoch)), is_file=True)

    def _ended(self, project: PaymentSandbox, run: RehearsedRun, failure: BaseException | None) -> Judged:
        """Judge a run; if it was given up or cannot be judged, that is its only problem."""
        try:
            if not self._hangs_at:
                with self.watch():
                    return self._judge(project, run, failure)
        except (Exception, EndlessRun) as error:
            if not self.variation and not self._hangs_at:  # it fails the unchanged test
                raise
            if not self._hangs_at:
                return not_judged(run, error)
        run.is_given_up = False
        return given_up(run, last_line(self._hangs_at))

    def _judge(self, project: PaymentSandbox, run: RehearsedRun, failure: BaseException | None) -> Judged:
        is_strict = not self.variation and review_mode(self._item) == ERROR
        besides = unrelated(run.project) if is_strict else []  # before the judgement advances the clock
        why = None if failure is None else f"{type(failure).__name__}: {failure}"
        trial = Trial(
            run,
            self.variation,
            why,
            self._baseline,
            self._believed,
            self._ends,
            lambda: self._look(project, run),
            self._glimpses,
        )
        judged = judge(trial, lambda until: _advance(project, until), self._fixture(BOOKS))
        judged.problems.extend(besides)
        if self._baseline is not None:
            may_fail = changes_calls(self.variation)
            wrong = visited_wrong(self._visits, self._baseline.showing, may_fail=may_fail)
            judged.problems.extend(islice(wrong, 1))
        meant = {f"{OF_REVIEW}{rule}" for rule in review_expected(self._item)}
        judged.problems[:] = [problem for problem in judged.problems if problem.kind not in meant]
        judged.problems.extend(leaks_in_storage(run.project, self._fixture(TRACES)))
        return judged

    def _look(self, project: PaymentSandbox, run: RehearsedRun) -> Showing:
        """Look at the shop's pages and mails as its customers do."""
        mails = self._mails.sent()
        self._mails.close()
        if project.application is None:
            return Showing((), mails)
        browser = project.browser(project.application)
        paths = self._fixture(PAGES) or ()
        return Showing(
            pages_of(run.project, partial(page_in, browser), paths, is_first=self._baseline is None), mails
        )

    def read(self, report: pytest.TestReport) -> None:
        """Look for secrets in the captured logs and output of the test."""
        if self.judged is not None:
            texts = [text for name, text in report.sections if name.startswith("Captured")]
            self.judged.problems.extend(self.leaks(texts))

    def leaks(self, texts: Sequence[str]) -> list[BookProblem]:
        """Find secrets in the logs and in the captured output."""
        return leaks_in_output(self._run.project, texts) if self._run is not None else []

    @property
    def ran(self) -> Ran:
        """The result of the run."""
        run = self._run
        if run is None or self.judged is None:
            return Ran(NOT_SET_UP if self.variation else NOT_JUDGED, [], [], "", "")
        return Ran(
            self.judged,
            run.steps,
            run.happened,
            self.timeline,
            self.picture,
            has_restart=self._has_restart,
            has_return=self._has_return,
            has_customers=True,
        )

    def _pressed(self, method: str, path: str, has_number: bool) -> Submission | None:
        return self._run.press(method, path, has_number=has_number) if self._run is not None else None

    def _visit(self, order: Any, tabs: int) -> None:
        if self._run is not None and self._project is not None and self._project.application is not None:
            browser = self._project.browser(self._project.application)
            self._visits += visited(self._run.project, browser, order, tabs)

    def _observe(self) -> None:
        """Record the shop's current books, on the test's thread only, which may own the database."""
        if get_ident() == self._thread_id:
            with suppress(Exception):  # in the middle of a test, the books may be unreadable
                self._believed.append(read_books(self._fixture(BOOKS))[0])

    def _glimpse(self) -> None:
        """Record the shop's books before a webhook; only the causes of findings need them."""
        if self._run is not None and get_ident() == self._thread_id and self.judged is None:
            with suppress(Exception):  # in the middle of a request, the books may be unreadable
                entries = read_books(self._fixture(BOOKS))[0]
                self._glimpses.append(Glimpse(entries, dict(self._run.statuses)))

    def _restarted(self) -> None:
        restart = self._fixture(RESTART)
        if restart is not None:
            restart()

    def _fixture(self, name: str) -> Any:
        if self._told is not None:
            return self._told(name)
        return getattr(self._item, "funcargs", {}).get(name)


def _changed_at(run: RehearsedRun) -> str:
    """Return the location of the changed call in the shop, as a line after the timeline."""
    if run.changed_at is None:
        return ""
    file, line = run.changed_at
    return f'\nthe changed call is made in File "{file}", line {line}'


def _advance(project: PaymentSandbox, until: datetime) -> None:
    with suppress(Exception):  # an error of a handler: the test has ended
        project.clock.advance(to=until, timeout_seconds=20)


RUN: "pytest.StashKey[OneRun]" = pytest.StashKey()


def is_varied(item: pytest.Item) -> bool:
    """Whether the current run of a test is a variation, whose own report is not shown."""
    run = item.stash.get(RUN, None)
    return run is not None and bool(run.variation)


STOPPED: Final = "the rehearsal was stopped; --payment-rehearse-continue resumes it"


def _progress_of(config: pytest.Config) -> Progress:
    """Create the progress of all rehearsals of a session: lines on the terminal, unless pytest is quiet."""
    terminal: Any = config.pluginmanager.getplugin("terminalreporter")
    is_quiet = terminal is None or config.getoption("verbose") < 0

    def write(line: str) -> None:
        terminal.ensure_newline()
        terminal.write_line(f"payment rehearsal: {line}")
        terminal.flush()

    return Progress(write, is_quiet=is_quiet)


class RehearsedItem:
    """The rehearsals of all tests of a session."""

    def __init__(self, config: pytest.Config, *, budget_seconds: float, only: ChangedSteps = ()) -> None:
        self._until_seconds = monotonic_seconds() + budget_seconds
        self._only = only
        self._left_items = 0
        goes_on = bool(config.getoption("payment_rehearse_continue"))
        self._memory = PytestMemory(getattr(config, "cache", None), goes_on=goes_on)
        self._progress = _progress_of(config)
        self._budget_seconds = budget_seconds
        self._is_stopped = False
        self._problems: set[tuple[str, str]] = set()  # each with its test and kind
        self._fruitful: set[str] = set()  # names of changes with findings in this session
        self.clock = f"frozen@{wall_now().isoformat()}"

    def expect(self, count: int) -> None:
        """Share the budget among this many tests."""
        self._left_items = max(1, count)
        left = duration(self._budget_seconds)
        tests = "1 test" if self._left_items == 1 else f"{self._left_items} tests"
        self._progress.say(f"{tests} in at most {left}; Ctrl-C stops, --payment-rehearse-continue resumes")

    def run(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Run a test unchanged and in its variations, and report it once."""
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        runs = _Runs(item)
        reports, ran = runs.as_it_is()
        explored = None
        if all(report.passed for report in reports) and ran.steps:
            _take_time(item)
            explored = self._explored(item, runs, ran)
        self._left_items -= 1
        reports += _end_shared(item, nextitem)
        for report in reports:
            if explored is not None and report.when == "call":
                tell(report, explored, item)
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if self._is_stopped:
            raise KeyboardInterrupt

    def _explored(self, item: pytest.Item, runs: "_Runs", baseline: Ran) -> Explored:
        now = monotonic_seconds()
        runs.until_seconds = now + max(0.0, self._until_seconds - now) / max(1, self._left_items)
        tried = TriedVariations(baseline, self._memory.tried(item.nodeid))

        def run(variation: ChangedSteps) -> Ran:
            ran = tried.run(variation, runs.varied)
            self._problems |= {(item.nodeid, problem.kind) for problem in ran.judged.problems[:1]}
            self._progress.note(len(self._problems), self._until_seconds, item.name)
            return ran

        runs.explorer = explorer = Explorer(
            run,
            lambda: monotonic_seconds() < runs.until_seconds,
            seed=crc32(item.nodeid.encode()),
            first=self._failed_before(item),
            threads=lambda: runs.works_elsewhere,
            fruitful=self._fruitful,
        )
        only = self._only or _only_of(item)
        if only:
            return explorer.only(only, tried.baseline)
        try:
            runs.listen(baseline)
            explored = explorer.explore(tried.baseline)
        except KeyboardInterrupt:
            self._is_stopped = True
            explored = explorer.so_far([STOPPED], 0)
        self._memory.remember(item.nodeid, explored, tried, is_stopped=self._is_stopped)
        self._fruitful |= {each.change.name for finding in explored.findings for each in finding.variation}
        return explored

    def _failed_before(self, item: pytest.Item) -> list[ChangedSteps]:
        variations = []
        for text in self._memory.failed(item.nodeid):
            with suppress(ValueError):  # the name is from another release
                variations.append(parse_variation(text))
        return variations


def _only_of(item: pytest.Item) -> ChangedSteps:
    """Return the variation that the marker of a test selects.

    Raises:
        pytest.UsageError: it is not a variation.
    """
    marker = item.get_closest_marker("payment_rehearse")
    return _parsed(marker.kwargs.get("only"), item.nodeid) if marker is not None else ()


def _parsed(text: str | None, source: str) -> ChangedSteps:
    try:
        return parse_variation(text) if text else ()
    except ValueError as wrong:
        raise pytest.UsageError(f"{source}: {wrong}") from None


class _Runs:
    """The runs of one test, each under a watch that gives up a hanging run."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self._reports: list[pytest.TestReport] = []
        self._baseline: Ran | None = None
        self._baseline_seconds = 0.0
        self._ends: Ends = {}
        self.until_seconds = 0.0
        self.explorer: Explorer | None = None

    def as_it_is(self) -> tuple[list[pytest.TestReport], Ran]:
        """Run the unchanged test; only its judgement is watched, which has no other time limit."""
        begun_seconds = monotonic_seconds()
        run = OneRun(self._item, ends=self._ends)
        run.watch = lambda: Watch(SECONDS_MAX, run.give_up, lambda place: self._abandon(run, place))
        self._reports, ran = _once(self._item, run)
        self._baseline = ran
        self._baseline_seconds = monotonic_seconds() - begun_seconds
        return list(self._reports), ran

    def varied(self, variation: ChangedSteps) -> Ran:
        """Run a variation of the test."""
        is_early = any(each.change.effect == WEBHOOKS_FIRST for each in variation)
        run = OneRun(
            self._item,
            variation,
            works_elsewhere=not is_early or self.works_elsewhere,
            baseline=self._baseline.judged if self._baseline is not None else None,
            ends=self._ends,
        )
        return self._watched(run)[1]

    def _watched(self, run: OneRun) -> tuple[list[pytest.TestReport], Ran]:
        left_seconds = self.until_seconds - monotonic_seconds()
        limit_seconds = allowed_seconds(left_seconds, self._baseline_seconds)
        with Watch(limit_seconds, run.give_up, lambda place: self._abandon(run, place)):
            return _once(self._item, run)

    def listen(self, baseline: Ran) -> None:
        """Look for secrets in logs of all levels, in a run that serves no other purpose."""
        run = OneRun(self._item)
        with all_logs() as texts:
            self._watched(run)
        if all(problem.kind != SECRET for problem in baseline.judged.problems):
            baseline.judged.problems.extend(run.leaks(texts))

    @cached_property
    def works_elsewhere(self) -> bool:
        """Whether the shop's handlers work on threads other than the test's; False without webhooks."""
        baseline = self._baseline
        if baseline is None or not any(step.kind == WEBHOOK for step in baseline.steps):
            return False
        reports, ran = self._watched(OneRun(self._item, elsewhere=True))
        if any(report.failed for report in reports):
            return False
        return (ran.judged.problems, ran.judged.state) == (baseline.judged.problems, baseline.judged.state)

    def _abandon(self, run: OneRun, place: str) -> None:
        """Report the findings so far, on the thread of a watch, and end the process."""
        ran = run.abandoned(place)
        explorer = self.explorer or Explorer(lambda variation: ran, lambda: False)
        explorer.note(run.variation, ran)
        items = self._item.session.items
        skipped = len(items) - items.index(self._item) - 1
        explored = explorer.so_far([ABANDONED.format(count=skipped)], 0)
        if not self._reports:
            self._reports = [_failed_call(self._item)]
        for report in self._reports:
            if report.when == "call":
                tell(report, explored, self._item)
        end_process(self._item, self._reports)


ABANDONED: Final = (
    "the run ended: code that hangs without a call cannot be stopped; {count} later tests were not run"
)


def _failed_call(item: pytest.Item) -> pytest.TestReport:
    return pytest.TestReport(item.nodeid, item.location, {}, "failed", None, "call")


def prepared(session: pytest.Session) -> RehearsedItem:
    """Create the rehearsal of a session from its options.

    Raises:
        pytest.UsageError: the selected variation is invalid.
    """
    only = _parsed(session.config.getoption("payment_rehearse_only"), "--payment-rehearse-only")
    rehearsal = RehearsedItem(
        session.config, budget_seconds=exploring_options.rehearsal_seconds(session.config), only=only
    )
    workers = int(getattr(session.config, "workerinput", {}).get("workercount", 1))
    rehearsal.expect(sum(exploring_options.is_rehearsed(item) for item in session.items) // workers)
    return rehearsal


def rehearsed_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Judge a run once the test has ended, whether it passed or not."""
    run = item.stash.get(RUN, None)
    try:
        outcome = yield
    except BaseException as failure:
        if run is not None and not isinstance(failure, KeyboardInterrupt):
            run.ended(failure)
        raise
    if run is not None:
        run.ended(None)
    return outcome


def _once(item: pytest.Item, run: OneRun) -> tuple[list[pytest.TestReport], Ran]:
    """Run a test once with new function fixtures; fixtures with a wider scope are reused."""
    item.stash[RUN] = run
    initialize: Any = getattr(item, "_initrequest", None)
    if initialize is not None:
        initialize()
    reports = [runner.call_and_report(item, "setup", log=False)]
    if reports[0].passed:
        set_current_test(run)
        reports.append(runner.call_and_report(item, "call", log=False))
        set_current_test(None)
        run.read(reports[-1])
    parent: Any = item.parent
    reports.append(runner.call_and_report(item, "teardown", log=False, nextitem=parent))
    return reports, run.ran


def _take_time(item: pytest.Item) -> None:
    """Cancel the time limit of pytest-timeout for a test: all its variations take longer."""
    cancel = getattr(item.ihook, "pytest_timeout_cancel_timer", None)
    if cancel is not None:
        cancel(item=item)


def _end_shared(item: pytest.Item, nextitem: pytest.Item | None) -> list[pytest.TestReport]:
    """Tear down the fixtures that no later test needs; return a report if that fails."""
    teardown = runner.CallInfo.from_call(
        lambda: item.session._setupstate.teardown_exact(nextitem), when="teardown"
    )
    if teardown.excinfo is None:
        return []
    return [item.ihook.pytest_runtest_makereport(item=item, call=teardown)]
