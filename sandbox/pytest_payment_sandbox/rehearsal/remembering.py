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
    Exploration,
    Explorer,
    RunResult,
    RunVariation,
    parse_variation,
    variation_name,
)
from pytest_payment_sandbox.rehearsal.judging import RunVerdict
from pytest_payment_sandbox.rehearsal.report import save

STATE_FOLDER: Final = Path(".payment-sandbox")
STATE_FILE_NAME: Final = "rehearsal.json"
GITIGNORE: Final = "*\n"
RESTORED_KINDS: Final = (*CALLS, WEBHOOK)  # the kinds of steps whose details fit into JSON

StoredVariations = Mapping[str, Any]
"""The tried variations of a test, as JSON: ``baseline``, and ``runs`` by variation name."""


class TriedVariations:
    """The tried variations of one test, including variations from the previous rehearsal."""

    def __init__(self, baseline: RunResult, stored: StoredVariations | None = None) -> None:
        """Start with the stored variations, if the result of the unchanged test is the same."""
        self.baseline = _with_digest(baseline)
        self._digest = _digest(self.baseline.verdict[1:3])
        self._runs: dict[str, StoredVariations] = {}
        self._known: dict[ChangedSteps, RunResult] = {}
        if stored is not None and stored.get("baseline") == self._digest:
            self._runs = dict(stored["runs"])
            self._known = dict(self._restore())

    @property
    def count(self) -> int:
        """The number of variations tried in the previous rehearsal."""
        return len(self._known)

    def run(self, variation: ChangedSteps, play: RunVariation) -> RunResult:
        """Run a variation, unless its result is stored."""
        if variation in self._known:
            return self._known[variation]
        result = _with_digest(play(variation))
        self._runs[variation_name(variation)] = _to_json(result)
        return result

    def play_only(self, explorer: Explorer, variations: Sequence[ChangedSteps]) -> Exploration:
        """Try only these variations."""
        played = [explorer.explore_only(variation, self.baseline) for variation in variations]
        unplayed = [problem for each in played for problem in each.unplayed]
        return played[-1]._replace(tried=len(played), unplayed=unplayed)

    @property
    def results_json(self) -> StoredVariations:
        """The results of all variations, as JSON."""
        return {"baseline": self._digest, "runs": self._runs}

    def _restore(self) -> Iterator[tuple[ChangedSteps, RunResult]]:
        for name, stored in self._runs.items():
            with suppress(ValueError, KeyError, TypeError):  # the stored name is from another release
                yield parse_variation(name), self._parse_result(stored)

    def _parse_result(self, stored: StoredVariations) -> RunResult:
        steps = {(step.name, step.label): step for step in self.baseline.steps}
        for kind, number, label, call in stored["steps"]:
            step = Step(kind, number, label, ShopCall(*call))
            steps.setdefault((step.name, step.label), step)
        present = set(stored["trace"])
        verdict = RunVerdict(
            [BookProblem(*problem) for problem in stored["problems"]],
            tuple(stored["trace"]),
            (stored["state"],),
            is_duplicate=stored["alike"],
        )
        applied = [change for name in stored["happened"] for change in parse_variation(name)]
        return RunResult(
            verdict,
            [step for step in steps.values() if f"{step.name} {label_without_job(step)}" in present],
            applied,
            stored["timeline"],
            stored["picture"],
        )


def _to_json(result: RunResult) -> StoredVariations:
    return {
        "problems": [list(problem) for problem in result.verdict.problems],
        "trace": list(result.verdict.trace),
        "state": result.verdict.state[0],
        "alike": result.verdict.is_duplicate,
        "steps": [
            [step.kind, step.number, step.label, list(_method_and_path(step))]
            for step in result.steps
            if step.kind in RESTORED_KINDS
        ],
        "happened": [changed.name for changed in result.applied],
        "timeline": result.timeline,
        "picture": result.picture,
    }


def _method_and_path(step: Step) -> tuple[str, str]:
    return (step.about.method, step.about.path) if isinstance(step.about, ShopCall) else ("", "")


def _with_digest(result: RunResult) -> RunResult:
    """Replace the state with a digest, which is sufficient for comparisons."""
    return result._replace(verdict=result.verdict._replace(state=(_digest(result.verdict.state),)))


def _digest(value: object) -> str:
    return blake2b(repr(value).encode(), digest_size=12).hexdigest()


StoredTests = Mapping[str, StoredVariations]
"""The tried variations of each test, by the name of the test."""


def read_state(command: str) -> StoredTests:
    """Read the variations tried by a stopped run of this command in this folder."""
    with suppress(OSError, ValueError, AttributeError):
        tests: StoredTests = json.loads((STATE_FOLDER / STATE_FILE_NAME).read_text(encoding="utf-8")).get(
            command, {}
        )
        return tests
    return {}


def write_state(command: str, tests: StoredTests) -> None:
    """Store the tried variations of this command, or remove the file if there are none.

    Raises:
        OSError: the folder cannot be written.
    """
    if not tests:
        (STATE_FOLDER / STATE_FILE_NAME).unlink(missing_ok=True)
        return
    save(STATE_FOLDER / ".gitignore", GITIGNORE)
    save(STATE_FOLDER / STATE_FILE_NAME, json.dumps({command: dict(tests)}))


FAILED_KEY: Final = "payment-rehearsal"
TRIED_KEY: Final = "payment-rehearsal-tried"


class PytestMemory:
    """Stores the results of a session's rehearsals in pytest's cache."""

    def __init__(self, cache: Any, *, resumes: bool) -> None:
        """Use the cache, if there is one; ``resumes`` resumes the stopped rehearsal."""
        self._cache = cache
        self._resumes = resumes

    def failed_variations(self, nodeid: str) -> list[str]:
        """Return the variations that failed in the last rehearsal."""
        names = self._read_cache(FAILED_KEY, nodeid)
        return names if isinstance(names, list) else []

    def tried_variations(self, nodeid: str) -> StoredVariations | None:
        """Return the tried variations of the stopped rehearsal, if this rehearsal resumes it."""
        tried = self._read_cache(TRIED_KEY, nodeid) if self._resumes else None
        return tried if isinstance(tried, Mapping) else None

    def store(self, nodeid: str, explored: Exploration, tried: TriedVariations, *, is_stopped: bool) -> None:
        """Store the failed variations, and the tried variations if untried variations remain."""
        if self._cache is None:
            return
        names = [finding.name for finding in explored.findings if finding.variation]
        self._cache.set(_cache_key(FAILED_KEY, nodeid), names)
        is_partial = is_stopped or explored.untried > 0
        if is_partial or self._read_cache(TRIED_KEY, nodeid):
            self._cache.set(_cache_key(TRIED_KEY, nodeid), tried.results_json if is_partial else None)

    def _read_cache(self, kind: str, nodeid: str) -> object:
        return self._cache.get(_cache_key(kind, nodeid), None) if self._cache is not None else None


def _cache_key(kind: str, nodeid: str) -> str:
    return f"{kind}/{crc32(nodeid.encode())}"
