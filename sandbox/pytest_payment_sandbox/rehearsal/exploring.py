"""The exploration of a test: its variations, their order, and their findings."""

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
from pytest_payment_sandbox.rehearsal.causes import Shown, Signs, cause_of
from pytest_payment_sandbox.rehearsal.changes import ChangedStep, changes_of, parse_changed_step
from pytest_payment_sandbox.rehearsal.judging import Judged, State

PAIRS_MAX: Final = 200  # of a test
PAIRS_EARLY: Final = 25  # pairs of usual suspects that come before changes already tried at another step
SEPARATE: Final = (CREATE, CHANGE, PRESS)  # kinds of steps whose failures are independent
TOLD_ONCE: Final = ("test", "invariant", "not-judged", "secret", "waits", "endless", "hangs")
NO_THREADS: Final = (
    "no concurrent handlers were tried: the shop's handlers fail on threads other than the test's"
)

ChangedSteps = tuple[ChangedStep, ...]


def name_of(variation: ChangedSteps) -> str:
    """Return the name of a variation, such as ``webhook:2:twice+action:1:cancels``."""
    return "+".join(changed.name for changed in variation)


def parse_variation(text: str) -> ChangedSteps:
    """Parse ``webhook:2:twice+action:1:cancels``.

    Raises:
        ValueError: a part is not a change.
    """
    return tuple(parse_changed_step(part) for part in text.split("+"))


class Ran(NamedTuple):
    """One run of a test: its judgement, its steps, and the changes that took place."""

    judged: Judged
    steps: Sequence[Step]
    happened: Collection[ChangedStep]
    timeline: str
    picture: str
    has_restart: bool = False
    has_return: bool = False
    has_customers: bool = False


class RehearsalFinding(NamedTuple):
    """A problem, with the smallest variation that shows it."""

    problem: BookProblem
    variation: ChangedSteps
    sentence: str
    timeline: str
    picture: str
    cause: str = ""  # the common cause of all variations with the finding, if it is not the change itself
    smallest: str = ""  # the smallest change with the finding, if the sentence begins with the cause
    shown_by: Sequence[str] = ()  # the names of all variations with the finding

    @property
    def name(self) -> str:
        """The variation as users write it."""
        return name_of(self.variation)


class Explored(NamedTuple):
    """The results of the variations of one test."""

    findings: list[RehearsalFinding]
    tried: int
    untried: int  # beyond the budget
    notes: list[str]
    unplayed: Sequence[str] = ()
    """The reasons why the selected variation, or a part of it, was not played."""
    alike: int = 0  # tried variations that stopped early, because an equal run had continued
    repeated: int = 0  # tried variations that ended in the same state as another one


Run = Callable[[ChangedSteps], Ran]
"""Runs the test once with these changes."""


