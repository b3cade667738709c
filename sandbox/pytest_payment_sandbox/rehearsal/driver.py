"""The driver of rehearsals: plays the variations of tests, and replays their problems."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from payment_sandbox.serving.realtime import monotonic_seconds
from pytest_payment_sandbox.rehearsal.budget import Budget, format_duration
from pytest_payment_sandbox.rehearsal.changes import ChangedSteps
from pytest_payment_sandbox.rehearsal.findings import Findings, RehearsalFinding
from pytest_payment_sandbox.rehearsal.planning import Plan, Run

FIRST_LINE_SECONDS: Final = 5.0  # time until the first line about variations
INTERVAL_SECONDS: Final = 15.0  # the time between lines

Batch = Mapping[str, ChangedSteps]
"""A variation of each test, by the test's name."""


class VariationPlayer(Protocol):
    """Plays variations: a pytest item by running the test again, and a suite by running its command."""

    def play(self, batch: Batch, *, is_replay: bool) -> Mapping[str, Run]:
        """Run each test once with its variation; omit runs that were cut off at the end of the budget.

        A replay is played as by its own command: alone and to the end.
        """
        ...


class RehearsalOutcome(NamedTuple):
    """The outcome of one test's rehearsal."""

    findings: list[RehearsalFinding]
    tried: int
    untried: int = 0  # variations skipped for lack of time
    notes: Sequence[str] = ()
    seen_once: Sequence[str] = ()  # problems that did not reproduce
    unplayed: Sequence[str] = ()  # reasons why some or all of the selected variations were not played


class Progress:
    """Writes the progress lines of a rehearsal at a limited rate."""

    def __init__(self, write_line: Callable[[str], None]) -> None:
        self.write_line = write_line
        self.tried = self.findings = 0
        self._next_seconds = monotonic_seconds() + FIRST_LINE_SECONDS

    def record(self, findings: int, budget: Budget, subject: str = "") -> None:
        """Count a tried variation and its findings; write a line if one is due."""
        self.tried += 1
        self.findings += findings
        now = monotonic_seconds()
        if now >= self._next_seconds:
            self._next_seconds = now + INTERVAL_SECONDS
            self.write_line(f"{self.describe(budget.remaining_seconds)}{f': {subject}' if subject else ''}")

    def describe(self, remaining_seconds: float) -> str:
        """Describe the progress: tried variations, findings, and remaining time."""
        variations = "1 variation" if self.tried == 1 else f"{self.tried} variations"
        number = "1 finding" if self.findings == 1 else f"{self.findings or 'no'} findings"
        return f"{variations} tried, {number}, at most {format_duration(remaining_seconds)} left"


class RehearsalDriver:
    """Rehearses tests that are played together: a pytest item, or all tests of a suite."""

    def __init__(
        self, plans: Mapping[str, Plan], player: VariationPlayer, budget: Budget, progress: Progress
    ) -> None:
        self._plans = plans
        self._player = player
        self._budget = budget
        self._progress = progress
        self._findings = {name: Findings(plan.baseline) for name, plan in plans.items()}
        self.is_stopped = False

    def rehearse(self) -> dict[str, RehearsalOutcome]:
        """Play all planned variations, until the end of the budget or Ctrl-C; return the outcomes."""
        try:
            for name, plan in self._plans.items():
                self._replay(name, (), plan.baseline)
            while batch := self._next_batch():
                runs = self._player.play(batch, is_replay=False)
                for name, variation in batch.items():
                    if name in runs:
                        self._record(name, variation, runs[name])
                    else:
                        self._plans[name].untried += 1
        except KeyboardInterrupt:
            self.is_stopped = True
        return self.outcomes()

    def outcomes(self) -> dict[str, RehearsalOutcome]:
        """Return the outcomes so far."""
        return {
            name: RehearsalOutcome(
                self._findings[name].with_causes(plan.runs),
                len(plan.runs),
                plan.untried,
                plan.notes,
                self._findings[name].seen_once,
                plan.unplayed,
            )
            for name, plan in self._plans.items()
        }

    def abandon(self, name: str, variation: ChangedSteps, run: Run) -> RehearsalOutcome:
        """Record a run that ends the process and so cannot be replayed; return the outcome so far."""
        self._findings[name].confirm(variation, run.verdict.problems[:1], run)
        self._plans[name].runs[variation] = run
        return self.outcomes()[name]

    def _next_batch(self) -> dict[str, ChangedSteps]:
        upcoming = {name: plan.next() for name, plan in self._plans.items()}
        return {name: variation for name, variation in upcoming.items() if variation is not None}

    def _record(self, name: str, variation: ChangedSteps, run: Run) -> None:
        self._plans[name].runs[variation] = run
        before = len(self._findings[name].confirmed)
        self._replay(name, variation, run)
        self._progress.record(len(self._findings[name].confirmed) - before, self._budget, name)

    def _replay(self, name: str, variation: ChangedSteps, run: Run) -> None:
        """Replay a variation with problems that are not yet known."""
        suspected = self._findings[name].suspect(variation, run)
        if suspected:
            replay = self._player.play({name: variation}, is_replay=True)[name]
            self._findings[name].confirm(variation, suspected, replay)
