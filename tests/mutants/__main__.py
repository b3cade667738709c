"""Applies each mutant to a copy of the checkout, and runs the tests of its rule, which must fail."""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue
from shutil import copytree, ignore_patterns
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from payment_sandbox.fidelity.ledger import MUTANTS_FILE, Assumption, Rule, assumptions, rules
from payment_sandbox.serving.realtime import monotonic_seconds
from tests.mutants.patches import PACKAGE, Mutant, PatchRefused, mutants

ROOT: Final = Path(__file__).parents[2]
WARM: Final = Path(__file__).with_name("warm.py")
SECONDS_MAX: Final = 240.0
KILLED, SURVIVED, BROKEN = "killed", "SURVIVED", "BROKEN"
FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
TABLE: Final = ROOT / PACKAGE / "fidelity" / MUTANTS_FILE


def copy_checkout(folder: Path) -> None:
    """Copy the sources, tests and scenarios, and the files beside them."""
    for name in ("sandbox", "tests", "scenarios"):
        copytree(ROOT / name, folder / name, ignore=ignore_patterns("__pycache__"))
    for file in ROOT.iterdir():
        if file.is_file():
            (folder / file.name).write_bytes(file.read_bytes())


class Verdict(NamedTuple):
    """The outcome of a mutant, and the test or reason for it."""

    rule: str
    outcome: str
    by: str
    seconds: float


class Workshop:
    """Copies of the checkout, one per worker, each with a process that runs its tests."""

    def __init__(self, folder: Path, workers: int) -> None:
        self._free: SimpleQueue[tuple[Path, subprocess.Popen[str]]] = SimpleQueue()
        self._runners = []
        for number in range(workers):
            copy = folder / f"copy-{number}"
            copy_checkout(copy)
            command = [sys.executable, "-P", str(WARM), str(copy)]
            runner = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self._runners.append(runner)
            self._free.put((copy, runner))

    def judge(self, mutant: Mutant, tests: Sequence[str]) -> Verdict:
        """Run tests on a copy with the mutant."""
        copy, runner = self._free.get()
        started = monotonic_seconds()
        try:
            mutant.apply(copy / PACKAGE)
            outcome, by = _run(copy, runner, tests)
        except PatchRefused as refused:
            outcome, by = BROKEN, str(refused)
        finally:
            for path in {hunk.path for hunk in mutant.hunks}:
                (copy / PACKAGE / path).write_bytes((ROOT / PACKAGE / path).read_bytes())
            self._free.put((copy, runner))
        return Verdict(mutant.rule, outcome, by, monotonic_seconds() - started)

    def close(self) -> None:
        """Stop the processes."""
        for runner in self._runners:
            runner.communicate(timeout=SECONDS_MAX)


def _run(copy: Path, runner: "subprocess.Popen[str]", tests: Sequence[str]) -> tuple[str, str]:
    assert runner.stdin is not None, "stdin and stdout are pipes"
    assert runner.stdout is not None, "stdin and stdout are pipes"
    runner.stdin.write(f"{json.dumps([str(copy), list(tests), SECONDS_MAX])}\n")
    runner.stdin.flush()
    code, output = json.loads(runner.stdout.readline())
    failed = FAILED.search(output)
    if code is None:
        return KILLED, f"still running after {SECONDS_MAX:g} s"
    if code == 0:
        return SURVIVED, ", ".join(tests)
    if code != 1 or failed is None:
        return BROKEN, output.strip().splitlines()[-1]
    return KILLED, failed[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge all mutants, or those of the given rules; return 1 if a mutant survived."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument(
        "rules", nargs="*", metavar="RULE", help="only these rules; CAP for all of CAP-01, CAP-02, …"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--sample", type=int, metavar="N", help="only N mutants, without an update of the table"
    )
    parser.add_argument("--seed", default="", help="the seed of the sample, such as the date")
    options = parser.parse_args(arguments)
    known = mutants()
    selected = [each for each in known.values() if each.hunks and _is_selected(each.rule, options.rules)]
    if options.sample is not None:
        selected = sample([each for each in selected if not each.is_untried], options.sample, options.seed)
        print(f"seed {options.seed!r}: {' '.join(each.rule for each in selected)}", flush=True)
    verdicts = list(judge_all(selected, options.workers))
    survivors = [verdict.rule for verdict in verdicts if verdict.outcome != KILLED]
    if options.sample is None:
        _write(verdicts, known)
    without_mutant = sum(not each.hunks for each in known.values())
    print(
        f"{len(verdicts) - len(survivors)} of {len(verdicts)} killed; "
        f"{without_mutant} rules have a reason instead of a mutant."
    )
    print(
        f"{len({rule['id'] for rule in rules()} - known.keys())} rules have no mutant; {sum(e.is_untried for e in known.values())} are untried."
    )
    return 1 if survivors else 0


def sample(selected: Sequence[Mutant], count: int, seed: str) -> list[Mutant]:
    """Return a sample of the mutants, which depends on the seed."""
    return sorted(selected, key=lambda each: sha256(f"{seed}/{each.rule}".encode()).digest())[:count]


def judge_all(selected: Sequence[Mutant], workers: int) -> Iterator[Verdict]:
    """Judge mutants, and yield and print the verdict on each in order."""
    proofs = {entry["id"]: _killer_first(entry) for entry in ledger_entries()}
    with (
        TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        ThreadPoolExecutor(workers) as pool,
        closing(Workshop(Path(folder), workers)) as workshop,
    ):
        for verdict in pool.map(lambda each: workshop.judge(each, proofs[each.rule]), selected):
            print(f"{verdict.outcome:8} {verdict.rule:8} {verdict.seconds:5.1f} s  {verdict.by}", flush=True)
            yield verdict


def ledger_entries() -> list[Rule | Assumption]:
    """Return all rules and assumptions."""
    return [*rules(), *assumptions()]


def _killer_first(rule: Rule | Assumption) -> list[str]:
    """Return the tests of an entry, starting with the test that killed its mutant before."""
    return sorted(rule["tests"], key=lambda test: test != rule["killed_by"])


def _write(verdicts: Sequence[Verdict], known: Mapping[str, Mutant]) -> None:
    """Update the table of the ledger: the test that failed for each rule."""
    killed = {entry["id"]: entry["killed_by"] for entry in ledger_entries()}
    killed |= {each.rule: each.by.partition("[")[0] if each.outcome == KILLED else None for each in verdicts}
    rows = [(rule, by) for rule, by in killed.items() if by and rule in known]
    TABLE.write_text(
        "".join(f"{rule}\t{by}\n" for rule, by in [("rule", "killed_by"), *rows]), encoding="utf-8"
    )


def _is_selected(rule: str, selection: Sequence[str]) -> bool:
    return not selection or rule in selection or rule.partition("-")[0] in selection


if __name__ == "__main__":
    sys.exit(main())