class Explorer:
    """Tries the variations of one test."""

    def __init__(
        self,
        run: Run,
        has_time: Callable[[], bool],
        *,
        seed: int = 0,
        first: Sequence[ChangedSteps] = (),
        threads: Callable[[], bool] = lambda: True,
        fruitful: Collection[str] = (),
    ) -> None:
        """``first`` has the variations that failed last time; ``threads`` returns whether handlers can run on
        other threads; ``fruitful`` has the names of changes with findings in other tests.
        """
        self._run = run
        self._has_time = has_time
        self._seed = seed
        self._first = first
        self._threads = threads
        self._fruitful = fruitful
        self._findings: dict[
            tuple[str, str], RehearsalFinding
        ] = {}  # by the kind and the place of the problem
        self._tried: dict[ChangedSteps, Ran] = {}
        self._usual: Signs = frozenset()  # signs of the unchanged test
        self._ends: Counter[tuple[Sequence[str], State]] = Counter()

    def explore(self, baseline: Ran) -> Explored:
        """Try all single changes, then pairs, as long as there is time."""
        known = self._begin(baseline)
        notes: list[str] = []
        singles = self._singles(baseline, notes)
        planned = [variation for variation in self._first if set(variation) <= set(singles)]
        planned += [
            (change,) for change in singles if (change,) not in planned and _is_early(change, singles)
        ]
        again: list[ChangedSteps] = [(change,) for change in singles if (change,) not in planned]
        untried = self._try_all(planned, known)
        if not untried:
            untried = self._try_all([*self._pairs(baseline)[:PAIRS_EARLY], *again], known)
        if not untried:
            untried = self._try_all(self._pairs(baseline), known)
        return self.so_far(notes, untried)

    def so_far(self, notes: list[str], untried: int) -> Explored:
        """Return the results so far."""
        return Explored(
            [self._explained(place, finding) for (_, place), finding in self._findings.items()],
            len(self._tried),
            untried,
            notes,
            alike=sum(ran.judged.is_alike for ran in self._tried.values()),
            repeated=sum(count - 1 for count in self._ends.values()),
        )

    def _begin(self, baseline: Ran) -> set[str]:
        """Record the problems of the unchanged test; return their kinds."""
        for problem in baseline.judged.problems:
            self._find(problem, (), baseline)
        self._ends[baseline.judged[1:3]] += 1
        self._usual = baseline.judged.signs
        return {problem.kind for problem in baseline.judged.problems}

    def only(self, variation: ChangedSteps, baseline: Ran) -> Explored:
        """Try only this variation."""
        known = self._begin(baseline)
        ran = self._run(variation)
        self._find_news(variation, ran, known)
        missed = [changed.name for changed in variation if changed not in ran.happened]
        unplayed = [f"the test has no step for {name}" for name in missed]
        return Explored(list(self._findings.values()), 1, 0, [], unplayed)

    def _try_all(self, planned: Sequence[ChangedSteps], known: set[str]) -> int:
        """Try the planned variations; return the number that did not fit into the budget."""
        planned = [variation for variation in planned if variation not in self._tried]
        for count, variation in enumerate(planned):
            if not self._has_time():
                return len(planned) - count
            if self._is_implied(variation):
                continue
            self.note(variation, self._run(variation), known)
        return 0

    def _is_implied(self, variation: ChangedSteps) -> bool:
        """Whether another change of the same step has shown that this one is harmless."""
        if len(variation) != 1 or not variation[0].change.implied_by:
            return False
        (changed,) = variation
        return any(
            len(tried) == 1
            and (tried[0].step, tried[0].change.name) == (changed.step, changed.change.implied_by)
            and not ran.judged.problems
            for tried, ran in self._tried.items()
        )

    def note(self, variation: ChangedSteps, ran: Ran, known: Collection[str] = ()) -> None:
        """Record the result of a variation; problems of known kinds also occur without it."""
        self._tried[variation] = ran
        if not ran.judged.is_alike:
            self._ends[ran.judged[1:3]] += 1
        self._find_news(variation, ran, known)

    def _find_news(self, variation: ChangedSteps, ran: Ran, known: Collection[str]) -> None:
        """Record one finding of a variation: its other problems have the same cause."""
        news = [problem for problem in ran.judged.problems if problem.kind not in known]
        if news and not any(self._is_told(problem.kind, variation, ran.steps) for problem in news):
            self._find(news[0], variation, ran)

    def _is_told(self, kind: str, variation: ChangedSteps, steps: Sequence[Step]) -> bool:
        """Whether a finding of this kind has the same cause; pairs have no known cause."""
        if len(variation) == 1 and kind not in TOLD_ONCE:
            return (kind, _place_of(variation, steps)) in self._findings
        return any(kind == told for told, _ in self._findings)

    def _find(self, problem: BookProblem, variation: ChangedSteps, ran: Ran) -> None:
        cause = problem.kind, _place_of(variation, ran.steps)
        self._findings.setdefault(
            cause,
            RehearsalFinding(
                problem, variation, sentence_of(problem, variation, ran.steps), ran.timeline, ran.picture
            ),
        )

    def _explained(self, place: str, finding: RehearsalFinding) -> RehearsalFinding:
        """Add to a finding the cause that all its variations share."""
        if not finding.variation:
            return finding
        kind = finding.problem.kind
        failing: dict[str, Shown] = {}
        passing: list[Shown] = []
        for variation, ran in self._tried.items():
            labels = {step.name: step.label for step in ran.steps}
            shown = Shown(variation, ran.judged.signs, labels)
            is_there = any(problem.kind == kind for problem in ran.judged.problems)
            if is_there and _place_of(variation, ran.steps) == place:
                failing[name_of(variation)] = shown
            elif not is_there:
                passing.append(shown)
        cause = cause_of(kind, list(failing.values()), passing, self._usual)
        if not cause:
            return finding._replace(shown_by=list(failing))
        return finding._replace(
            sentence=f"{cause}: {finding.problem.sentence}",
            cause=cause,
            smallest=_in_words(finding.variation, self._tried[finding.variation].steps),
            shown_by=list(failing),
        )

    def _singles(self, baseline: Ran, notes: list[str]) -> list[ChangedStep]:
        possible = [
            ChangedStep(step.name, change)
            for step in baseline.steps
            for change in changes_of(step)
            if _is_possible(step, change, baseline)
        ]
        if any(Trait.THREADS in changed.change.traits for changed in possible) and not self._threads():
            notes += _why_not_together(baseline)
            possible = [each for each in possible if Trait.THREADS not in each.change.traits]
        return _most_telling_first(possible, self._fruitful)

    def _pairs(self, baseline: Ran) -> list[ChangedSteps]:
        """Return pairs of changes that had a harmless effect, the most promising pairs first."""
        known, places = (
            rehearsal_variations(),
            {step.name: place for place, step in enumerate(baseline.steps)},
        )
        harmless = sorted(
            self._harmless(baseline), key=lambda each: (known.index(each.change), places[each.step])
        )
        pairs: list[ChangedSteps] = [
            pair for pair in combinations(harmless, 2) if pair[0].step != pair[1].step
        ]
        later = self._follow_ups(baseline, harmless)
        ordered = sorted(dict.fromkeys([*pairs, *later]), key=lambda pair: self._suspicion(pair, later))
        return self._varied(ordered)[:PAIRS_MAX]

    def _harmless(self, baseline: Ran) -> Iterator[ChangedStep]:
        """Yield the harmless changes, one for each final state.

        Usual suspects count once for each step, and always if the test ends in its usual state: if a second
        webhook makes up for a lost one, the second webhook can be lost, too.
        """
        ends, places = {baseline.judged[1:3]}, set()
        for variation, ran in self._tried.items():
            if len(variation) != 1 or ran.judged.problems:
                continue
            (changed,), end = variation, ran.judged[1:3]
            is_new = not ran.judged.is_alike and end not in ends
            if Trait.SUSPECT in changed.change.traits:
                is_new = end == baseline.judged[1:3] or (changed.step, end) not in places
            if is_new:
                yield changed
            if end != baseline.judged[1:3]:
                ends.add(end)
                places.add((changed.step, end))

    def _varied(self, pairs: Sequence[ChangedSteps]) -> list[ChangedSteps]:
        """Sort pairs so that each combination of two changes comes once before any is repeated."""
        counts: Counter[tuple[str, ...]] = Counter()
        ranked = []
        for place, pair in enumerate(pairs):
            names = tuple(sorted(f"{each.step.partition(':')[0]} {each.change.name}" for each in pair))
            unsuspected = sum(Trait.SUSPECT not in each.change.traits for each in pair)
            ranked.append((counts[names] + unsuspected, place, pair))
            counts[names] += 1
        return [pair for _, _, pair in sorted(ranked, key=lambda each: each[:2])]

    def _follow_ups(self, baseline: Ran, harmless: Sequence[ChangedStep]) -> set[ChangedSteps]:
        """Return pairs whose second change is at a step that only the first one causes, such as a retry.

        A read by a job that replaces a read by a webhook handler is such a step, too.
        """
        known = {(step.name, step.label) for step in baseline.steps}
        return {
            (first, ChangedStep(step.name, change))
            for first in harmless
            for step in self._tried[(first,)].steps
            if (step.name, step.label) not in known
            for change in changes_of(step)
            if _is_possible(step, change, baseline) and Trait.THREADS not in change.traits
        }

    def _suspicion(self, pair: ChangedSteps, later: Collection[ChangedSteps]) -> tuple[int, bool, bool, int]:
        """Return the sort key of a pair: first the pairs with the most changes that often break shops.

        Follow-up pairs come first among these, then changes with findings in other tests; the seed decides
        among equals.
        """
        unsuspected = sum(Trait.SUSPECT not in changed.change.traits for changed in pair)
        is_fruitful = any(changed.change.name in self._fruitful for changed in pair)
        return (
            unsuspected,
            pair not in later,
            not is_fruitful,
            crc32(f"{self._seed} {name_of(pair)}".encode()),
        )


