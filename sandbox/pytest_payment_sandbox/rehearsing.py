"""Rehearses tests under pytest: runs each test unchanged, then in its variations, and reports findings."""

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import datetime
from functools import cached_property, partial
from itertools import islice
from os.path import relpath
from pathlib import Path
from threading import get_ident
from typing import Any, Final
from zlib import crc32

import pytest
from _pytest import runner  # also used by other plugins that rerun tests

from payment_sandbox.scenarios.variation import ACTION, NO_TRAITS, WEBHOOK, Trait
from payment_sandbox.scenarios.variation_catalogue import WEBHOOKS_FIRST
from payment_sandbox.serving.realtime import monotonic_seconds, wall_now
from payment_sandbox.testing.clients.in_process import EndlessRun
from payment_sandbox.testing.project_fixture import PaymentSandbox
from payment_sandbox.testing.rehearsed_test import FixtureLookup, set_current_test
from payment_sandbox.testing.shops.submitting import set_submission_chooser
from pytest_payment_sandbox.hanging import RunWatchdog, cancel_timeout, end_process, last_frame
from pytest_payment_sandbox.plugin_options import (
    ERROR,
    expected_rules,
    is_rehearsed,
    rehearsal_seconds,
    review_mode,
)
from pytest_payment_sandbox.rehearsal.budget import RUN_SECONDS_MAX, Budget, format_duration
from pytest_payment_sandbox.rehearsal.causes import BooksSnapshot
from pytest_payment_sandbox.rehearsal.changes import ChangedSteps, parse_variation, variation_name
from pytest_payment_sandbox.rehearsal.driver import Progress, RehearsalDriver, RehearsalOutcome
from pytest_payment_sandbox.rehearsal.judging import (
    REVIEW_PREFIX,
    RunVerdict,
    Trial,
    error_problem,
    find_unrelated_mistakes,
    hang_problem,
    has_changed_calls,
    judge_unfinished,
    read_books,
)
from pytest_payment_sandbox.rehearsal.leaks import LEAK_KIND, collect_logs, leaks_in_output, leaks_in_storage
from pytest_payment_sandbox.rehearsal.places import SourceLine
from pytest_payment_sandbox.rehearsal.planning import Hints, Plan, Run
from pytest_payment_sandbox.rehearsal.reconciliation import BookProblem
from pytest_payment_sandbox.rehearsal.report import (
    BUDGET_OPTION,
    TestReport,
    lines_of,
    report_of,
    rows_of,
    save,
    summary,
)
from pytest_payment_sandbox.rehearsal.run import RehearsedRun, RunningTest
from pytest_payment_sandbox.rehearsal.showing import (
    CustomerView,
    Mailbox,
    ShownPage,
    find_visit_problems,
    open_page,
    read_pages,
    visit_shop,
)
from pytest_payment_sandbox.rehearsal.timelines import describe_timeline

REHEARSAL_PROPERTY: Final = "payment_rehearsal"
REPEATED_OPTIONS: Final = ("scenario", "review", "seed")


def add_findings(report: pytest.TestReport, outcome: RehearsalOutcome, item: pytest.Item) -> None:
    """Add the findings from a test's variations to the test's report; findings fail the test."""
    test = report_of(item.nodeid, outcome, partial(_rerun_command, item))
    report.user_properties.append((REHEARSAL_PROPERTY, test))
    if outcome.findings or outcome.unplayed:
        title = f"payment rehearsal: {summary([test])}"
        report.outcome = "failed"
        report.longrepr = "\n".join([title, "", *lines_of(test), *outcome.unplayed, *test["notes"]])


def _rerun_command(item: pytest.Item, variation: str) -> str:
    """Return the command that reruns a variation in the current folder, with the options of this run."""
    values = {option: item.config.getoption(f"payment_{option}") for option in REPEATED_OPTIONS}
    options = [f' "--payment-{option}={value}"' for option, value in values.items() if value is not None]
    name = f"{relpath(item.path)}{item.nodeid[item.nodeid.find('::') :]}"
    return f'pytest "{name}"{"".join(options)} --payment-rehearse-only="{variation}"'


