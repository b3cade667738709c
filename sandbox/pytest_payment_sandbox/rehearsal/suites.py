"""Rehearses a suite in any language: runs the suite repeatedly, each time against a new server.

Each test that a helper announces has its own project, variations and verdict; one run plays one variation of
each test. All projects that belong to no test count as one additional test, whose verdict is the exit code.
"""

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import Final, NamedTuple
from zlib import crc32

from payment_sandbox.operations.history import history
from payment_sandbox.projects.project import Project
from payment_sandbox.serving.config import ServerConfig
from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox.serving.server import build
from payment_sandbox.serving.threads import start
from payment_sandbox.web.pictures import draw_sequence, svg
from pytest_payment_sandbox.rehearsal.announced import AnnouncedTest, Sources, TestMemory, unfinished_result
from pytest_payment_sandbox.rehearsal.changes import StepRecorder
from pytest_payment_sandbox.rehearsal.exploring import ChangedSteps, Exploration, Explorer, RunResult
from pytest_payment_sandbox.rehearsal.helpers import Conversation, EndOfTest, HelperEndpoint
from pytest_payment_sandbox.rehearsal.judging import RunVerdict, judge_without_books
from pytest_payment_sandbox.rehearsal.leaks import LEAK_KIND, leaks_in_output
from pytest_payment_sandbox.rehearsal.progress import Progress, format_duration
from pytest_payment_sandbox.rehearsal.remembering import StoredVariations, TriedVariations
from pytest_payment_sandbox.rehearsal.run import RehearsedRun

EXTRA_SECONDS: Final = 20.0  # how much longer than the first run another run may take
OUTPUT_LENGTH_MAX: Final = 4000  # characters of output in a report
SEED: Final = 7
INITIAL_CLOCK: Final = "frozen@2027-01-04T09:00:00Z"
NO_CALLS_MESSAGE: Final = "the suite made no call to SANDBOX_URL, so there is no step to change"
UNNAMED_TEST: Final = ""
"""The name of the additional test: all projects that no helper announced."""
TEST_PLACEHOLDER: Final = "{test}"
NUMBER_SUFFIX: Final = re.compile(r" #\d+$")  # the suffix of a second test with the same name
REGEX_CHARACTERS: Final = re.compile(r"[.*+?^$(){}|\[\]\\/]")


Explore = Callable[[Callable[[ChangedSteps], RunResult]], Exploration]
"""Explores one test; the argument is a function that runs a variation."""


class NoMoreRuns(Exception):
    """The rehearsal has ended, and runs no more variations."""


class SharedRuns:
    """Explores each test on a separate thread, and combines their variations into shared runs."""

    def __init__(self, explorations: Mapping[str, Explore]) -> None:
        self._changed = Condition()
        self._running = set(explorations)
        self._requested: dict[str, ChangedSteps] = {}
        self._answers: dict[str, RunResult] = {}
        self._is_over = False
        self._failure: BaseException | None = None
        self.explored: dict[str, Exploration] = {}
        self._threads = [
            Thread(target=self._explore, args=each, name="exploration", daemon=True)
            for each in explorations.items()
        ]

    def next_batch(self) -> dict[str, ChangedSteps]:
        """Wait for the next variation of each test; return an empty dict at the end.

        Raises:
            Exception: raised by the exploration of a test.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._running == set(self._requested) or self._failure is not None)
            if self._failure is not None:
                raise self._failure
            requested, self._requested = self._requested, {}
        return requested

    def answer(self, test: str, result: RunResult) -> None:
        """Pass a variation's result to the exploration of its test."""
        with self._changed:
            self._answers[test] = result
            self._changed.notify_all()

    def __enter__(self) -> "SharedRuns":
        for thread in self._threads:
            start(thread)
        return self

    def __exit__(self, *error: object) -> None:
        """End the explorations, which return their results so far."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _explore(self, test: str, explore: Explore) -> None:
        try:
            self.explored[test] = explore(lambda variation: self._run(test, variation))
        except BaseException as failure:
            self._failure = failure
        finally:
            with self._changed:
                self._running.discard(test)
                self._changed.notify_all()

    def _run(self, test: str, variation: ChangedSteps) -> RunResult:
        with self._changed:
            self._requested[test] = variation
            self._changed.notify_all()
            self._changed.wait_for(lambda: test in self._answers or self._is_over)
            if test not in self._answers:
                raise NoMoreRuns
            return self._answers.pop(test)


class SuiteFailed(Exception):
    """The suite cannot be rehearsed; the message gives the reason and the suite's last lines of output."""


