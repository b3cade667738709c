"""The driver of rehearsals: runs a test unchanged, then with one change at a time, and reports findings."""

import json
from collections import Counter
from collections.abc import Callable, Generator
from itertools import chain
from os.path import relpath
from pathlib import Path
from typing import Any, Final

import pytest
from _pytest import runner  # also used by other plugins that rerun tests

from payment_sandbox.serving.realtime import processor_seconds, wall_now
from payment_sandbox.testing.shops.submitting import set_observer
from pytest_payment_sandbox.plugin_options import OFF, rehearsal_seconds, review_mode
from pytest_payment_sandbox.rehearsal.judging import REVIEW_PREFIX, judge
from pytest_payment_sandbox.rehearsal.leaks import LEAK_KIND, collect_logs, find_leaks
from pytest_payment_sandbox.rehearsal.report import (
    NO_BOOKS_NOTE,
    TestReport,
    check_report,
    cut_lines,
    finding_record,
    lines_of,
    summary,
)
from pytest_payment_sandbox.rehearsal.run import TestRun
from pytest_payment_sandbox.rehearsal.scenes import RESTART_FIXTURE
from pytest_payment_sandbox.rehearsal.steps import UNCHANGED, Change, plan
from pytest_payment_sandbox.rehearsal.variations import VARIATIONS, parse_change
from pytest_payment_sandbox.rehearsal.verdicts import BOOKS_FIXTURE, Verdict
from pytest_payment_sandbox.reports import expected_rules

REHEARSAL_PROPERTY: Final = "payment_rehearsal"
REPEATED_OPTIONS: Final = ("scenario", "review", "seed")
UNANSWERED_NOTE: Final = "nothing was changed: the shop answers no webhook in time"
RUN_KEY: "pytest.StashKey[TestRun]" = pytest.StashKey()
CLOCK_KEY: "pytest.StashKey[str]" = pytest.StashKey()


def clock_of(session: pytest.Session) -> str:
    """Return the clock at the start of each run, so that all runs of a session begin at the same time."""
    return session.stash.setdefault(CLOCK_KEY, f"frozen@{wall_now().isoformat()}")


def run_and_judge(item: pytest.Item) -> Generator[None, Any, Any]:
    """Run a test, and judge the run whether the test passes or fails."""
    run = item.stash[RUN_KEY]
    try:
        outcome = yield
    except BaseException as failure:
        if not isinstance(failure, KeyboardInterrupt):
            run.end(failure)
        raise
    run.end(None)
    return outcome


