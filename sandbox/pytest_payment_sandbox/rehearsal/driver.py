"""The driver of rehearsals: plays the variations of a test, and replays their problems."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from payment_sandbox.serving.realtime import monotonic_seconds
from pytest_payment_sandbox.rehearsal.budget import Budget, format_duration
from pytest_payment_sandbox.rehearsal.changes import ChangedSteps
from pytest_payment_sandbox.rehearsal.findings import Findings, RehearsalFinding
from pytest_payment_sandbox.rehearsal.planning import Plan, Run

FIRST_LINE_SECONDS: Final = 5.0  # time until the first line about variations
INTERVAL_SECONDS: Final = 15.0  # the time between lines


class VariationPlayer(Protocol):
    """Plays variations by running the test again."""

    def play(self, variation: ChangedSteps) -> Run | None:
        """Run the test with a variation; return None if the run was cut off at the end of the budget."""
        ...

    def replay(self, variation: ChangedSteps) -> Run:
        """Run the test with a variation as by its own command: to the end."""
        ...


class RehearsalOutcome(NamedTuple):
    """The outcome of one test's rehearsal."""

    findings: list[RehearsalFinding]
    tried: int
    untried: int = 0  # variations skipped for lack of time
    notes: Sequence[str] = ()
    seen_once: Sequence[str] = ()  # problems that did not reproduce
    unplayed: Sequence[str] = ()  # reasons why parts of the selected variation were not played


class Progress:
    """Writes the progress lines of a rehearsal at a limited rate."""

    def __init__(self, write_line: Callable[[str], None]) -> None:
        self.write_line = write_line
        self.tried = self.findings = 0
        self._next_seconds = monotonic_seconds() + FIRST_LINE_SECONDS

    def record(self, findings: int, budget: Budget, test: str) -> None:
        """Count a tried variation and its findings; write a line if one is due."""
        self.tried += 1
        self.findings += findings
        now = monotonic_seconds()
        if now >= self._next_seconds:
            self._next_seconds = now + INTERVAL_SECONDS
            self.write_line(f"{self.describe(budget.remaining_seconds)}: {test}")

    def describe(self, remaining_seconds: float) -> str:
        """Describe the progress: tried variations, findings, and remaining time."""
        variations = "1 variation" if self.tried == 1 else f"{self.tried} variations"
        number = "1 finding" if self.findings == 1 else f"{self.findings or 'no'} findings"
        return f"{variations} tried, {number}, at most {format_duration(remaining_seconds)} left"


class RehearsalDriver:
    """Rehearses one test."""

    def __init__(
        self, test: str, plan: Plan, player: VariationPlayer, budget: Budget, progress: Progress
    ) -> None:
        self._test = test
        self._plan = plan
        self._player = player
        self._budget = budget
        self._progress = progress
        self._findings = Findings(plan.baseline)
        self.is_stopped = False

    def rehearse(self) -> RehearsalOutcome:
        """Play all planned variations, until the end of the budget or Ctrl-C; return the outcome."""
        try:
            self._replay((), self._plan.baseline)
            while (variation := self._plan.next()) is not None:
                run = self._player.play(variation)
                if run is None:
                    self._plan.untried += 1
                else:
                    self._record(variation, run)
        except KeyboardInterrupt:
            self.is_stopped = True
        return self._outcome()

    def abandon(self, variation: ChangedSteps, run: Run) -> RehearsalOutcome:
        """Record a run that ends the process and so cannot be replayed; return the outcome so far."""
        self._findings.confirm(variation, run.verdict.problems[:1], run)
        self._plan.runs[variation] = run
        return self._outcome()

    def _outcome(self) -> RehearsalOutcome:
        """Return the outcome so far."""
        plan = self._plan
        return RehearsalOutcome(
            self._findings.with_causes(plan.runs),
            len(plan.runs),
            plan.untried,
            plan.notes,
            self._findings.seen_once,
            plan.unplayed,
        )

    def _record(self, variation: ChangedSteps, run: Run) -> None:
        self._plan.runs[variation] = run
        before = len(self._findings.confirmed)
        self._replay(variation, run)
        self._progress.record(len(self._findings.confirmed) - before, self._budget, self._test)

    def _replay(self, variation: ChangedSteps, run: Run) -> None:
        """Replay a variation with problems that are not yet known."""
        suspected = self._findings.suspect(variation, run)
        if suspected:
            self._findings.confirm(variation, suspected, self._player.replay(variation))
