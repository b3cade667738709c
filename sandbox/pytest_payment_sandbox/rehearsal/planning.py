"""Plans the variations of a test: which to try, and in which order."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import combinations
from typing import Final, NamedTuple
from zlib import crc32

from payment_sandbox.scenarios.effects import Swap
from payment_sandbox.scenarios.risks import BLOCKED_SHOP, RATE_LIMITED_SHOP, RISKS_BY_COST
from payment_sandbox.scenarios.variation import (
    ACTION,
    CALLS,
    NO_TRAITS,
    WEBHOOK,
    OrderAction,
    Repeat,
    Step,
    Trait,
    Variation,
)
from payment_sandbox.scenarios.variation_catalogue import rehearsal_variations
from pytest_payment_sandbox.rehearsal.changes import (
    ChangedStep,
    ChangedSteps,
    possible_changes,
    variation_name,
)
from pytest_payment_sandbox.rehearsal.judging import REVIEW_PREFIX, RunVerdict
from pytest_payment_sandbox.rehearsal.places import SourceLine

PAIRS_MAX: Final = 200  # pairs tried per test
EARLY_PAIRS_MAX: Final = 25  # pairs that precede changes already tried at another step
TEST_TRAITS: Final = Trait.RETURN | Trait.RESTART  # requirements for a test
CLIENT_RISKS: Final = (BLOCKED_SHOP, RATE_LIMITED_SHOP)  # depend on the HTTP client, not on the order
NO_THREADS_NOTE: Final = (
    "concurrent handlers were skipped: the shop's handlers fail on threads other than the test's"
)


class Run(NamedTuple):
    """One run of a test: its verdict, its steps, and the changes that took effect."""

    verdict: RunVerdict
    steps: Sequence[Step] = ()
    applied: Collection[ChangedStep] = ()
    timeline: str = ""
    line: SourceLine | None = None  # the shop's line of the changed call, if it is known
    traits: Trait = NO_TRAITS  # the requirements of variations that the test meets

    @property
    def end(self) -> tuple[object, object]:
        """The trace and the final state, for comparison with other runs."""
        return self.verdict.trace, self.verdict.state


class Hints(NamedTuple):
    """Hints on the order of variations: the seed, and variations and changes with earlier findings."""

    seed: int = 0
    first: Sequence[ChangedSteps] = ()
    fruitful: Collection[str] = ()


NO_HINTS: Final = Hints()


class Plan:
    """The variations of one test: single changes first, then pairs, until the time is up."""

    def __init__(
        self,
        baseline: Run,
        has_time: Callable[[], bool],
        *,
        hints: Hints = NO_HINTS,
        can_use_threads: Callable[[], bool] = lambda: True,
        only: ChangedSteps | None = None,
    ) -> None:
        """Plan all variations of a test, or only the given one."""
        self.baseline = baseline
        self.runs: dict[ChangedSteps, Run] = {}
        self.untried = 0  # variations skipped for lack of time
        self.notes: list[str] = []
        self._has_time = has_time
        self._hints = hints
        self._can_use_threads = can_use_threads
        self._only = only or ()
        self._upcoming = self._variations() if only is None else iter([only] if only else [])

    def next(self) -> ChangedSteps | None:
        """Return the next variation, or None at the end."""
        return next(self._upcoming, None)

    @property
    def unplayed(self) -> list[str]:
        """Reasons why parts of the selected variation were not played."""
        applied = self.runs[self._only].applied if self._only in self.runs else self._only
        return [
            f"the test has no step for {changed.name}" for changed in self._only if changed not in applied
        ]

    def _variations(self) -> Iterator[ChangedSteps]:
        singles = self._single_changes()
        planned = [variation for variation in self._hints.first if set(variation) <= set(singles)]
        firsts = _first_of_each(singles, self.baseline)
        planned += [
            (change,)
            for change in singles
            if (change,) not in planned and (change in firsts or Trait.SUSPECT in change.change.traits)
        ]
        yield from self._try(planned)
        if not self.untried:
            yield from self._try([*self._pairs()[:EARLY_PAIRS_MAX], *((change,) for change in singles)])
        if not self.untried:
            yield from self._try(self._pairs())

    def _try(self, planned: Sequence[ChangedSteps]) -> Iterator[ChangedSteps]:
        """Yield the planned variations; count those that exceed the budget."""
        planned = [variation for variation in planned if variation not in self.runs]
        for count, variation in enumerate(planned):
            if not self._has_time():
                self.untried += len(planned) - count
                return
            yield variation

    def _single_changes(self) -> list[ChangedStep]:
        baseline = self.baseline
        possible = [
            ChangedStep(step.name, change)
            for step in baseline.steps
            for change in possible_changes(step)
            if _is_possible(step, change, baseline)
        ]
        return self._by_priority(self._without_threads(possible))

    def _by_priority(self, possible: Sequence[ChangedStep]) -> list[ChangedStep]:
        """Sort changes: first each change at the first step with a label, then at the other steps.

        Ties are broken in favour of fruitful changes, then of the costliest risks.
        """
        firsts, variations = _first_of_each(possible, self.baseline), rehearsal_variations()

        def rank(changed: ChangedStep) -> tuple[bool, bool, int, int]:
            return (
                changed not in firsts,
                changed.change.name not in self._hints.fruitful,
                RISKS_BY_COST.index(changed.change.risk),
                variations.index(changed.change),
            )

        return sorted(possible, key=rank)

    def _without_threads(self, possible: list[ChangedStep]) -> list[ChangedStep]:
        """Return the changes without those that need threads, if the shop's test cannot use any."""
        others = [each for each in possible if Trait.THREADS not in each.change.traits]
        if others == possible or self._can_use_threads():
            return possible
        if any(step.kind == WEBHOOK for step in self.baseline.steps):
            self.notes.append(NO_THREADS_NOTE)
        return others

    def _pairs(self) -> list[ChangedSteps]:
        """Return pairs of harmless changes, the most promising pairs first."""
        variations = rehearsal_variations()
        places = {step.name: place for place, step in enumerate(self.baseline.steps)}
        harmless = sorted(
            self._harmless_changes(),
            key=lambda each: (variations.index(each.change), places[each.step]),
        )
        pairs: list[ChangedSteps] = [
            pair
            for pair in combinations(harmless, 2)
            if pair[0].step != pair[1].step and self._can_happen(*pair) and self._can_happen(*pair[::-1])
        ]
        follow_ups = self._follow_ups(harmless)
        ordered = sorted(dict.fromkeys([*pairs, *follow_ups]), key=lambda pair: self._rank(pair, follow_ups))
        return self._diversify(ordered)[:PAIRS_MAX]

    def _can_happen(self, changed: ChangedStep, other: ChangedStep) -> bool:
        """Whether another change can happen after a change, which may have replaced the other one's step."""
        steps = self.runs[(changed,)].steps
        return any(step.name == other.step and other.change.applies_to(step) for step in steps)

    def _harmless_changes(self) -> Iterator[ChangedStep]:
        """Yield one change per final state, unless the change has findings other than the review's.

        Usual suspects are yielded once per step, and always if the final state is unchanged: if a second
        webhook makes up for a lost webhook, the second webhook can be lost, too. A harmless repetition needs
        nothing to make up for it.
        """
        unchanged, places = self.baseline.end, set()
        ends = {unchanged}
        for variation, run in self.runs.items():
            if len(variation) != 1 or not all(
                each.kind.startswith(REVIEW_PREFIX) for each in run.verdict.problems
            ):
                continue
            (changed,), end = variation, run.end
            is_new = end not in ends
            if changed.change.traits & (Trait.SUSPECT | Trait.AT_ONCE) == Trait.SUSPECT:
                is_new = end == unchanged or (changed.step, end) not in places
            if is_new:
                yield changed
            if end != unchanged:
                ends.add(end)
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

    def _follow_ups(self, harmless: Sequence[ChangedStep]) -> set[ChangedSteps]:
        """Return pairs whose second change is possible only after the first change.

        The first change causes another step, such as a retry or a read by a job that replaces a read by a
        webhook handler; or it enables another change to the same step, such as a payment on the page of an
        earlier attempt.
        """
        usual = {(step.name, step.label): possible_changes(step) for step in self.baseline.steps}
        return {
            (first, ChangedStep(step.name, change))
            for first in harmless
            for step in self.runs[(first,)].steps
            if step.name != first.step
            for change in possible_changes(step)
            if change not in usual.get((step.name, step.label), ())
            and _is_possible(step, change, self.runs[(first,)])
            and _may_follow(step, change)
        }

    def _rank(self, pair: ChangedSteps, follow_ups: Collection[ChangedSteps]) -> tuple[int, bool, bool, int]:
        """Return the sort key of a pair: the pairs with the most usual suspects come first.

        Ties are broken in favour of follow-up pairs, then of changes with findings in other tests, then by
        the seed.
        """
        unsuspected = sum(Trait.SUSPECT not in changed.change.traits for changed in pair)
        is_fruitful = any(changed.change.name in self._hints.fruitful for changed in pair)
        return (
            unsuspected,
            pair not in follow_ups,
            not is_fruitful,
            crc32(f"{self._hints.seed} {variation_name(pair)}".encode()),
        )