def summarize(config: pytest.Config, terminalreporter: Any) -> None:
    """Print a summary of the rehearsals at the end of a session, and write the report."""
    tests = _collect_reports(terminalreporter)
    if not tests:
        return
    terminalreporter.write_line(f"payment rehearsal: {summary(tests)}")
    for line in rows_of(tests):
        terminalreporter.write_line(f"  {line}")
    notes = Counter(note for test in tests for note in test["notes"])
    for note, count in sorted(notes.items()):
        terminalreporter.write_line(f"  in {'1 test' if count == 1 else f'{count} tests'}: {note}")
    file = config.getoption("payment_rehearse_report")
    if file:
        save(Path(file), {"tests": tests})
        terminalreporter.write_line(f"  the full report is in {file}")


def _collect_reports(terminalreporter: Any) -> list[TestReport]:
    """Collect the reports on all rehearsed tests, including tests on pytest-xdist workers."""
    reports = [report for group in terminalreporter.stats.values() for report in group]
    properties = [each for report in reports for each in getattr(report, "user_properties", ())]
    tests = {value["test"]: value for name, value in properties if name == REHEARSAL_PROPERTY}
    return [tests[name] for name in sorted(tests)]


BOOKS_FIXTURE: Final = "payment_books"
TRACES_FIXTURE: Final = "payment_traces"
PAGES_FIXTURE: Final = "payment_pages"
RESTART_FIXTURE: Final = "payment_shop_restart"
NO_VERDICT: Final = RunVerdict([], (), ())
SETUP_FAILED_VERDICT: Final = RunVerdict(
    [BookProblem("not-judged", "the test's set-up failed, so nothing was judged")], (), ()
)


