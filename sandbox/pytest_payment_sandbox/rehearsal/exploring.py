"""Explores a test: chooses and orders its variations, and collects their findings."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import combinations
from typing import Final, NamedTuple
from zlib import crc32

from payment_sandbox.scenarios.effects import Swap
from payment_sandbox.scenarios.variation import (
    CHANGE,
    CREATE,
    PRESS,
    WEBHOOK,
    OrderAction,
    Step,
    Trait,
    Variation,
)
from payment_sandbox.scenarios.variations import RISKS_BY_COST, rehearsal_variations
from pytest_payment_sandbox.rehearsal.books import BookProblem
from pytest_payment_sandbox.rehearsal.causes import RunSigns, Signs, find_cause
from pytest_payment_sandbox.rehearsal.changes import ChangedStep, parse_changed_step, possible_changes
from pytest_payment_sandbox.rehearsal.judging import RunVerdict, State

PAIRS_MAX: Final = 200  # pairs tried per test
EARLY_PAIRS_MAX: Final = 25  # pairs that precede changes already tried at another step
INDEPENDENT_KINDS: Final = (CREATE, CHANGE, PRESS)  # kinds of steps whose failures are independent
KINDS_REPORTED_ONCE: Final = ("test", "invariant", "not-judged", "secret", "waits", "endless", "hangs")
NO_THREADS_NOTE: Final = (
    "concurrent handlers were skipped: the shop's handlers fail on threads other than the test's"
)

ChangedSteps = tuple[ChangedStep, ...]


def variation_name(variation: ChangedSteps) -> str:
    """Return the name of a variation, such as ``webhook:2:twice+action:1:cancels``."""
    return "+".join(changed.name for changed in variation)


def parse_variation(text: str) -> ChangedSteps:
    """Parse ``webhook:2:twice+action:1:cancels``.

    Raises:
        ValueError: a part is not a valid change.
    """
    return tuple(parse_changed_step(part) for part in text.split("+"))


class RunResult(NamedTuple):
    """The result of one run of a test: its verdict, its steps, and the changes that took effect."""

    verdict: RunVerdict
    steps: Sequence[Step]
    applied: Collection[ChangedStep]
    timeline: str
    picture: str
    has_restart: bool = False
    has_return: bool = False
    has_customers: bool = False


class RehearsalFinding(NamedTuple):
    """A problem, and the smallest variation that reproduces it."""

    problem: BookProblem
    variation: ChangedSteps
    sentence: str
    timeline: str
    picture: str
    cause: str = ""  # the common cause; empty if the change itself is the cause
    smallest: str = ""  # if there is a common cause, the smallest change with the finding
    shown_by: Sequence[str] = ()  # the names of all variations with the finding

    @property
    def name(self) -> str:
        """The variation in the form that users type."""
        return variation_name(self.variation)


class Exploration(NamedTuple):
    """The results of one test's variations."""

    findings: list[RehearsalFinding]
    tried: int
    untried: int  # variations skipped for lack of time
    notes: list[str]
    unplayed: Sequence[str] = ()
    """Reasons why some or all of the selected variation was not played."""
    duplicates: int = 0  # tried variations that stopped early because they duplicated an earlier run
    repeated: int = 0  # tried variations with the same final state as another variation


RunVariation = Callable[[ChangedSteps], RunResult]
"""Runs the test once with these changes."""


