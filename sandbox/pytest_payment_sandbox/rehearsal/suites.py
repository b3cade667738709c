"""Rehearses a suite in any language: it runs again and again against a server of its own."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from typing import Final

from payment_sandbox.operations.history import Happening, history
from payment_sandbox.projects.project import Project
from payment_sandbox.serving.config import ServerConfig
from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox.serving.server import build
from payment_sandbox.web.pictures import sequence, svg
from pytest_payment_sandbox.rehearsal.changes import StepRecorder
from pytest_payment_sandbox.rehearsal.exploring import ChangedSteps, Explored, Explorer, Ran
from pytest_payment_sandbox.rehearsal.judging import Judged, judged_without_books
from pytest_payment_sandbox.rehearsal.run import RehearsedRun

SECONDS_MORE: Final = 20.0  # than the first run took, for a run in which something hangs
OUTPUT_KEPT: Final = 4000  # characters
SEED: Final = 7
CLOCK: Final = "frozen@2027-01-04T09:00:00Z"


class SuiteFails(Exception):
    """The suite does not pass as it is; the text is the end of what it printed."""


class _Observing:
    """Rehearses every project of a run."""

    def __init__(self, variation: ChangedSteps) -> None:
        self.runs: list[RehearsedRun] = []
        self.recorder = StepRecorder()
        self._variation = variation

    def opened(self, project: Project) -> None:
        """A project was created."""
        run = RehearsedRun(project, self._variation, recorder=self.recorder)
        project.rehearse(run)
        self.runs.append(run)

    def refused(self, method: str, path: str, status: int, why: str) -> None:
        """A request belongs to no project."""

    def history(self) -> Iterator[Happening]:
        """What happened in the projects that the suite used."""
        for run in self.runs:
            if run.has_steps:
                yield from history(run.project.epoch)


class Suite:
    """A command that runs a suite; its exit code is the verdict."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._limit_seconds: float | None = None

    def explore(self, budget_seconds: float, only: ChangedSteps = ()) -> Explored:
        """Run it as it is, then in its variations, as long as there is time.

        Raises:
            SuiteFails: it fails as it is, or it does not use the sandbox.
            OSError: the command cannot be run.
        """
        begun = monotonic_seconds()
        baseline, failure = self._run(())
        if failure is not None:
            raise SuiteFails(f"the suite fails as it is: {failure}")
        if not baseline.steps:
            raise SuiteFails("the suite made no call to SANDBOX_URL, so there is nothing to change")
        self._limit_seconds = monotonic_seconds() - begun + SECONDS_MORE
        until_seconds = begun + budget_seconds
        explorer = Explorer(
            lambda variation: self._run(variation)[0], lambda: monotonic_seconds() < until_seconds, seed=SEED
        )
        return explorer.only(only, baseline) if only else explorer.explore(baseline)

    def _run(self, variation: ChangedSteps) -> tuple[Ran, str | None]:
        observing = _Observing(variation)
        with build(ServerConfig(observer=observing, seed=SEED, clock=CLOCK)) as server:
            failure = self._failure(server.url)
            judged = judged_without_books(observing.runs, observing.recorder.steps, variation, failure)
            return self._ran(observing, judged, failure), failure

    def _ran(self, observing: _Observing, judged: Judged, failure: str | None) -> Ran:
        happened = [change for run in observing.runs for change in run.happened]
        steps = observing.recorder.steps
        if not judged.problems:
            return Ran(judged, steps, happened, "", "")
        happenings = list(observing.history())
        lines = [f"{happening.at.isoformat()}  {happening.label}" for happening in happenings]
        timeline = "\n".join([*lines, *(failure or "").splitlines()])
        return Ran(judged, steps, happened, timeline, svg(sequence(happenings), is_file=True))

    def _failure(self, url: str) -> str | None:
        """Run the command; return why it failed, if it did."""
        try:
            ran = subprocess.run(
                self._command,
                env={**os.environ, "SANDBOX_URL": url, "SANDBOX_API_KEY": "sandbox-key"},
                capture_output=True,
                text=True,
                errors="replace",
                timeout=self._limit_seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            return f"it took longer than {late.timeout:.0f} seconds"
        if ran.returncode == 0:
            return None
        return f"exit code {ran.returncode}\n{(ran.stdout + ran.stderr)[-OUTPUT_KEPT:]}"