class ItemRun:
    """One run of a test; the rehearsal starts as soon as a fixture has created the test's project."""

    def __init__(
        self,
        item: pytest.Item,
        variation: ChangedSteps = (),
        *,
        is_threaded: bool = False,
        is_thread_safe: bool = True,
        baseline: RunVerdict | None = None,
    ) -> None:
        self.variation = variation
        self._baseline = baseline
        self._item = item
        self.verdict: RunVerdict | None = None
        self.timeline = ""
        self._line: SourceLine | None = None
        self._is_threaded = is_threaded
        self._is_thread_safe = is_thread_safe
        self._project: PaymentSandbox | None = None
        self._lookup: FixtureLookup | None = None
        self._run: RehearsedRun | None = None
        self._traits = NO_TRAITS
        self._thread_id = get_ident()
        self._snapshots: list[BooksSnapshot] = []
        self._emails = Mailbox()
        self._visits: list[ShownPage] = []
        self._opened: dict[str, str] = {}  # the pages that the test has opened, with its cookies
        self._hang_location = ""  # where the code was when the run was abandoned
        self.watch: Callable[[], AbstractContextManager[object]] = nullcontext  # entered for judging
        self.budget = Budget(RUN_SECONDS_MAX)

    def stop_soon(self, location: str) -> None:
        """Make a run that takes too long stop at its next call to the sandbox."""
        self._hang_location = location
        if self._run is not None:
            self._run.is_abandoned = True

    @property
    def is_cut_off(self) -> bool:
        """Whether the run was stopped at the end of the rehearsal's budget, before it could be judged."""
        return bool(self._hang_location) and self.budget.is_short

    def abandoned_result(self, location: str) -> Run:
        """Return the result of a run that cannot be stopped."""
        steps = self._run.steps if self._run is not None else []
        verdict = RunVerdict([hang_problem(last_frame(location))], (), ())
        return Run(verdict, steps, self.variation, location)

    def attach(self, project: PaymentSandbox, lookup: FixtureLookup | None = None) -> None:
        """Rehearse the test's project, but no other projects of the same test.

        ``lookup`` returns the methods of a test case that correspond to fixtures, such as the books.
        """
        own = project.server.project_of(project.api_key)
        if own is None or self._run is not None:
            return
        self._project, self._lookup = project, lookup
        test = RunningTest(self._visit, self._restart_shop, self._observe)
        self._run = RehearsedRun(own, self.variation, is_threaded=self._is_threaded, test=test)
        self._run.is_thread_safe = self._is_thread_safe
        if self._baseline is not None:
            self._run.follow(self._baseline.most_calls, self._baseline.busy)
        own.rehearse(self._run)
        set_submission_chooser(self._run.vary_submission, self._opened.__setitem__)

    def end(self, failure: BaseException | None) -> None:
        """Judge the run after the end of its test."""
        set_submission_chooser(None)
        project, run = self._project, self._run
        if project is None or run is None or self.verdict is not None:
            return
        self._traits |= Trait.RETURN if project.application is not None else NO_TRAITS
        self._traits |= Trait.RESTART if self._get_fixture(RESTART_FIXTURE) is not None else NO_TRAITS
        try:
            self.verdict = self._judge_or_abandon(project, run, failure)
        finally:
            self._emails.close()
        if not self.verdict.problems:
            return
        if self._hang_location:  # the timeline of a hanging run may be very long
            self.timeline = self._hang_location
        else:
            self._line = run.find_changed_line()
            self.timeline = describe_timeline(run)

    def _judge_or_abandon(
        self, project: PaymentSandbox, run: RehearsedRun, failure: BaseException | None
    ) -> RunVerdict:
        """Judge a run; if it was abandoned or cannot be judged, report only that problem."""
        try:
            if not self._hang_location:
                with self.watch():
                    return self._judge(project, run, failure)
        except (Exception, EndlessRun) as error:
            if not self.variation and not self._hang_location:  # an error must fail the unchanged test
                raise
            if not self._hang_location:
                return judge_unfinished(run, error_problem(error))
        run.is_abandoned = False
        return judge_unfinished(run, hang_problem(last_frame(self._hang_location)))

    def _judge(self, project: PaymentSandbox, run: RehearsedRun, failure: BaseException | None) -> RunVerdict:
        is_strict = not self.variation and review_mode(self._item) == ERROR
        unrelated = find_unrelated_mistakes(run.project) if is_strict else []  # before the clock advances
        reason = None if failure is None else f"{type(failure).__name__}: {failure}"
        trial = Trial(
            run,
            self.variation,
            reason,
            self._baseline,
            partial(self._read_view, project, run, twice=self._baseline is None),
            partial(self._advance, project),
            self._get_fixture(BOOKS_FIXTURE),
            self._snapshots,
        )
        verdict = trial.verdict()
        verdict.problems.extend(unrelated)
        if self._baseline is not None:
            may_fail = has_changed_calls(self.variation)
            problems = find_visit_problems(self._visits, self._baseline.view, may_fail=may_fail)
            verdict.problems.extend(islice(problems, 1))
        expected_kinds = {f"{REVIEW_PREFIX}{rule}" for rule in expected_rules(self._item)}
        verdict.problems[:] = [problem for problem in verdict.problems if problem.kind not in expected_kinds]
        verdict.problems.extend(leaks_in_storage(run.project, self._get_fixture(TRACES_FIXTURE)))
        return verdict

    def _advance(self, project: PaymentSandbox, until: datetime) -> None:
        with suppress(Exception):  # errors from handlers are ignored, because the test has ended
            project.clock.advance(to=until, timeout_seconds=self.budget.wait_seconds)

    def _read_view(self, project: PaymentSandbox, run: RehearsedRun, *, twice: bool) -> CustomerView:
        """Read the shop's pages and emails as its customers do."""
        emails = self._emails.comparable_emails()
        if project.application is None:
            return CustomerView((), emails)
        browser = project.browser(project.application)
        paths = self._get_fixture(PAGES_FIXTURE) or ()
        opened = self._opened if self._get_fixture(BOOKS_FIXTURE) is None else {}
        return CustomerView(
            read_pages(run, partial(open_page, browser, opened), paths, opened, twice=twice),
            emails,
        )

    def check_output(self, report: pytest.TestReport) -> None:
        """Add problems for secrets in the captured logs and output of the test."""
        if self.verdict is not None:
            texts = [text for name, text in report.sections if name.startswith("Captured")]
            self.verdict.problems.extend(self.find_leaks(texts))

    def find_leaks(self, texts: Sequence[str]) -> list[BookProblem]:
        """Find secrets in logs and captured output."""
        return leaks_in_output(self._run.project, texts) if self._run is not None else []

    @property
    def result(self) -> Run:
        """The result of the run."""
        run = self._run
        if run is None or self.verdict is None:
            return Run(SETUP_FAILED_VERDICT if self.variation else NO_VERDICT)
        return Run(self.verdict, run.steps, run.applied, self.timeline, self._line, self._traits)

    def _visit(self, order: Any, tabs: int) -> None:
        if self._run is not None and self._project is not None and self._project.application is not None:
            browser = self._project.browser(self._project.application)
            self._visits += visit_shop(self._run.project, browser, order, tabs)

    def _observe(self, kind: str) -> None:
        """Record the shop's books before a step, on the test's thread only, which may own the database."""
        if kind == ACTION:
            self._emails.mark_first_action()
        if self._run is not None and get_ident() == self._thread_id and self.verdict is None:
            with suppress(Exception):  # in the middle of a request, the books may be unreadable
                entries = read_books(self._get_fixture(BOOKS_FIXTURE))[0]
                self._snapshots.append(BooksSnapshot(entries, dict(self._run.statuses)))

    def _restart_shop(self) -> None:
        restart = self._get_fixture(RESTART_FIXTURE)
        if restart is not None:
            restart()

    def _get_fixture(self, name: str) -> Any:
        if self._lookup is not None:
            return self._lookup(name)
        return getattr(self._item, "funcargs", {}).get(name)