class Explorer:
    """Tries the variations of one test."""

    def __init__(
        self,
        run: RunVariation,
        has_time: Callable[[], bool],
        *,
        seed: int = 0,
        first: Sequence[ChangedSteps] = (),
        threads: Callable[[], bool] = lambda: True,
        fruitful: Collection[str] = (),
    ) -> None:
        """Create an explorer.

        ``first`` has the variations that failed in the last rehearsal; ``threads`` returns whether handlers
        can run on other threads; ``fruitful`` contains the names of changes with findings in other tests.
        """
        self._run = run
        self._has_time = has_time
        self._seed = seed
        self._first = first
        self._threads = threads
        self._fruitful = fruitful
        self._findings: dict[tuple[str, str], RehearsalFinding] = {}  # by the problem's kind and place
        self._tried: dict[ChangedSteps, RunResult] = {}
        self._usual_signs: Signs = frozenset()  # signs of the unchanged test
        self._final_states: Counter[tuple[Sequence[str], State]] = Counter()

    def explore(self, baseline: RunResult) -> Exploration:
        """Try all single changes, then pairs, until the time is up."""
        known_kinds = self._record_baseline(baseline)
        notes: list[str] = []
        singles = self._single_changes(baseline, notes)
        planned = [variation for variation in self._first if set(variation) <= set(singles)]
        planned += [
            (change,) for change in singles if (change,) not in planned and _is_early(change, singles)
        ]
        repeats: list[ChangedSteps] = [(change,) for change in singles if (change,) not in planned]
        untried = self._try_all(planned, known_kinds)
        if not untried:
            untried = self._try_all([*self._pairs(baseline)[:EARLY_PAIRS_MAX], *repeats], known_kinds)
        if not untried:
            untried = self._try_all(self._pairs(baseline), known_kinds)
        return self.partial_result(notes, untried)

    def partial_result(self, notes: list[str], untried: int) -> Exploration:
        """Return the results so far."""
        return Exploration(
            [self._add_cause(place, finding) for (_, place), finding in self._findings.items()],
            len(self._tried),
            untried,
            notes,
            duplicates=sum(result.verdict.is_duplicate for result in self._tried.values()),
            repeated=sum(count - 1 for count in self._final_states.values()),
        )

    def _record_baseline(self, baseline: RunResult) -> set[str]:
        """Record the problems of the unchanged test; return their kinds."""
        for problem in baseline.verdict.problems:
            self._add_finding(problem, (), baseline)
        self._final_states[baseline.verdict[1:3]] += 1
        self._usual_signs = baseline.verdict.signs
        return {problem.kind for problem in baseline.verdict.problems}

    def explore_only(self, variation: ChangedSteps, baseline: RunResult) -> Exploration:
        """Try only this variation."""
        known_kinds = self._record_baseline(baseline)
        result = self._run(variation)
        self._record_finding(variation, result, known_kinds)
        unplayed_names = [changed.name for changed in variation if changed not in result.applied]
        unplayed = [f"the test has no step for {name}" for name in unplayed_names]
        return Exploration(list(self._findings.values()), 1, 0, [], unplayed)

    def _try_all(self, planned: Sequence[ChangedSteps], known_kinds: set[str]) -> int:
        """Try the planned variations; return the number of variations that exceeded the budget."""
        planned = [variation for variation in planned if variation not in self._tried]
        for count, variation in enumerate(planned):
            if not self._has_time():
                return len(planned) - count
            if self._is_implied(variation):
                continue
            self.record(variation, self._run(variation), known_kinds)
        return 0

    def _is_implied(self, variation: ChangedSteps) -> bool:
        """Whether another change to the same step has proved that this change is harmless."""
        if len(variation) != 1 or not variation[0].change.implied_by:
            return False
        (changed,) = variation
        return any(
            len(tried) == 1
            and (tried[0].step, tried[0].change.name) == (changed.step, changed.change.implied_by)
            and not result.verdict.problems
            for tried, result in self._tried.items()
        )

    def record(self, variation: ChangedSteps, result: RunResult, known_kinds: Collection[str] = ()) -> None:
        """Record the result of a variation, ignoring problems of the ``known_kinds``."""
        self._tried[variation] = result
        if not result.verdict.is_duplicate:
            self._final_states[result.verdict[1:3]] += 1
        self._record_finding(variation, result, known_kinds)

    def _record_finding(
        self, variation: ChangedSteps, result: RunResult, known_kinds: Collection[str]
    ) -> None:
        """Record only one finding for a variation, because its other problems have the same cause."""
        fresh = [problem for problem in result.verdict.problems if problem.kind not in known_kinds]
        if fresh and not any(self._is_recorded(problem.kind, variation, result.steps) for problem in fresh):
            self._add_finding(fresh[0], variation, result)

    def _is_recorded(self, kind: str, variation: ChangedSteps, steps: Sequence[Step]) -> bool:
        """Whether a finding with the same kind and cause is recorded; pairs are compared by kind only."""
        if len(variation) == 1 and kind not in KINDS_REPORTED_ONCE:
            return (kind, _place_of(variation, steps)) in self._findings
        return any(kind == recorded for recorded, _ in self._findings)

    def _add_finding(self, problem: BookProblem, variation: ChangedSteps, result: RunResult) -> None:
        cause = problem.kind, _place_of(variation, result.steps)
        sentence = finding_sentence(problem, variation, result.steps)
        finding = RehearsalFinding(problem, variation, sentence, result.timeline, result.picture)
        self._findings.setdefault(cause, finding)

    def _add_cause(self, place: str, finding: RehearsalFinding) -> RehearsalFinding:
        """Add to a finding the common cause of all variations that show it."""
        if not finding.variation:
            return finding
        kind = finding.problem.kind
        failing: dict[str, RunSigns] = {}
        passing: list[RunSigns] = []
        for variation, result in self._tried.items():
            labels = {step.name: step.label for step in result.steps}
            shown = RunSigns(variation, result.verdict.signs, labels)
            has_problem = any(problem.kind == kind for problem in result.verdict.problems)
            if has_problem and _place_of(variation, result.steps) == place:
                failing[variation_name(variation)] = shown
            elif not has_problem:
                passing.append(shown)
        cause = find_cause(kind, list(failing.values()), passing, self._usual_signs)
        if not cause:
            return finding._replace(shown_by=list(failing))
        return finding._replace(
            sentence=f"{cause}: {finding.problem.sentence}",
            cause=cause,
            smallest=_describe_variation(finding.variation, self._tried[finding.variation].steps),
            shown_by=list(failing),
        )

    def _single_changes(self, baseline: RunResult, notes: list[str]) -> list[ChangedStep]:
        possible = [
            ChangedStep(step.name, change)
            for step in baseline.steps
            for change in possible_changes(step)
            if _is_possible(step, change, baseline)
        ]
        if any(Trait.THREADS in changed.change.traits for changed in possible) and not self._threads():
            notes += _threads_note(baseline)
            possible = [each for each in possible if Trait.THREADS not in each.change.traits]
        return _by_priority(possible, self._fruitful)

    def _pairs(self, baseline: RunResult) -> list[ChangedSteps]:
        """Return pairs of harmless changes, the most promising pairs first."""
        variations = rehearsal_variations()
        places = {step.name: place for place, step in enumerate(baseline.steps)}
        harmless = sorted(
            self._harmless_changes(baseline),
            key=lambda each: (variations.index(each.change), places[each.step]),
        )
        pairs: list[ChangedSteps] = [
            pair for pair in combinations(harmless, 2) if pair[0].step != pair[1].step
        ]
        follow_ups = self._follow_ups(baseline, harmless)
        ordered = sorted(dict.fromkeys([*pairs, *follow_ups]), key=lambda pair: self._rank(pair, follow_ups))
        return self._diversify(ordered)[:PAIRS_MAX]

    def _harmless_changes(self, baseline: RunResult) -> Iterator[ChangedStep]:
        """Yield one harmless change per final state.

        Usual suspects are yielded once per step, and always if the final state is unchanged: if a second
        webhook makes up for a lost webhook, the second webhook can be lost, too.
        """
        final_states, places = {baseline.verdict[1:3]}, set()
        for variation, result in self._tried.items():
            if len(variation) != 1 or result.verdict.problems:
                continue
            (changed,), end = variation, result.verdict[1:3]
            is_new = not result.verdict.is_duplicate and end not in final_states
            if Trait.SUSPECT in changed.change.traits:
                is_new = end == baseline.verdict[1:3] or (changed.step, end) not in places
            if is_new:
                yield changed
            if end != baseline.verdict[1:3]:
                final_states.add(end)
                places.add((changed.step, end))

    def _diversify(self, pairs: Sequence[ChangedSteps]) -> list[ChangedSteps]:
        """Sort pairs so that each combination of two changes occurs once before any combination repeats."""
        counts: Counter[tuple[str, ...]] = Counter()
        ranked = []
        for place, pair in enumerate(pairs):
            names = tuple(sorted(f"{each.step.partition(':')[0]} {each.change.name}" for each in pair))
            unsuspected = sum(Trait.SUSPECT not in each.change.traits for each in pair)
            ranked.append((counts[names] + unsuspected, place, pair))
            counts[names] += 1
        return [pair for _, _, pair in sorted(ranked, key=lambda each: each[:2])]

    def _follow_ups(self, baseline: RunResult, harmless: Sequence[ChangedStep]) -> set[ChangedSteps]:
        """Return pairs whose second change is possible only after the first change.

        The first change causes another step, such as a retry or a read by a job that replaces a read by a
        webhook handler; or it enables another change to the same step, such as a payment on the page of an
        earlier attempt.
        """
        usual = {(step.name, step.label): possible_changes(step) for step in baseline.steps}
        return {
            (first, ChangedStep(step.name, change))
            for first in harmless
            for step in self._tried[(first,)].steps
            if step.name != first.step
            for change in possible_changes(step)
            if change not in usual.get((step.name, step.label), ())
            and _is_possible(step, change, baseline)
            and Trait.THREADS not in change.traits
        }

    def _rank(self, pair: ChangedSteps, follow_ups: Collection[ChangedSteps]) -> tuple[int, bool, bool, int]:
        """Return the sort key of a pair: the pairs with the most usual suspects come first.

        Ties are broken in favour of follow-up pairs, then of changes with findings in other tests, then by
        the seed.
        """
        unsuspected = sum(Trait.SUSPECT not in changed.change.traits for changed in pair)
        is_fruitful = any(changed.change.name in self._fruitful for changed in pair)
        return (
            unsuspected,
            pair not in follow_ups,
            not is_fruitful,
            crc32(f"{self._seed} {variation_name(pair)}".encode()),
        )


