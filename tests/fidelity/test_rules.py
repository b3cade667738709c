"""The ledger agrees with the markers of the tests."""

import pytest

from payment_sandbox.fidelity.ledger import TESTS_FOLDER, assumptions, rules
from tests.proofs import read_proofs


def test_every_marker_names_a_rule_of_the_ledger() -> None:
    """Every marker names a rule or an assumption of the ledger."""
    known = {rule["id"] for rule in rules()} | {assumption["id"] for assumption in assumptions()}
    assert [(rule, test) for rule, test in read_proofs(TESTS_FOLDER) if rule not in known] == []


def test_every_rule_is_proven() -> None:
    """Every rule has a test."""
    assert [rule["id"] for rule in rules() if not rule["tests"]] == []


def test_every_assumption_has_a_test() -> None:
    """Every assumption has a test of the sandbox's behaviour."""
    assert [assumption["id"] for assumption in assumptions() if not assumption["tests"]] == []


@pytest.mark.rule("SET-70")
def test_rules_and_assumptions_are_served(sandbox) -> None:  # type: ignore[no-untyped-def]
    """The control API serves rules and assumptions with their sources and tests."""
    served = sandbox.get("/control/fidelity/").json()
    rule = next(item for item in served["items"] if item["id"] == "CAP-04")
    assert rule["source"] == "spec"
    assert rule["tests"]
    numbers = [item["id"] for item in served["assumptions"]]
    assert numbers == [each["id"] for each in assumptions()]
    assert numbers == [f"A{number:02d}" for number in range(1, len(numbers) + 1)]
    assert len(numbers) >= 60
    assert all(
        item["tests"] and item["reason"] and item["source"] in ("inferred", "choice")
        for item in served["assumptions"]
    )