@dataclass(frozen=True)
class Plan:
    """The scope of a rehearsal: the tests whose names contain ``test``, and the variations in ``only``.

    An empty value selects everything. ``one`` is the command for a single test, with ``{test}`` as a
    placeholder for the test's name.
    """

    budget_seconds: float
    only: Sequence[ChangedSteps] = ()
    test: str = ""
    one: str | None = None
    stored: Mapping[str, StoredVariations] = field(default_factory=dict)


class SuiteResult(NamedTuple):
    """The results of a suite's variations by test, and the data to store for the next rehearsal."""

    tests: dict[str, Exploration]
    stored: dict[str, StoredVariations]
    is_stopped: bool


class _SuiteRun:
    """One run of the suite, in which every project is rehearsed."""

    def __init__(
        self, variations: Mapping[str, ChangedSteps], memories: Mapping[str, TestMemory], sources: Sources
    ) -> None:
        self.runs: list[RehearsedRun] = []
        self.recorder = StepRecorder()
        self.tests: dict[str, AnnouncedTest] = {}
        self.url = ""
        self._variations = variations
        self._memories = memories
        self._sources = sources
        self._projects: dict[str, Project] = {}
        self._tests_by_project: dict[str, AnnouncedTest] = {}

    # Calls from the server

    def on_opened(self, project: Project) -> None:
        """Rehearse a new project as part of the whole suite, until a helper announces the project's test."""
        run = RehearsedRun(project, self._variations.get(UNNAMED_TEST, ()), recorder=self.recorder)
        project.rehearse(run)
        self._projects[project.project_id] = project
        self.runs.append(run)

    def on_refused(self, method: str, path: str, status: int, reason: str) -> None:
        """Ignore a request that belongs to no project."""

    # Calls from the helpers

    def begin_test(self, project_id: str, test: str) -> str:
        """Register a project's test; a second test with the same name gets a number."""
        project = self._projects.get(project_id)
        if project is None:
            raise ValueError(f"there is no project {project_id!r}")
        if project_id in self._tests_by_project:
            return self._tests_by_project[project_id].name
        count = sum(each.name == test or each.name.startswith(f"{test} #") for each in self.tests.values())
        name = f"{test} #{count + 1}" if count else test
        self.runs[:] = [run for run in self.runs if run.project is not project]
        announced = AnnouncedTest(
            name,
            project,
            self._variations.get(name, ()),
            self._memories.get(name) or TestMemory(),
            self._sources,
        )
        self.tests[name] = self._tests_by_project[project_id] = announced
        return name

    def end_test(self, project_id: str, ending: EndOfTest, conversation: Conversation) -> None:
        """Judge a test that has ended."""
        test = self._tests_by_project.get(project_id)
        if test is not None:
            test.judge(ending, conversation, {"SANDBOX_URL": self.url})

    # Results of the run

    def collect_results(self, failure: str | None) -> dict[str, RunResult]:
        """Return the results of all finished tests, and of all projects that belong to no test."""
        results = {name: test.result for name, test in self.tests.items() if test.is_judged}
        if any(run.has_steps for run in self.runs) or not self.tests:
            results[UNNAMED_TEST] = self._result_without_tests(failure)
        return results

    def _result_without_tests(self, failure: str | None) -> RunResult:
        variation, steps = self._variations.get(UNNAMED_TEST, ()), self.recorder.steps
        verdict: RunVerdict = judge_without_books(self.runs, steps, variation, failure)
        applied = [change for run in self.runs for change in run.applied]
        if not verdict.problems:
            return RunResult(verdict, steps, applied, "", "")
        timeline_entries = [
            timeline_entry
            for run in self.runs
            if run.has_steps
            for timeline_entry in history(run.project.epoch)
        ]
        lines = [
            f"{timeline_entry.at.isoformat()}  {timeline_entry.label}" for timeline_entry in timeline_entries
        ]
        timeline = "\n".join([*lines, *(failure or "").splitlines()])
        return RunResult(
            verdict, steps, applied, timeline, svg(draw_sequence(timeline_entries), is_file=True)
        )

    def add_leaks(self, output: str) -> None:
        """Find each test's secrets in the suite's output."""
        for test in self.tests.values():
            if test.is_judged and all(problem.kind != LEAK_KIND for problem in test.result.verdict.problems):
                test.result.verdict.problems.extend(leaks_in_output(test.project, [output]))


