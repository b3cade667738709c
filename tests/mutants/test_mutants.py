"""The mutants fit the source, and a run tells whether tests notice a broken rule."""

import sys
from contextlib import closing
from pathlib import Path
from shutil import copy, copytree

import pytest

from payment_sandbox.fidelity.ledger import rules
from tests.mutants.__main__ import KILLED, ROOT, SURVIVED, Workshop, ledger_entries, sample
from tests.mutants.patches import PACKAGE, Hunk, Mutant, PatchRefused, mutants
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


def test_a_sample_changes_with_its_seed() -> None:
    """A sample changes with its seed, and is reproducible."""
    known = list(mutants().values())
    monday, tuesday = (sample(known, 12, day) for day in ("2026-11-23", "2026-11-24"))
    assert monday != tuesday
    assert monday == sample(known[::-1], 12, "2026-11-23")
    assert len({each.rule for each in monday}) == 12


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("orders/order.py\n-a\n+b\n", "line 1: a block begins with a rule"),
        ("[CAP-01]\norders/order.py\n+b\n-a\n", "lines with - come first"),
        ("[CAP-01]\n", "either a patch or a reason"),
        ("[CAP-01] none: no reason\norders/order.py\n-a\n+b\n", "either a patch or a reason"),
        ("[CAP-01] none: one\n[CAP-01] none: two\n", "another mutant already"),
    ],
)
def test_a_malformed_file_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    """A malformed patch file is refused with the mistake and its position."""
    (tmp_path / "some.patch").write_text(text)
    with pytest.raises(PatchRefused, match=problem):
        mutants(tmp_path)


@pytest.mark.parametrize(("before", "after"), [("nowhere\n", ""), ("\n", ""), ('"""', '"""')])
def test_a_patch_that_does_not_fit_is_refused(before: str, after: str) -> None:
    """A patch is refused if its lines do not occur exactly once, or do not change."""
    with pytest.raises(PatchRefused, match="these lines occur"):
        Hunk(Path("orders/amounts.py"), before, after).apply(ROOT / PACKAGE)


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