RUN_KEY: "pytest.StashKey[ItemRun]" = pytest.StashKey()
STOPPED_NOTE: Final = "the rehearsal was stopped"
CACHE_KEY: Final = "payment-rehearsal"


def is_variation(item: pytest.Item) -> bool:
    """Whether the current run of a test is a variation, whose report is not shown."""
    run = item.stash.get(RUN_KEY, None)
    return run is not None and bool(run.variation)


def create_progress(config: pytest.Config) -> Progress:
    """Create the progress display for a session's rehearsals, on the terminal."""
    terminal: Any = config.pluginmanager.getplugin("terminalreporter")

    def write_line(line: str) -> None:
        if terminal is not None:
            terminal.ensure_newline()
            if terminal._tw.width_of_current_line:  # under -q, ensure_newline does nothing
                terminal.line("")
            terminal.write_line(f"payment rehearsal: {line}")
            terminal.flush()

    return Progress(write_line)


class SessionRehearsal:
    """The rehearsals of all tests in a session."""

    def __init__(self, session: pytest.Session) -> None:
        """Read the options of a session.

        Raises:
            pytest.UsageError: the selected variation is invalid.
        """
        config = session.config
        workers = int(getattr(config, "workerinput", {}).get("workercount", 1))
        items = sum(is_rehearsed(item) for item in session.items) // workers
        seconds = rehearsal_seconds(config)
        self._budget = Budget(seconds)
        self._only = _parse_variation(config.getoption("payment_rehearse_only"), "--payment-rehearse-only")
        self._remaining_items = max(1, items)
        self._cache: Any = getattr(config, "cache", None)
        self._progress = create_progress(config)
        self._fruitful: set[str] = set()  # names of changes with findings in this session
        self.clock = f"frozen@{wall_now().isoformat()}"
        tests = "1 test" if items == 1 else f"{items} tests"
        self._progress.write_line(
            f"rehearsing {tests} in at most {format_duration(seconds)} ({BUDGET_OPTION}); Ctrl-C stops"
        )

    def run(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Run a test unchanged and in its variations, and report the test once."""
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        player = ItemPlayer(item)
        reports = player.run_unchanged()
        outcome, is_stopped = None, False
        if all(report.passed for report in reports) and player.baseline.steps:
            cancel_timeout(item)
            outcome, is_stopped = self._rehearse(item, player)
        self._remaining_items -= 1
        reports += _teardown_shared(item, nextitem)
        for report in reports:
            if outcome is not None and report.when == "call":
                add_findings(report, outcome, item)
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if is_stopped:
            raise KeyboardInterrupt

    def _rehearse(self, item: pytest.Item, player: "ItemPlayer") -> tuple[RehearsalOutcome, bool]:
        player.budget = budget = self._budget.share(self._remaining_items)
        only = self._only if self._only is not None else _variation_of_marker(item)
        player.is_selected = only is not None
        plan = Plan(
            player.baseline,
            budget.has_time,
            hints=Hints(crc32(item.nodeid.encode()), self._failed_variations(item), self._fruitful),
            can_use_threads=lambda: player.is_thread_safe,
            only=only,
        )
        player.driver = driver = RehearsalDriver(item.nodeid, plan, player, budget, self._progress)
        if not only:
            player.find_leaks_in_logs()
        outcome = driver.rehearse()
        if driver.is_stopped:
            outcome = outcome._replace(notes=[*outcome.notes, STOPPED_NOTE])
        if only is None:
            self._remember(item, outcome)
        return outcome, driver.is_stopped

    def _remember(self, item: pytest.Item, outcome: RehearsalOutcome) -> None:
        """Remember the variations and changes with findings, which are tried first in the future."""
        variations = [finding.variation for finding in outcome.findings if finding.variation]
        self._fruitful |= {each.change.name for variation in variations for each in variation}
        if self._cache is not None:
            self._cache.set(_cache_key(item), list(map(variation_name, variations)))

    def _failed_variations(self, item: pytest.Item) -> list[ChangedSteps]:
        """Return the variations with findings in the last rehearsal."""
        variations = []
        for text in self._cache.get(_cache_key(item), []) if self._cache is not None else ():
            with suppress(ValueError):  # the name is from another release
                variations.append(parse_variation(text))
        return variations


def _cache_key(item: pytest.Item) -> str:
    return f"{CACHE_KEY}/{crc32(item.nodeid.encode())}"


def _variation_of_marker(item: pytest.Item) -> ChangedSteps | None:
    """Return the variation that a test's marker selects.

    Raises:
        pytest.UsageError: the marker's value is not a variation.
    """
    marker = item.get_closest_marker("payment_rehearse")
    return _parse_variation(marker.kwargs.get("only"), item.nodeid) if marker is not None else None


def _parse_variation(text: str | None, source: str) -> ChangedSteps | None:
    try:
        return parse_variation(text) if text else None
    except ValueError as wrong:
        raise pytest.UsageError(f"{source}: {wrong}") from None


class ItemPlayer:
    """Plays the variations of one test by running the test again, under a watchdog."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self._reports: list[pytest.TestReport] = []
        self._baseline_seconds = 0.0
        self.baseline = Run(NO_VERDICT)
        self.budget = Budget(0)
        self.is_selected = False  # whether the user has named the variation
        self.driver: RehearsalDriver | None = None

    def run_unchanged(self) -> list[pytest.TestReport]:
        """Run the unchanged test; the watchdog covers only the judging, which has no other time limit."""
        started_seconds = monotonic_seconds()
        run = ItemRun(self._item)
        run.watch = lambda: self._watch(run, Budget(RUN_SECONDS_MAX))
        self._reports = _run_once(self._item, run)
        self.baseline = run.result
        self._baseline_seconds = monotonic_seconds() - started_seconds
        return list(self._reports)

    def play(self, variation: ChangedSteps) -> Run | None:
        """Run the test with a variation; return None if the run was cut off at the end of the budget."""
        run = self._run_variation(variation, must_end=self.is_selected)
        return None if run.is_cut_off else run.result

    def replay(self, variation: ChangedSteps) -> Run:
        """Run the test with a variation to the end."""
        return self._run_variation(variation, must_end=True).result

    def _run_variation(self, variation: ChangedSteps, *, must_end: bool) -> "ItemRun":
        is_early = any(each.change.effect == WEBHOOKS_FIRST for each in variation)
        run = ItemRun(
            self._item,
            variation,
            is_thread_safe=not is_early or self.is_thread_safe,
            baseline=self.baseline.verdict if variation else None,
        )
        if variation:
            self._run_watched(run, must_end=must_end)
            return run
        with collect_logs() as texts:
            self._run_watched(run, must_end=must_end)
        if all(each.kind != LEAK_KIND for each in run.result.verdict.problems):
            run.result.verdict.problems.extend(run.find_leaks(texts))
        return run

    def _run_watched(self, run: "ItemRun", *, must_end: bool = True) -> list[pytest.TestReport]:
        budget = self.budget.for_run(self._baseline_seconds, must_end=must_end)
        with self._watch(run, budget), pytest.MonkeyPatch.context() as changed:
            changed.setattr(self._item.config.option, "tbstyle", "native")  # nobody reads these reports
            return _run_once(self._item, run)

    def _watch(self, run: "ItemRun", budget: Budget) -> RunWatchdog:
        run.budget = budget
        return RunWatchdog(
            budget.remaining_seconds,
            run.stop_soon,
            lambda location: self._abandon(run, location),
            budget.missing_seconds,
        )

    def find_leaks_in_logs(self) -> None:
        """Find secrets in logs of all levels, in a separate run of the unchanged test."""
        run = self.replay(())
        problems = self.baseline.verdict.problems
        if all(problem.kind != LEAK_KIND for problem in problems):
            problems.extend(each for each in run.verdict.problems if each.kind == LEAK_KIND)

    @cached_property
    def is_thread_safe(self) -> bool:
        """Whether the shop's handlers work on threads other than the test's; False if none ran."""
        if not any(step.kind == WEBHOOK for step in self.baseline.steps):
            return False
        run = ItemRun(self._item, is_threaded=True)
        if any(report.failed for report in self._run_watched(run)):
            return False
        ends = [
            ({problem.kind for problem in each.problems} - {LEAK_KIND}, each.state[1:])
            for each in (run.result.verdict, self.baseline.verdict)
        ]
        return ends[0] == ends[1]

    def _abandon(self, run: "ItemRun", location: str) -> None:
        """Report the findings so far, on the watchdog's thread, and exit the process."""
        item, nodeid, result = self._item, self._item.nodeid, run.abandoned_result(location)
        driver = self.driver or RehearsalDriver(
            nodeid, Plan(result, lambda: False), self, self.budget, Progress(print)
        )
        items = item.session.items
        note = ABANDONED_NOTE.format(count=len(items) - items.index(item) - 1)
        outcome = driver.abandon(run.variation, result)
        outcome = outcome._replace(notes=[*outcome.notes, note])
        if not self._reports:
            self._reports = [pytest.TestReport(nodeid, item.location, {}, "failed", None, "call")]
        for report in self._reports:
            if report.when == "call":
                add_findings(report, outcome, item)
        end_process(item, self._reports)


ABANDONED_NOTE: Final = (
    "the process exits: hanging code without a call cannot be stopped; tests not run: {count}"
)


def run_and_judge(item: pytest.Item) -> Generator[None, Any, Any]:
    """Run a test, and judge the run whether the test passes or fails."""
    run = item.stash.get(RUN_KEY, None)
    try:
        outcome = yield
    except BaseException as failure:
        if run is not None and not isinstance(failure, KeyboardInterrupt):
            run.end(failure)
        raise
    if run is not None:
        run.end(None)
    return outcome


def _run_once(item: pytest.Item, run: ItemRun) -> list[pytest.TestReport]:
    """Run a test once with new function-scoped fixtures; reuse fixtures with a wider scope."""
    item.stash[RUN_KEY] = run
    initialize: Any = getattr(item, "_initrequest", None)
    if initialize is not None:
        initialize()
    reports = [runner.call_and_report(item, "setup", log=False)]
    if reports[0].passed:
        set_current_test(run)
        reports.append(runner.call_and_report(item, "call", log=False))
        set_current_test(None)
        run.check_output(reports[-1])
    parent: Any = item.parent
    reports.append(runner.call_and_report(item, "teardown", log=False, nextitem=parent))
    return reports


def _teardown_shared(item: pytest.Item, nextitem: pytest.Item | None) -> list[pytest.TestReport]:
    """Tear down the fixtures that no later test needs; return a report if the teardown fails."""
    teardown = runner.CallInfo.from_call(
        lambda: item.session._setupstate.teardown_exact(nextitem), when="teardown"
    )
    if teardown.excinfo is None:
        return []
    return [item.ihook.pytest_runtest_makereport(item=item, call=teardown)]
