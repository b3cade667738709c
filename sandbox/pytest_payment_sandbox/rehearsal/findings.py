"""The findings of a test: problems in its runs, each replayed before it is reported."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from payment_sandbox.scenarios.risks import LAPSE
from payment_sandbox.scenarios.variation import CHANGE, CREATE, PRESS, Step
from pytest_payment_sandbox.rehearsal.causes import Signs, find_cause
from pytest_payment_sandbox.rehearsal.changes import (
    ChangedStep,
    ChangedSteps,
    describe_variation,
    variation_name,
)
from pytest_payment_sandbox.rehearsal.judging import REVIEW_PREFIX
from pytest_payment_sandbox.rehearsal.places import SourceLine
from pytest_payment_sandbox.rehearsal.planning import Run
from pytest_payment_sandbox.rehearsal.reconciliation import BookProblem

INDEPENDENT_KINDS: Final = (CREATE, CHANGE, PRESS)  # kinds of steps whose failures are independent
KINDS_REPORTED_ONCE: Final = ("test", "invariant", "not-judged", "secret", "waits", "endless", "hangs")


class RehearsalFinding(NamedTuple):
    """A problem, and the smallest variation that reproduces it."""

    problem: BookProblem
    variation: ChangedSteps
    change: str  # the variation in one sentence
    timeline: str = ""
    line: SourceLine | None = None  # the line of the changed call, if it is known
    cause: str = ""  # the common cause; empty if the change itself is the cause
    shown_by: Sequence[str] = ()  # the names of all variations with the finding

    @property
    def name(self) -> str:
        """The variation in the form that users type."""
        return variation_name(self.variation)

    @property
    def sentence(self) -> str:
        """The finding in one sentence: its cause, and its effect on the shop."""
        return f"{self.cause or self.change}: {self.problem.sentence}"


class Findings:
    """The findings of one test; a problem that its replay does not show was seen once, and is no finding."""

    def __init__(self, baseline: Run) -> None:
        self.confirmed: dict[tuple[str, str], RehearsalFinding] = {}  # by the problem's kind and place
        self.seen_once: list[str] = []
        self._baseline = baseline
        self._usual_kinds: set[str] = set()  # kinds of problems in the unchanged test

    def suspect(self, variation: ChangedSteps, run: Run) -> Sequence[BookProblem]:
        """Return the problems of a run that are worth a replay.

        A variation has only one finding, because its other problems have the same cause. Findings of the
        review do not count beside other problems: they are often known from other variations.
        """
        if not variation:
            return run.verdict.problems
        fresh = [each for each in run.verdict.problems if each.kind not in self._usual_kinds]
        fresh = [each for each in fresh if not each.kind.startswith(REVIEW_PREFIX)] or fresh
        is_known = any(self._is_recorded(each.kind, variation, run.steps) for each in fresh)
        return [] if is_known else fresh[:1]

    def confirm(self, variation: ChangedSteps, suspected: Sequence[BookProblem], replay: Run) -> None:
        """Record the suspected problems that the replay shows, too, as findings."""
        shown = {each.kind: each for each in replay.verdict.problems}
        change = describe_variation(variation, replay.steps)
        for problem in suspected:
            if problem.kind not in shown:
                self.seen_once.append(f"{change}: {problem.sentence}")
                continue
            if not variation:
                self._usual_kinds.add(problem.kind)
            key = problem.kind, _place_of(variation, replay.steps)
            finding = RehearsalFinding(shown[problem.kind], variation, change, replay.timeline, replay.line)
            self.confirmed.setdefault(key, finding)

    def with_causes(self, runs: Mapping[ChangedSteps, Run]) -> list[RehearsalFinding]:
        """Return the findings, each with the common cause of all runs that show it."""
        return [self._add_cause(place, finding, runs) for (_, place), finding in self.confirmed.items()]

    def _is_recorded(self, kind: str, variation: ChangedSteps, steps: Sequence[Step]) -> bool:
        """Whether a finding with the same kind and cause is recorded; pairs are compared by kind only."""
        if len(variation) == 1 and kind not in KINDS_REPORTED_ONCE:
            return (kind, _place_of(variation, steps)) in self.confirmed
        return any(kind == recorded for recorded, _ in self.confirmed)

    def _add_cause(
        self, place: str, finding: RehearsalFinding, runs: Mapping[ChangedSteps, Run]
    ) -> RehearsalFinding:
        if not finding.variation:
            return finding
        kind = finding.problem.kind
        failing: dict[ChangedSteps, Signs] = {}
        passing: list[Signs] = []
        for variation, run in runs.items():
            has_problem = any(problem.kind == kind for problem in run.verdict.problems)
            if has_problem and _place_of(variation, run.steps) == place:
                failing[variation] = run.verdict.signs
            elif not has_problem:
                passing.append(run.verdict.signs)
        own, usual = runs[finding.variation].verdict.signs, self._baseline.verdict.signs
        cause = find_cause(kind, own, failing, passing, usual)
        return finding._replace(cause=cause, shown_by=list(map(variation_name, failing)))


def _place_of(variation: ChangedSteps, steps: Sequence[Step]) -> str:
    """Return the place of a variation; findings of one kind at the same place have the same cause."""
    labels = {step.name: step.label for step in steps}
    return " + ".join(_place_of_change(each, labels.get(each.step, "")) for each in variation)


def _place_of_change(changed: ChangedStep, label: str) -> str:
    kind = changed.step.partition(":")[0]
    if kind in INDEPENDENT_KINDS:
        return f"{kind} {label}"
    return "lapse" if changed.change.risk == LAPSE else "outcome"
