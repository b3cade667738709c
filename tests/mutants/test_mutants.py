"""The mutants fit the source, and a run tells whether tests notice a broken rule."""

import sys
from contextlib import closing
from pathlib import Path
from shutil import copy, copytree

import pytest

from payment_sandbox.fidelity.ledger import rules
from tests.mutants.__main__ import KILLED, ROOT, SURVIVED, Workshop, ledger_entries
from tests.mutants.patches import PACKAGE, Hunk, Mutant, mutants
from tests.support.commands import run_program


def test_each_mutant_fits_the_source(tmp_path: Path) -> None:
    """The lines of each mutant occur exactly once, and the changed module has all its names."""
    copytree(ROOT / PACKAGE, tmp_path / PACKAGE.name)
    (tmp_path / "changed").mkdir()
    for number, mutant in enumerate(mutants().values()):
        mutant.apply(tmp_path / PACKAGE.name)
        for hunk in mutant.hunks:
            file = tmp_path / PACKAGE.name / hunk.path
            if file.suffix == ".py":
                copy(file, tmp_path / "changed" / f"{mutant.rule}-{number}-{file.name}")
            file.write_bytes((ROOT / PACKAGE / hunk.path).read_bytes())
    ruff = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--select",
        "F821",
        "--output-format",
        "concise",
    ]
    result = run_program([*ruff, str(tmp_path / "changed")])
    assert result.returncode == 0, result.stdout


def test_each_mutant_was_killed() -> None:
    """Each mutant was killed by a test of its rule, unless its patch is marked untried."""
    known = mutants()
    tests = {entry["id"]: entry["tests"] for entry in ledger_entries()}
    killed = {entry["id"]: entry["killed_by"] for entry in ledger_entries() if entry["killed_by"]}
    assert killed.keys() == {each.rule for each in known.values() if each.hunks and not each.is_untried}
    assert [rule for rule, by in killed.items() if by not in tests[rule]] == []


def test_every_rule_has_a_mutant_or_a_reason() -> None:
    """Every rule has a mutant, or a reason for having none."""
    known = mutants().keys()
    assert {rule["id"] for rule in rules()} <= known <= {entry["id"] for entry in ledger_entries()}


@pytest.mark.prove
def test_a_mutant_survives_tests_that_do_not_notice_it(tmp_path: Path) -> None:
    """A mutant is killed by tests that notice it, and reported as a survivor by others."""
    hunk = Hunk(
        Path("orders/amounts.py"), "AMOUNT_CENTS_MAX: Final", "AMOUNT_CENTS_MAX = 10_000_000\nOTHER: Final"
    )
    mutant = Mutant("ORD-05", (hunk,))
    noticing, others = ["tests/journeys/test_creating_orders.py"], ["tests/fidelity/test_rules.py"]
    with closing(Workshop(tmp_path, 1)) as workshop:
        assert workshop.judge(mutant, others).outcome == SURVIVED
        verdict = workshop.judge(mutant, noticing)
        assert verdict.outcome == KILLED
        assert "test_creating_orders" in verdict.by
        assert workshop.judge(mutant._replace(hunks=()), noticing).outcome == SURVIVED
