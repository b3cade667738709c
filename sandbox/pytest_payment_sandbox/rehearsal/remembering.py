"""Stores the results of tried variations, so that a stopped rehearsal can be resumed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from payment_sandbox.scenarios.variation import CALLS, WEBHOOK, ShopCall, Step
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
from pytest_payment_sandbox.rehearsal.report import save

FOLDER: Final = Path(".payment-sandbox")
NAME: Final = "rehearsal.json"
GITIGNORE: Final = "*\n"
RESTORED: Final = (*CALLS, WEBHOOK)  # the kinds of steps whose details fit into JSON

Remembered = Mapping[str, Any]
"""The tried variations of a test, as JSON: ``baseline``, and ``runs`` by name of the variation."""


class TriedVariations:
    """The tried variations of one test, including the variations of the previous rehearsal."""

    def __init__(self, baseline: Ran, remembered: Remembered | None = None) -> None:
        """Start with the stored variations, unless the result of the unchanged test has changed."""
        self.baseline = _digested(baseline)
        self._digest = _digest(self.baseline.judged[1:3])
        self._runs: dict[str, Remembered] = {}
        self._known: dict[ChangedSteps, Ran] = {}
        if remembered is not None and remembered.get("baseline") == self._digest:
            self._runs = dict(remembered["runs"])
            self._known = dict(self._restored())

    @property
    def count(self) -> int:
        """The number of variations tried in the previous rehearsal."""
        return len(self._known)

    def run(self, variation: ChangedSteps, play: Run) -> Ran:
        """Run a variation, unless its result is stored."""
        if variation in self._known:
            return self._known[variation]
        ran = _digested(play(variation))
        self._runs[name_of(variation)] = _stored(ran)
        return ran

    def only(self, explorer: Explorer, variations: Sequence[ChangedSteps]) -> Explored:
        """Try only these variations."""
        played = [explorer.only(variation, self.baseline) for variation in variations]
        unplayed = [problem for each in played for problem in each.unplayed]
        return played[-1]._replace(tried=len(played), unplayed=unplayed)

    @property
    def remembered(self) -> Remembered:
        """The results of all variations, as JSON."""
        return {"baseline": self._digest, "runs": self._runs}

    def _restored(self) -> Iterator[tuple[ChangedSteps, Ran]]:
        for name, stored in self._runs.items():
            with suppress(ValueError, KeyError, TypeError):  # the name is from another release
                yield parse_variation(name), self._read(stored)

    def _read(self, stored: Remembered) -> Ran:
        steps = {(step.name, step.label): step for step in self.baseline.steps}
        for kind, number, label, asked in stored["steps"]:
            step = Step(kind, number, label, ShopCall(*asked))
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


def _stored(ran: Ran) -> Remembered:
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
    return (step.about.method, step.about.path) if isinstance(step.about, ShopCall) else ("", "")


def _digested(ran: Ran) -> Ran:
    """Replace the state with a digest, which is sufficient for comparisons."""
    return ran._replace(judged=ran.judged._replace(state=(_digest(ran.judged.state),)))


def _digest(value: object) -> str:
    return blake2b(repr(value).encode(), digest_size=12).hexdigest()


RememberedTests = Mapping[str, Remembered]
"""The tried variations of each test, by the name of the test."""


def read_state(command: str) -> RememberedTests:
    """Read the tried variations of a stopped run of this command in this folder."""
    with suppress(OSError, ValueError, AttributeError):
        tests: RememberedTests = json.loads((FOLDER / NAME).read_text(encoding="utf-8")).get(command, {})
        return tests
    return {}


def write_state(command: str, tests: RememberedTests) -> None:
    """Store the tried variations of this command, or remove the file if there are none.

    Raises:
        OSError: the folder cannot be written.
    """
    if not tests:
        (FOLDER / NAME).unlink(missing_ok=True)
        return
    save(FOLDER / ".gitignore", GITIGNORE)
    save(FOLDER / NAME, json.dumps({command: dict(tests)}))


FAILED: Final = "payment-rehearsal"
TRIED: Final = "payment-rehearsal-tried"


class PytestMemory:
    """Stores the results of a session's rehearsals in pytest's cache."""

    def __init__(self, cache: Any, *, goes_on: bool) -> None:
        """Use the cache, if there is one; ``goes_on`` resumes the stopped rehearsal."""
        self._cache = cache
        self._goes_on = goes_on

    def failed(self, nodeid: str) -> list[str]:
        """Return the variations that failed in the last rehearsal."""
        names = self._get(FAILED, nodeid)
        return names if isinstance(names, list) else []

    def tried(self, nodeid: str) -> Remembered | None:
        """Return the tried variations of the stopped rehearsal, if this rehearsal resumes it."""
        tried = self._get(TRIED, nodeid) if self._goes_on else None
        return tried if isinstance(tried, Mapping) else None

    def remember(self, nodeid: str, explored: Explored, tried: TriedVariations, *, is_stopped: bool) -> None:
        """Store the failed variations, and the tried variations if untried variations remain."""
        if self._cache is None:
            return
        names = [finding.name for finding in explored.findings if finding.variation]
        self._cache.set(_key(FAILED, nodeid), names)
        is_partial = is_stopped or explored.untried > 0
        if is_partial or self._get(TRIED, nodeid):
            self._cache.set(_key(TRIED, nodeid), tried.remembered if is_partial else None)

    def _get(self, kind: str, nodeid: str) -> object:
        return self._cache.get(_key(kind, nodeid), None) if self._cache is not None else None


def _key(kind: str, nodeid: str) -> str:
    return f"{kind}/{crc32(nodeid.encode())}"
