"""Remembers what was tried, so that a rehearsal that was stopped goes on where it ended."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Final

from payment_sandbox.scenarios.variation import CALLS, WEBHOOK, Asked, Step
from pytest_payment_sandbox.rehearsal.books import BookProblem
from pytest_payment_sandbox.rehearsal.changes import label_without_job
from pytest_payment_sandbox.rehearsal.exploring import (
    ChangedSteps,
    Explored,
    Explorer,
    Ran,
    Run,
    name_of,
    parse_variation,
)
from pytest_payment_sandbox.rehearsal.judging import Judged

RESTORED: Final = (*CALLS, WEBHOOK)  # the kinds of steps whose details fit into JSON

Remembered = Mapping[str, Any]
"""What was tried of a test, as JSON: ``baseline``, and ``runs`` by the name of the variation."""


class Tried:
    """The variations of one test that were tried, also by the rehearsal before."""

    def __init__(self, baseline: Ran, remembered: Remembered | None = None) -> None:
        """Begin with what was remembered, unless the test as it is has changed since."""
        self.baseline = _digested(baseline)
        self._digest = _digest(self.baseline.judged[1:3])
        self._runs: dict[str, Any] = {}
        self._known: dict[ChangedSteps, Ran] = {}
        if remembered is not None and remembered.get("baseline") == self._digest:
            self._runs = dict(remembered["runs"])
            self._known = dict(self._restored())

    @property
    def count(self) -> int:
        """How many variations were tried before."""
        return len(self._known)

    def run(self, variation: ChangedSteps, play: Run) -> Ran:
        """What a variation shows; one that is known is not played again."""
        if variation in self._known:
            return self._known[variation]
        ran = _digested(play(variation))
        self._runs[name_of(variation)] = _stored(ran)
        return ran

    def only(self, explorer: Explorer, variations: Sequence[ChangedSteps]) -> Explored:
        """Try these variations and no other."""
        played = [explorer.only(variation, self.baseline) for variation in variations]
        unplayed = [problem for each in played for problem in each.unplayed]
        return played[-1]._replace(tried=len(played), unplayed=unplayed)

    @property
    def remembered(self) -> Remembered:
        """All of it as JSON."""
        return {"baseline": self._digest, "runs": self._runs}

    def _restored(self) -> Iterator[tuple[ChangedSteps, Ran]]:
        for name, stored in self._runs.items():
            with suppress(ValueError, KeyError, TypeError):  # of another release
                yield parse_variation(name), self._read(stored)

    def _read(self, stored: Mapping[str, Any]) -> Ran:
        steps = {(step.name, step.label): step for step in self.baseline.steps}
        for kind, number, label, asked in stored["steps"]:
            step = Step(kind, number, label, Asked(*asked))
            steps.setdefault((step.name, step.label), step)
        present = set(stored["trace"])
        judged = Judged(
            [BookProblem(*problem) for problem in stored["problems"]],
            tuple(stored["trace"]),
            (stored["state"],),
            is_alike=stored["alike"],
        )
        happened = [change for name in stored["happened"] for change in parse_variation(name)]
        return Ran(
            judged,
            [step for step in steps.values() if f"{step.name} {label_without_job(step)}" in present],
            happened,
            stored["timeline"],
            stored["picture"],
        )


def _stored(ran: Ran) -> dict[str, Any]:
    return {
        "problems": [list(problem) for problem in ran.judged.problems],
        "trace": list(ran.judged.trace),
        "state": ran.judged.state[0],
        "alike": ran.judged.is_alike,
        "steps": [
            [step.kind, step.number, step.label, list(_asked(step))]
            for step in ran.steps
            if step.kind in RESTORED
        ],
        "happened": [changed.name for changed in ran.happened],
        "timeline": ran.timeline,
        "picture": ran.picture,
    }


def _asked(step: Step) -> tuple[str, str]:
    return (step.about.method, step.about.path) if isinstance(step.about, Asked) else ("", "")


def _digested(ran: Ran) -> Ran:
    """The same with a digest of the state, which is only compared."""
    return ran._replace(judged=ran.judged._replace(state=(_digest(ran.judged.state),)))


def _digest(value: object) -> str:
    return blake2b(repr(value).encode(), digest_size=12).hexdigest()