class Suite:
    """A suite, run by a command."""

    def __init__(self, command: Sequence[str], sources: Sources, progress: Progress) -> None:
        self._command = list(command)
        self._sources = sources
        self._progress = progress
        self._memories: dict[str, TestMemory] = {}
        self._tried: dict[str, TriedVariations] = {}
        self._problems: set[tuple[str, str]] = set()  # each problem's test and kind
        self._shared: set[tuple[str, ChangedSteps]] = set()  # variations that shared a run
        self._limit_seconds: float | None = None
        self._suite_seconds = self._single_test_seconds = 0.0
        self._plan = Plan(0.0)
        self._until_seconds = 0.0

    def explore(self, plan: Plan) -> SuiteResult:
        """Run the unchanged suite, then its variations until the end of the budget.

        Raises:
            SuiteFailed: the unchanged suite fails, makes no call to the sandbox, or lacks the selected test.
            OSError: the command cannot be run.
        """
        self._plan = plan
        self._until_seconds = monotonic_seconds() + plan.budget_seconds
        baselines = self._select(self._run_unchanged())
        self._tried = {
            name: TriedVariations(baseline, plan.stored.get(name)) for name, baseline in baselines.items()
        }
        self._report_start()
        is_stopped = False
        batches = SharedRuns({name: self._explore(name) for name in baselines})
        explored = batches.explored
        try:
            with batches:
                while batch := batches.next_batch():
                    for group in self._group_runs(batch):
                        for test, result in self._play(group).items():
                            batches.answer(test, result)
            explored = {name: self._confirm(name, explored[name]) for name in baselines}
        except KeyboardInterrupt:
            is_stopped = True
        stored = {name: tried.results_json for name, tried in self._tried.items()}
        return SuiteResult({name: explored[name] for name in baselines}, stored, is_stopped)

    def _run_unchanged(self) -> dict[str, RunResult]:
        started_seconds = monotonic_seconds()
        run, failure = self._run_suite({}, self._command)
        self._suite_seconds = monotonic_seconds() - started_seconds
        if failure is not None:
            raise SuiteFailed(f"the unchanged suite fails: {failure}")
        results = run.collect_results(None)
        self._limit_seconds = self._suite_seconds + EXTRA_SECONDS
        for name, test in run.tests.items():
            self._memories[name] = test.memory
            test.memory.baseline = results[name].verdict if name in results else None
        return _require_usable_tests(run, results)

    def _select(self, baselines: dict[str, RunResult]) -> dict[str, RunResult]:
        wanted = self._plan.test
        selected = {name: each for name, each in baselines.items() if wanted in name} if wanted else baselines
        if not selected:
            names = ", ".join(repr(name) for name in baselines if name) or "tests without names"
            raise SuiteFailed(f"no test has {wanted!r} in its name; the tests are: {names}")
        return selected

    def _report_start(self) -> None:
        names = [name for name in self._tried if name]
        count = f"{len(names)} tests" if len(names) > 1 else "1 test" if names else "the whole suite"
        known = sum(tried.count for tried in self._tried.values())
        remaining = format_duration(self._until_seconds - monotonic_seconds())
        self._progress.write_line(
            f"changing one thing at a time in {count}; "
            f"a run takes {self._suite_seconds:.1f} s, with {remaining} left"
            + (f"; {known} variations were tried before" if known else "")
        )

    def _explore(self, name: str) -> Explore:
        tried, plan = self._tried[name], self._plan

        def explore(play: Callable[[ChangedSteps], RunResult]) -> Exploration:
            explorer = Explorer(
                lambda variation: self._record(name, tried.run(variation, play)),
                lambda: monotonic_seconds() < self._until_seconds,
                seed=crc32(name.encode()) if name else SEED,
            )
            try:
                return tried.play_only(explorer, plan.only) if plan.only else explorer.explore(tried.baseline)
            except NoMoreRuns:
                return explorer.partial_result([], 0)

        return explore

    def _record(self, name: str, result: RunResult) -> RunResult:
        self._problems |= {(name, problem.kind) for problem in result.verdict.problems[:1]}
        self._progress.record(len(self._problems), self._until_seconds)
        return result

    def _group_runs(self, batch: Mapping[str, ChangedSteps]) -> Iterator[dict[str, ChangedSteps]]:
        """Group variations into runs: one for all tests, or one per test if that is faster.

        Projects that belong to no test are varied in a separate run, because the exit code is their verdict.
        """
        announced = {name: variation for name, variation in batch.items() if name != UNNAMED_TEST}
        is_single = self._plan.one is not None and (
            self._single_test_seconds * len(announced) < self._suite_seconds
        )
        if is_single:
            yield from ({name: variation} for name, variation in announced.items())
        elif announced:
            yield announced
        if UNNAMED_TEST in batch:
            yield {UNNAMED_TEST: batch[UNNAMED_TEST]}

    def _play(self, group: Mapping[str, ChangedSteps]) -> dict[str, RunResult]:
        """Run one variation of each test in a single run; rerun each unfinished test alone."""
        run, failure = self._run_suite(group, self._command_for(group))
        results = run.collect_results(failure)
        if len(group) > 1:
            self._shared.update(group.items())
        results_by_test = {}
        for name, variation in group.items():
            if name in results:
                results_by_test[name] = results[name]
            elif len(group) > 1:
                results_by_test |= self._play({name: variation})
            else:
                results_by_test[name] = unfinished_result(run.tests.get(name), variation, failure)
        return results_by_test

    def _command_for(self, group: Mapping[str, ChangedSteps]) -> list[str]:
        names = list(group)
        if self._plan.one is None or len(names) != 1 or names == [UNNAMED_TEST]:
            return self._command
        return [word.replace(TEST_PLACEHOLDER, pattern_of(names[0])) for word in shlex.split(self._plan.one)]

    def _confirm(self, name: str, explored: Exploration) -> Exploration:
        """Rerun variations with findings alone if variations of other tests were in the same run."""
        findings, notes = [], [*explored.notes]
        for finding in explored.findings:
            if (name, finding.variation) in self._shared:
                self._memories[name].verdicts.clear()  # otherwise this run would stop early as a duplicate
                result = self._play({name: finding.variation})[name]
                if all(problem.kind != finding.problem.kind for problem in result.verdict.problems):
                    notes.append(f"{finding.name} was a problem only in a run with variations of other tests")
                    continue
            findings.append(finding)
        return explored._replace(findings=findings, notes=notes)

    def _run_suite(
        self, variations: Mapping[str, ChangedSteps], command: Sequence[str]
    ) -> tuple[_SuiteRun, str | None]:
        started_seconds = monotonic_seconds()
        run = _SuiteRun(variations, self._memories, self._sources)
        config = ServerConfig(observer=run, seed=SEED, clock=INITIAL_CLOCK)
        with build(config) as server, HelperEndpoint(run) as endpoint:
            run.url = server.url
            if not variations:
                self._progress.write_line(f"running the unchanged suite: {shlex.join(command)}")
            failure, output = self._run_command(command, server.url, endpoint.url)
        if not variations:
            run.add_leaks(output)
        if command is not self._command:
            self._single_test_seconds = monotonic_seconds() - started_seconds
        return run, failure

    def _run_command(self, command: Sequence[str], url: str, endpoint: str) -> tuple[str | None, str]:
        """Run a command; return the reason for its failure, if any, and its output."""
        environment = {"SANDBOX_URL": url, "SANDBOX_API_KEY": "sandbox-key", "SANDBOX_REHEARSAL": endpoint}
        with subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=self._limit_seconds)
            except subprocess.TimeoutExpired as late:
                return f"the command took longer than {late.timeout:.0f} seconds", ""
            finally:
                _kill_process_group(process)
        if process.returncode == 0:
            return None, output
        return f"exit code {process.returncode}\n{output[-OUTPUT_LENGTH_MAX:]}", output


def _require_usable_tests(run: _SuiteRun, results: Mapping[str, RunResult]) -> dict[str, RunResult]:
    """Return the tests of the unchanged suite that can be varied."""
    usable = {name: result for name, result in results.items() if result.steps}
    problems = [test.error for test in run.tests.values() if test.error]
    if problems or not usable:
        raise SuiteFailed([*problems, NO_CALLS_MESSAGE][0])
    return usable


def pattern_of(test: str) -> str:
    """Return the regular expression that selects a test in a test runner; node:test needs the bare name."""
    name = NUMBER_SUFFIX.sub("", test).rpartition(" > ")[2]
    return REGEX_CHARACTERS.sub(r"\\\g<0>", name)


def _kill_process_group(process: "subprocess.Popen[str]") -> None:
    """Kill a program and its child processes."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