def _by_priority(possible: Sequence[ChangedStep], fruitful: Collection[str]) -> list[ChangedStep]:
    """Sort changes: first each change at the first step of a kind, then at the other steps of that kind.

    Ties are broken in favour of fruitful changes, then of the costliest risks.
    """
    once: dict[tuple[str, Variation], ChangedStep] = {}
    for changed in possible:
        once.setdefault((_kind_of_step(changed), changed.change), changed)
    at_first, variations = set(once.values()), rehearsal_variations()

    def rank(changed: ChangedStep) -> tuple[bool, bool, int, int]:
        is_fruitful = changed.change.name in fruitful
        return (
            changed not in at_first,
            not is_fruitful,
            RISKS_BY_COST.index(changed.change.risk),
            variations.index(changed.change),
        )

    return sorted(possible, key=rank)


def _is_early(changed: ChangedStep, singles: Sequence[ChangedStep]) -> bool:
    """Whether a change is a usual suspect, or affects the first step of its kind."""
    same = (
        each
        for each in singles
        if each.change is changed.change and _kind_of_step(each) == _kind_of_step(changed)
    )
    return Trait.SUSPECT in changed.change.traits or next(same) == changed


def _kind_of_step(changed: ChangedStep) -> str:
    return changed.step.partition(":")[0]


