"""The ledger and the markers agree."""

import pytest

from payment_sandbox.fidelity.ledger import rules
from tests.rules import PROOFS, proofs, table


def test_every_marker_names_a_rule_of_the_ledger() -> None:
    """A marker with a typing error proves nothing."""
    known = {rule.id for rule in rules()}
    assert [(rule, test) for rule, test in proofs() if rule not in known] == []


def test_the_ledger_carries_the_proofs_of_this_suite() -> None:
    """What the sandbox serves as proof is what there is; ``make rules`` writes it."""
    assert PROOFS.read_text(encoding="utf-8") == table()


def test_every_rule_that_a_call_can_show_is_proven() -> None:
    """Only rules that a page must show may lack a test."""
    proven = {rule for rule, _ in proofs()}
    assert [rule.id for rule in rules() if rule.shown_by == "call" and rule.id not in proven] == []


@pytest.mark.rule("SET-70")
def test_rules_and_assumptions_are_served(sandbox) -> None:  # type: ignore[no-untyped-def]
    """Whoever wonders why the sandbox does a thing finds the rule, its source and its proof."""
    served = sandbox.get("/control/fidelity/").json()
    rule = next(item for item in served["items"] if item["id"] == "CAP-04")
    assert rule["source"] == "spec"
    assert rule["tests"]
    assert [item["id"] for item in served["assumptions"]] == [
        f"A{number:02d}" for number in range(1, len(served["assumptions"]) + 1)
    ]
    assert all(item["reason"] and item["source"] in ("inferred", "choice") for item in served["assumptions"])