def _first_of_each(changes: Sequence[ChangedStep], run: Run) -> set[ChangedStep]:
    """Return each change at the first of the steps with the same label."""
    labels = {step.name: step.label for step in run.steps}
    once: dict[tuple[str, Variation], ChangedStep] = {}
    for changed in changes:
        once.setdefault((labels[changed.step], changed.change), changed)
    return set(once.values())


def _is_possible(step: Step, change: Variation, run: Run) -> bool:
    if change.traits & TEST_TRAITS & ~run.traits:
        return False
    has_return = isinstance(step.about, OrderAction) and step.about.has_return
    return (has_return or Trait.RETURN not in change.traits) and _fits_other_steps(step, change, run)


def _fits_other_steps(step: Step, change: Variation, run: Run) -> bool:
    """Whether the steps before and after a step leave room for a change to it."""
    place = list(run.steps).index(step)
    earlier, later = run.steps[:place], run.steps[place + 1 :]
    if change.risk in CLIENT_RISKS:
        return all(each.label != step.label for each in earlier)
    if isinstance(change.effect, Swap):
        return any(each.kind == WEBHOOK for each in later)
    is_late = isinstance(change.effect, Repeat) and change.effect.is_late
    return not is_late or any(each.kind == ACTION for each in later)


def _may_follow(step: Step, change: Variation) -> bool:
    is_usual = step.kind not in CALLS or Trait.SUSPECT in change.traits
    return is_usual and Trait.THREADS not in change.traits