def _place_of(variation: ChangedSteps, steps: Sequence[Step]) -> str:
    """Return the place of a variation; findings of one kind at the same place have the same cause."""
    labels = {step.name: step.label for step in steps}
    kinds = [(changed.step.partition(":")[0], labels.get(changed.step, "")) for changed in variation]
    return " + ".join(f"{kind} {label}" if kind in INDEPENDENT_KINDS else "outcome" for kind, label in kinds)


def _threads_note(baseline: RunResult) -> list[str]:
    """Return a note that concurrent handlers were skipped, if the test has webhooks."""
    return [NO_THREADS_NOTE] if any(step.kind == WEBHOOK for step in baseline.steps) else []


def _is_possible(step: Step, change: Variation, baseline: RunResult) -> bool:
    if Trait.RESTART in change.traits and not baseline.has_restart:
        return False
    if Trait.CUSTOMERS in change.traits and not baseline.has_customers:
        return False
    if isinstance(change.effect, Swap) and step == _last_webhook(baseline):
        return False  # there is no later webhook to swap with
    can_return = baseline.has_return and isinstance(step.about, OrderAction) and step.about.has_return
    return can_return or Trait.RETURN not in change.traits


def _last_webhook(baseline: RunResult) -> Step | None:
    return next((step for step in reversed(baseline.steps) if step.kind == WEBHOOK), None)


def finding_sentence(problem: BookProblem, variation: ChangedSteps, steps: Sequence[Step]) -> str:
    """Describe a finding in one sentence: the change, and its effect on the shop."""
    if not variation:
        return f"without any change: {problem.sentence}"
    return f"{_describe_variation(variation, steps)}: {problem.sentence}"


def _describe_variation(variation: ChangedSteps, steps: Sequence[Step]) -> str:
    labels = {step.name: step.label for step in steps}
    return ", and ".join(
        each.change.sentence.format(step=labels.get(each.step, each.step)) for each in variation
    )
