"""Plays the variations of a suite in any language: runs the suite repeatedly, each time against a new server.

Each test that a helper announces has its own project, variations and verdict; one run plays one variation of
each test. All projects that belong to no test count as one additional test, whose verdict is the exit code.
"""

import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from typing import Final

from payment_sandbox.projects.project import Project
from payment_sandbox.serving.config import ServerConfig
from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox.serving.server import build
from pytest_payment_sandbox.rehearsal.announced import AnnouncedTest, unfinished_run
from pytest_payment_sandbox.rehearsal.budget import Budget
from pytest_payment_sandbox.rehearsal.changes import StepRecorder
from pytest_payment_sandbox.rehearsal.driver import Batch
from pytest_payment_sandbox.rehearsal.helpers import Conversation, EndOfTest, HelperEndpoint
from pytest_payment_sandbox.rehearsal.judging import RunVerdict, judge_without_books
from pytest_payment_sandbox.rehearsal.leaks import LEAK_KIND, leaks_in_output
from pytest_payment_sandbox.rehearsal.planning import Run
from pytest_payment_sandbox.rehearsal.run import RehearsedRun
from pytest_payment_sandbox.rehearsal.timelines import describe_timeline

OUTPUT_LENGTH_MAX: Final = 4000  # characters of output in a report
SEED: Final = 7
INITIAL_CLOCK: Final = "frozen@2027-01-04T09:00:00Z"
NO_CALLS_MESSAGE: Final = "the suite made no call to SANDBOX_URL, so there is no step to change"
UNNAMED_TEST: Final = ""
"""The name of the additional test: all projects that no helper announced."""


class SuiteFailed(Exception):
    """The suite cannot be rehearsed; the message gives the reason and the suite's last lines of output."""


class _SuiteRun:
    """One run of the suite, in which every project is rehearsed."""

    def __init__(self, variations: Batch, baselines: Mapping[str, RunVerdict], budget: Budget) -> None:
        self.runs: list[RehearsedRun] = []
        self.recorder = StepRecorder()
        self.tests: dict[str, AnnouncedTest] = {}
        self._variations = variations
        self._baselines = baselines
        self._budget = budget
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
            self._baselines.get(name),
            self._budget,
        )
        self.tests[name] = self._tests_by_project[project_id] = announced
        return name

    def end_test(self, project_id: str, ending: EndOfTest, conversation: Conversation) -> None:
        """Judge a test that has ended."""
        test = self._tests_by_project.get(project_id)
        if test is not None:
            test.judge(ending, conversation)

    # Results of the run

    def collect_runs(self, failure: str | None) -> dict[str, Run]:
        """Return the results of all finished tests, and of all projects that belong to no test."""
        runs = {name: test.result for name, test in self.tests.items() if test.is_judged}
        if any(run.has_steps for run in self.runs) or not self.tests:
            runs[UNNAMED_TEST] = self._run_without_tests(failure)
        return runs

    def _run_without_tests(self, failure: str | None) -> Run:
        variation, steps = self._variations.get(UNNAMED_TEST, ()), self.recorder.steps
        baseline = self._baselines.get(UNNAMED_TEST)
        verdict = judge_without_books(self.runs, steps, variation, failure, baseline)
        applied = [change for run in self.runs for change in run.applied]
        if not verdict.problems:
            return Run(verdict, steps, applied)
        varied = [run for run in self.runs if run.has_steps]
        return Run(verdict, steps, applied, describe_timeline(varied, (failure or "").splitlines()))

    def add_leaks(self, output: str) -> None:
        """Find each test's secrets in the suite's output."""
        for test in self.tests.values():
            if test.is_judged and all(problem.kind != LEAK_KIND for problem in test.result.verdict.problems):
                test.result.verdict.problems.extend(leaks_in_output(test.project, [output]))