def _most_telling_first(possible: Sequence[ChangedStep], fruitful: Collection[str]) -> list[ChangedStep]:
    """Sort changes: first each change at one step of a kind, then at the other steps of the kind.

    Fruitful changes come first among these, then the costliest risks. That one step is the first of its kind.
    """
    once: dict[tuple[str, Variation], ChangedStep] = {}
    for changed in possible:
        once.setdefault((_kind(changed), changed.change), changed)
    at_first, known = set(once.values()), rehearsal_variations()

    def rank(changed: ChangedStep) -> tuple[bool, bool, int, int]:
        is_fruitful = changed.change.name in fruitful
        return (
            changed not in at_first,
            not is_fruitful,
            RISKS_BY_COST.index(changed.change.risk),
            known.index(changed.change),
        )

    return sorted(possible, key=rank)


def _is_early(changed: ChangedStep, singles: Sequence[ChangedStep]) -> bool:
    """Whether a change is a usual suspect, or is the first of its kind."""
    alike = (each for each in singles if each.change is changed.change and _kind(each) == _kind(changed))
    return Trait.SUSPECT in changed.change.traits or next(alike) == changed


def _kind(changed: ChangedStep) -> str:
    return changed.step.partition(":")[0]


def _place_of(variation: ChangedSteps, steps: Sequence[Step]) -> str:
    """Return the place of a variation; findings of one kind at the same place have the same cause."""
    labels = {step.name: step.label for step in steps}
    kinds = [(changed.step.partition(":")[0], labels.get(changed.step, "")) for changed in variation]
    return " + ".join(f"{kind} {label}" if kind in SEPARATE else "outcome" for kind, label in kinds)


