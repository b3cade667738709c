"""Which variations of a test to try, in which order, and what they showed."""

from collections.abc import Callable, Collection, Sequence
from itertools import combinations
from typing import Final, NamedTuple
from zlib import crc32

from payment_sandbox.scenarios.variation import WEBHOOK, Acts, Step, Trait, Variation
from payment_sandbox.scenarios.variations import rehearsed
from pytest_payment_sandbox.rehearsal.books import BookProblem
from pytest_payment_sandbox.rehearsal.changes import ChangedStep, changes_of, parse_changed_step
from pytest_payment_sandbox.rehearsal.judging import Judged

PAIRS_MAX: Final = 100  # of a test
NO_THREADS: Final = (
    "nothing was tried at the same moment: the shop's handlers fail on other threads than the test's"
)

ChangedSteps = tuple[ChangedStep, ...]


def name_of(variation: ChangedSteps) -> str:
    """How users write a variation: ``webhook:2:twice+action:1:cancels``."""
    return "+".join(changed.name for changed in variation)


def parse_variation(text: str) -> ChangedSteps:
    """Read ``webhook:2:twice+action:1:cancels``.

    Raises:
        ValueError: a change is none.
    """
    return tuple(parse_changed_step(part) for part in text.split("+"))


class Ran(NamedTuple):
    """One run of a test: what it showed, its steps, and whether what was to change did."""

    judged: Judged
    steps: Sequence[Step]
    happened: Collection[ChangedStep]
    timeline: str
    picture: str
    has_restart: bool = False
    has_return: bool = False


class RehearsalFinding(NamedTuple):
    """A problem, with the smallest variation that shows it."""

    problem: BookProblem
    variation: ChangedSteps
    sentence: str
    timeline: str
    picture: str

    @property
    def name(self) -> str:
        """The variation as users write it."""
        return name_of(self.variation)


class Explored(NamedTuple):
    """What the variations of one test showed."""

    findings: list[RehearsalFinding]
    tried: int
    untried: int  # for which there was no time
    notes: list[str]
    unplayed: Sequence[str] = ()
    """Why the only variation, or a part of it, was not played."""


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
    ) -> None:
        """``first`` are the variations that failed the last time; ``threads`` tells whether handlers may run
        on other threads.
        """
        self._run = run
        self._has_time = has_time
        self._seed = seed
        self._first = first
        self._threads = threads
        self._findings: dict[str, RehearsalFinding] = {}
        self._tried: dict[ChangedSteps, Ran] = {}

    def explore(self, baseline: Ran) -> Explored:
        """Try all single changes, then pairs, as long as there is time."""
        known = self._begin(baseline)
        notes: list[str] = []
        singles = self._singles(baseline, notes)
        planned = [variation for variation in self._first if set(variation) <= set(singles)]
        planned += [(change,) for change in singles if (change,) not in planned]
        untried = self._try_all(planned, known)
        if not untried:
            untried = self._try_all(self._pairs(baseline), known)
        return Explored(list(self._findings.values()), len(self._tried), untried, notes)

    def _begin(self, baseline: Ran) -> set[str]:
        """What shows without a change; the kinds of these problems."""
        for problem in baseline.judged.problems:
            self._find(problem, (), baseline)
        return {problem.kind for problem in baseline.judged.problems}

    def only(self, variation: ChangedSteps, baseline: Ran) -> Explored:
        """Try this variation and no other."""
        known = self._begin(baseline)
        ran = self._run(variation)
        self._find_news(variation, ran, known)
        missed = [changed.name for changed in variation if changed not in ran.happened]
        unplayed = [f"the test has no step for {name}" for name in missed]
        return Explored(list(self._findings.values()), 1, 0, [], unplayed)

    def _try_all(self, planned: Sequence[ChangedSteps], known: set[str]) -> int:
        """Try these; return for how many there was no time."""
        for count, variation in enumerate(planned):
            if not self._has_time():
                return len(planned) - count
            ran = self._tried[variation] = self._run(variation)
            self._find_news(variation, ran, known)
        return 0

    def _find_news(self, variation: ChangedSteps, ran: Ran, known: set[str]) -> None:
        """One finding for a variation: what else it shows has the same cause."""
        news = [problem for problem in ran.judged.problems if problem.kind not in known]
        if news and not any(problem.kind in self._findings for problem in news):
            self._find(news[0], variation, ran)

    def _find(self, problem: BookProblem, variation: ChangedSteps, ran: Ran) -> None:
        if problem.kind not in self._findings:
            self._findings[problem.kind] = RehearsalFinding(
                problem, variation, sentence_of(problem, variation, ran.steps), ran.timeline, ran.picture
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
        known = rehearsed()
        return sorted(possible, key=lambda changed: known.index(changed.change))

    def _pairs(self, baseline: Ran) -> list[ChangedSteps]:
        """Pairs of changes that made a difference and did no harm, the most suspicious first."""
        harmless = [
            variation[0]
            for variation, ran in self._tried.items()
            if len(variation) == 1 and not ran.judged.problems and ran.judged[1:] != baseline.judged[1:]
        ]
        pairs: list[ChangedSteps] = [
            pair for pair in combinations(harmless, 2) if pair[0].step != pair[1].step
        ]
        known = {step.name for step in baseline.steps}
        pairs += self._follow_ups(baseline, harmless, known)
        return sorted(dict.fromkeys(pairs), key=lambda pair: self._suspicion(pair, known))[:PAIRS_MAX]

    def _follow_ups(
        self, baseline: Ran, harmless: Sequence[ChangedStep], known: Collection[str]
    ) -> list[ChangedSteps]:
        """Pairs whose second change is in what the shop does only after the first, such as trying again."""
        return [
            (first, ChangedStep(step.name, change))
            for first in harmless
            for step in self._tried[(first,)].steps
            if step.name not in known
            for change in changes_of(step)
            if _is_possible(step, change, baseline) and Trait.THREADS not in change.traits
        ]

    def _suspicion(self, pair: ChangedSteps, known: Collection[str]) -> tuple[int, bool, int]:
        """The fewer of the usual suspects, the later; what is tried again fails first.

        Among equals, only the seed decides.
        """
        unsuspected = sum(Trait.SUSPECT not in changed.change.traits for changed in pair)
        return unsuspected, pair[1].step in known, crc32(f"{self._seed} {name_of(pair)}".encode())


def _why_not_together(baseline: Ran) -> list[str]:
    """Without webhooks, nobody has looked; a note would be about something else."""
    return [NO_THREADS] if any(step.kind == WEBHOOK for step in baseline.steps) else []


def _is_possible(step: Step, change: Variation, baseline: Ran) -> bool:
    if Trait.RESTART in change.traits and not baseline.has_restart:
        return False
    can_return = baseline.has_return and isinstance(step.about, Acts) and step.about.has_return
    return can_return or Trait.RETURN not in change.traits


def sentence_of(problem: BookProblem, variation: ChangedSteps, steps: Sequence[Step]) -> str:
    """A finding in one sentence: what went otherwise, and what the shop made of it."""
    if not variation:
        return f"as it is: {problem.sentence}"
    labels = {step.name: step.label for step in steps}
    changes = [each.change.sentence.format(step=labels.get(each.step, each.step)) for each in variation]
    return f"{', and '.join(changes)}: {problem.sentence}"