class SuitePlayer:
    """Plays the variations of a suite by running its command."""

    def __init__(
        self,
        command: Sequence[str],
        budget: Budget,
        write_line: Callable[[str], None],
        *,
        is_selected: bool,
    ) -> None:
        """Play variations of a command; ``is_selected`` says whether the user has named them."""
        self._is_selected = is_selected
        self._command = list(command)
        self._budget = budget
        self._write_line = write_line
        self._baselines: dict[str, RunVerdict] = {}  # the verdicts on the unchanged tests
        self.suite_seconds = 0.0

    def run_unchanged(self) -> dict[str, Run]:
        """Run the unchanged suite; return the run of each test.

        Raises:
            SuiteFailed: the suite fails, or makes no call to the sandbox.
            OSError: the command cannot be run.
        """
        started_seconds = monotonic_seconds()
        run, failure = self._run_suite({}, None)
        self.suite_seconds = monotonic_seconds() - started_seconds
        if failure is not None:
            raise SuiteFailed(f"the unchanged suite fails: {failure}")
        runs = run.collect_runs(None)
        self._baselines = {name: each.verdict for name, each in runs.items()}
        return _require_usable_tests(run, runs)

    def play(self, batch: Batch, *, is_replay: bool) -> dict[str, Run]:
        """Run the suite once for all announced tests.

        Projects that belong to no test are varied in a separate run, because the exit code is their verdict.
        """
        runs: dict[str, Run] = {}
        for group in self._group(batch):
            runs |= self._play(group, is_replay=is_replay)
        return runs

    def _group(self, batch: Batch) -> Iterator[Batch]:
        """Group the tests into runs."""
        named = {name: variation for name, variation in batch.items() if name != UNNAMED_TEST}
        if named:
            yield named
        if UNNAMED_TEST in batch:
            yield {UNNAMED_TEST: batch[UNNAMED_TEST]}

    def _play(self, group: Batch, *, is_replay: bool) -> dict[str, Run]:
        """Run one variation of each test in a single run; rerun each unfinished test alone."""
        must_end = is_replay or self._is_selected
        budget = self._budget.for_run(self.suite_seconds, must_end=must_end)
        run, failure = self._run_suite(group, budget)
        finished = run.collect_runs(failure)
        runs = {name: finished[name] for name in group if name in finished}
        if budget.is_short and not budget.has_time():
            runs.pop(UNNAMED_TEST, None)  # its verdict is the exit code
            return runs
        for name in [name for name in group if name not in finished]:
            if len(group) > 1:
                runs |= self._play({name: group[name]}, is_replay=is_replay)
            else:
                runs[name] = unfinished_run(run.tests.get(name), group[name], failure)
        return runs

    def _run_suite(self, variations: Batch, budget: Budget | None) -> tuple[_SuiteRun, str | None]:
        """Run the suite against a new server; return the run, and the reason for a failure, if any."""
        run = _SuiteRun(variations, self._baselines, budget or self._budget)
        config = ServerConfig(observer=run, seed=SEED, clock=INITIAL_CLOCK)
        with build(config) as server, closing(HelperEndpoint(run.begin_test, run.end_test)) as endpoint:
            if budget is None:  # only the unchanged suite has no budget
                self._write_line(f"running the unchanged suite: {shlex.join(self._command)}")
            failure, output = _run_command(self._command, server.url, endpoint.url, budget)
        if not any(variations.values()):
            run.add_leaks(output)
        return run, failure


def _run_command(
    command: Sequence[str], url: str, endpoint: str, budget: Budget | None
) -> tuple[str | None, str]:
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
            output, _ = process.communicate(timeout=None if budget is None else budget.remaining_seconds)
        except subprocess.TimeoutExpired as late:
            return f"the command took longer than {late.timeout:.0f} seconds", ""
        finally:
            _kill_process_group(process)
    if process.returncode == 0:
        return None, output
    return f"exit code {process.returncode}\n{output[-OUTPUT_LENGTH_MAX:]}", output


def _require_usable_tests(run: _SuiteRun, runs: Mapping[str, Run]) -> dict[str, Run]:
    """Return the tests of the unchanged suite that can be varied."""
    usable = {name: each for name, each in runs.items() if each.steps}
    problems = [test.error for test in run.tests.values() if test.error]
    if problems or not usable:
        raise SuiteFailed([*problems, NO_CALLS_MESSAGE][0])
    return usable


def _kill_process_group(process: "subprocess.Popen[str]") -> None:
    """Kill a program and its child processes."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