def rehearse(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Run a test unchanged and in its variations, and report the test once."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    rehearsal = ItemRehearsal(item)
    reports = rehearsal.run_unchanged()
    test: TestReport | None = None
    if all(report.passed for report in reports) and rehearsal.baseline.steps:
        cancel_timeout = getattr(item.ihook, "pytest_timeout_cancel_timer", None)
        if cancel_timeout is not None:  # variations take longer than the test
            cancel_timeout(item=item)
        test = rehearsal.run_variations()
    teardown_exact = item.session._setupstate.teardown_exact  # of fixtures that no later test needs
    teardown = runner.CallInfo.from_call(lambda: teardown_exact(nextitem), when="teardown")
    if teardown.excinfo is not None:
        reports.append(item.ihook.pytest_runtest_makereport(item=item, call=teardown))
    for report in reports:
        if test is not None and report.when == "call":
            report.user_properties.append((REHEARSAL_PROPERTY, test))
            if test["findings"] or test["left"] or test["cut_off"]:
                report.outcome = "failed"
                report.longrepr = "\n".join([f"payment rehearsal: {summary([test])}", "", *lines_of(test)])
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


class ItemRehearsal:
    """The rehearsal of one test; its time limit is in seconds of the processor."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self._findings: dict[tuple[str, str], dict[str, Any]] = {}  # by kinds of problem and step
        self._usual: set[str] = set()  # kinds of problems of the unchanged test
        self._cut_off: list[str] = []
        self._notes: list[str] = []
        self._tried = self._left = 0
        self._seconds = rehearsal_seconds(item.config)
        self._until = processor_seconds() + self._seconds
        self.baseline = self._create_run(None)

    def _has_time(self) -> bool:
        return processor_seconds() < self._until

    def _create_run(self, change: Change | None, baseline: Verdict | None = None) -> TestRun:
        def find(name: str) -> Any:
            return getattr(self._item, "funcargs", {}).get(name)

        return TestRun(change, baseline, find, self._has_time, judge)

    def run_unchanged(self) -> list[pytest.TestReport]:
        """Run the unchanged test."""
        self._until += self._seconds  # the first run has a limit of its own
        reports = self._run(self.baseline)
        self._until = processor_seconds() + self._seconds
        return reports

    def run_variations(self) -> TestReport:
        """Run the planned variations until the time limit; return the report."""
        verdict = self.baseline.verdict
        assert verdict is not None, "the unchanged test was judged"
        if self.baseline.find_fixture(BOOKS_FIXTURE) is None:
            self._notes.append(NO_BOOKS_NOTE)
        self._judge_unchanged(verdict)
        if verdict.answers_no_webhook:
            self._notes.append(UNANSWERED_NOTE)
        else:
            self._run_all(verdict)
        return {
            "test": self._item.nodeid,
            "variations": self._tried,
            "left": self._left,
            "cut_off": self._cut_off,
            "notes": self._notes,
            "findings": [*self._findings.values()],
        }

    def _run_all(self, verdict: Verdict) -> None:
        can_restart = self.baseline.find_fixture(RESTART_FIXTURE) is not None
        changes = plan(self.baseline.steps, VARIATIONS, can_restart=can_restart)
        only = _selected(self._item)
        if only is not None:
            changes = [change for change in [parse_change(only)] if change is not None]
        for number, change in enumerate(changes):
            if not self._has_time():
                self._left = len(changes) - number
                return
            self._try(change, verdict)

    def _judge_unchanged(self, verdict: Verdict) -> None:
        """Report what the unchanged test shows; its second run collects logs of all levels."""
        again, texts = self._create_run(None), list[str]()
        with collect_logs(texts):
            reports = self._run(again)
        if again.verdict is None:
            return
        output = [text for report in reports for name, text in report.sections if name.startswith("Captured")]
        leaks = list(find_leaks(again.project, None, [*texts, *output]))
        shown = {problem.kind for problem in again.verdict.problems}
        for problem in [*verdict.problems, *leaks]:
            if problem.kind in shown or problem.kind == LEAK_KIND:
                self._usual.add(problem.kind)
                self._add(problem, None, again)

    def _try(self, change: Change, baseline: Verdict) -> None:
        run = self._create_run(change, baseline)
        self._run(run)
        self._tried += 1
        if run.is_cut_off:
            self._cut_off.append(change.name)
            return
        if not run.is_applied and _selected(self._item) is not None:
            self._cut_off.append(f"the test has no step for {change.name}")
        problem = self._suspect(run)
        if problem is None:
            return
        known = self._findings.get((problem.kind, change.step.partition(":")[0]))
        if known is not None:
            known["also_after"].append(change.name)
            return
        again = self._create_run(change, baseline)
        self._until += self._seconds  # what is suspected is decided
        self._run(again)
        self._until -= self._seconds
        if again.is_cut_off:
            self._cut_off.append(change.name)
        elif again.verdict is not None:
            shown = {each.kind: each for each in again.verdict.problems}
            if problem.kind in shown:
                self._add(shown[problem.kind], change, again)

    def _suspect(self, run: TestRun) -> Any:
        """Return the first problem that the unchanged test has not; the others have the same cause."""
        problems = run.verdict.problems if run.verdict is not None else []
        fresh = (each for each in problems if not (each.kind in self._usual or self._is_expected(each.kind)))
        return min(fresh, key=lambda each: each.kind.startswith(REVIEW_PREFIX), default=None)

    def _is_expected(self, kind: str) -> bool:
        rule = kind.removeprefix(REVIEW_PREFIX)
        return rule in expected_rules(self._item) or (rule != kind and review_mode(self._item) == OFF)

    def _add(self, problem: Any, change: Change | None, run: TestRun) -> None:
        if self._is_expected(problem.kind):
            return
        name, kind, sentence = UNCHANGED, UNCHANGED, "without any change"
        if change is not None:
            name, kind = change.name, change.step.partition(":")[0]
            sentence = run.marks[-1][1] if run.marks else change.name
        timeline = run.verdict.timeline if run.verdict is not None else ""
        record = finding_record(problem, name, sentence, timeline, _rerun_command(self._item, name))
        self._findings.setdefault((problem.kind, kind), record)

    def _run(self, run: TestRun) -> list[pytest.TestReport]:
        """Run the test once with new function-scoped fixtures; reuse fixtures with a wider scope."""
        item = self._item
        item.stash[RUN_KEY] = run
        initialize: Any = getattr(item, "_initrequest", None)
        if initialize is not None:
            initialize()
        set_observer(run)
        style = item.config.option.tbstyle
        if run.change is not None:
            item.config.option.tbstyle = "native"  # nobody reads these reports
        try:
            reports = [runner.call_and_report(item, "setup", log=False)]
            if reports[0].passed:
                reports.append(runner.call_and_report(item, "call", log=False))
            parent: Any = item.parent
            reports.append(runner.call_and_report(item, "teardown", log=False, nextitem=parent))
        finally:
            set_observer(None)
            item.config.option.tbstyle = style
        return reports


def _selected(item: pytest.Item) -> str | None:
    marker = item.get_closest_marker("payment_rehearse")
    option: str | None = item.config.getoption("payment_rehearse_only")
    if not option and marker is not None:
        option = marker.kwargs.get("only")
        _check(parse_change, option, item.nodeid)
    return option or None


def check_options(config: pytest.Config) -> None:
    """Validate the variation and the file of the report.

    Raises:
        pytest.UsageError: an option is invalid.
    """
    _check(parse_change, config.getoption("payment_rehearse_only"), "--payment-rehearse-only")
    _check(check_report, config.getoption("payment_rehearse_report"), "--payment-rehearse-report")


def _check(read: Callable[[str], object], text: str | None, source: str) -> None:
    try:
        _ = read(text) if text else None
    except ValueError as wrong:
        raise pytest.UsageError(f"{source}: {wrong}") from None


def _rerun_command(item: pytest.Item, variation: str) -> str:
    """Return the command that reruns a variation in the current folder, with the options of this run."""
    values = {option: item.config.getoption(f"payment_{option}") for option in REPEATED_OPTIONS}
    options = [f' "--payment-{option}={value}"' for option, value in values.items() if value is not None]
    name = f"{relpath(item.path)}{item.nodeid[item.nodeid.find('::') :]}"
    return f'pytest "{name}"{"".join(options)} --payment-rehearse-only="{variation}"'


def summarize(config: pytest.Config, terminalreporter: Any) -> None:
    """Print a summary of the rehearsals at the end of a session, and write the report."""
    shown = chain.from_iterable(terminalreporter.stats.values())
    properties = [each for report in shown for each in getattr(report, "user_properties", ())]
    by_name = {value["test"]: value for name, value in properties if name == REHEARSAL_PROPERTY}
    tests = [by_name[name] for name in sorted(by_name)]  # also those of pytest-xdist's workers
    if not tests:
        return
    terminalreporter.write_line(f"payment rehearsal: {summary(tests)}")
    notes = Counter(note for test in tests for note in [*cut_lines(test), *test["notes"]])
    for note, count in sorted(notes.items()):
        terminalreporter.write_line(f"  in {'1 test' if count == 1 else f'{count} tests'}: {note}")
    file = config.getoption("payment_rehearse_report")
    if file:
        Path(file).write_text(json.dumps({"tests": tests}, indent=1), encoding="utf-8")
        terminalreporter.write_line(f"  the full report is in {file}")