def _why_not_together(baseline: Ran) -> list[str]:
    """Return a note on the skipped concurrent handlers, if the test has webhooks."""
    return [NO_THREADS] if any(step.kind == WEBHOOK for step in baseline.steps) else []


def _is_possible(step: Step, change: Variation, baseline: Ran) -> bool:
    if Trait.RESTART in change.traits and not baseline.has_restart:
        return False
    if Trait.CUSTOMERS in change.traits and not baseline.has_customers:
        return False
    if isinstance(change.effect, Swap) and step == _last_webhook(baseline):
        return False  # no webhook follows it
    can_return = baseline.has_return and isinstance(step.about, OrderAction) and step.about.has_return
    return can_return or Trait.RETURN not in change.traits


def _last_webhook(baseline: Ran) -> Step | None:
    return next((step for step in reversed(baseline.steps) if step.kind == WEBHOOK), None)


def sentence_of(problem: BookProblem, variation: ChangedSteps, steps: Sequence[Step]) -> str:
    """Return a finding in one sentence: the change, and its effect on the shop."""
    if not variation:
        return f"as it is: {problem.sentence}"
    return f"{_in_words(variation, steps)}: {problem.sentence}"


def _in_words(variation: ChangedSteps, steps: Sequence[Step]) -> str:
    labels = {step.name: step.label for step in steps}
    return ", and ".join(
        each.change.sentence.format(step=labels.get(each.step, each.step)) for each in variation
    )
