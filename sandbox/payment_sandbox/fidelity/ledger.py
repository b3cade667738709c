"""Access to the tables of the ledger, which ship with the package."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from runpy import run_path
from typing import Annotated, Any, Final, Literal, TypedDict

from payment_sandbox.loading import LOADING
from payment_sandbox.packaged import read_packaged

PROOFS_FILE: Final = "proofs.tsv"  # in the wheel only
MUTANTS_FILE: Final = "mutants.tsv"
TESTS_FOLDER: Final = Path(__file__).parents[3] / "tests"  # in a checkout only


class Rule(TypedDict):
    """A rule of the fidelity ledger."""

    id: str
    section: str
    source: Literal["spec", "inferred", "choice"]
    shown_by: Literal["call", "page"]
    text: str
    tests: list[str]
    killed_by: Annotated[str | None, "The test that failed when the rule was broken on purpose."]


class Assumption(TypedDict):
    """A decision on a point left open by the specification, with its reason."""

    id: str
    source: Literal["inferred", "choice"]
    text: str
    reason: str
    tests: list[str]
    killed_by: Annotated[str | None, "The test that failed when the assumption was broken on purpose."]


def _read_rows(name: str) -> Iterator[list[Any]]:
    text = read_packaged(f"fidelity/{name}").decode()
    return (line.split("\t") for line in text.splitlines()[1:] if line)


@cache
def _tests_by_rule() -> dict[str, list[str]]:
    """Return the tests by rule and assumption, from the table in a wheel or the tests of a checkout."""
    try:
        pairs: Iterable[Sequence[str]] = list(_read_rows(PROOFS_FILE))
    except FileNotFoundError:
        with LOADING:  # run_path temporarily changes ``sys.argv``
            read_proofs = run_path(str(TESTS_FOLDER / "proofs.py"))["read_proofs"]
        pairs = read_proofs(TESTS_FOLDER)
    proofs: dict[str, list[str]] = {}
    for rule_id, test in pairs:
        proofs.setdefault(rule_id, []).append(test)
    return proofs


def rules() -> list[Rule]:
    """Return every rule with the names of the tests that prove it."""
    proofs, killed = _tests_by_rule(), dict(_read_rows(MUTANTS_FILE))
    return [
        {
            "id": rule_id,
            "section": section,
            "source": source,
            "shown_by": shown_by,
            "text": text,
            "tests": proofs.get(rule_id, []),
            "killed_by": killed.get(rule_id),
        }
        for rule_id, section, source, shown_by, text in _read_rows("rules.tsv")
    ]


def assumptions() -> list[Assumption]:
    """Return every assumption with the names of its tests, sorted by number."""
    proofs, killed = _tests_by_rule(), dict(_read_rows(MUTANTS_FILE))
    return [
        {
            "id": number,
            "source": source,
            "text": text,
            "reason": reason,
            "tests": proofs.get(number, []),
            "killed_by": killed.get(number),
        }
        for number, source, text, reason in _read_rows("assumptions.tsv")
    ]


@cache
def rule_texts() -> dict[str, str]:
    """Return the text of each rule and assumption by its id."""
    texts = {row[0]: row[-1] for row in _read_rows("rules.tsv")}
    return texts | {row[0]: row[2] for row in _read_rows("assumptions.tsv")}
