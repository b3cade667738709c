"""A new rule or assumption needs a line of the ledger and a marked test; a missing test is reported."""

from pathlib import Path

import pytest

from tests.support.changed_package import ChangedCheckout

RULE = "ORD-99\tResources: Order\tchoice\tcall\tinvoice_number: optional string of digits\n"
ASSUMPTION = "{number}\tchoice\tAn invoice number has digits only.\tNobody writes it otherwise.\n"
MARKED = '''"""Invoices."""

import pytest


@{mark}("{rule}")
def test_an_invoice_number_has_digits() -> None:
    """Only those."""
    assert "17".isdigit()
'''
TESTS = ("tests/fidelity",)
FILE = "test_rules.py"
SERVED_PROGRAM = """
import requests
from payment_sandbox.serving.config import ServerConfig
from payment_sandbox.serving.server import build
from tests.documentation.parts import PARTS

with build(ServerConfig()) as server:
    served = requests.get(f"{server.url}/control/fidelity/", auth=("sandbox-key", ""), timeout=60).json()
    (found,) = [each for each in (*served["items"], *served["assumptions"]) if each["id"] == "RULE"]
    assert found["tests"] == ["tests/fidelity/test_invoices.py::test_an_invoice_number_has_digits"], found
    page = PARTS["rules"]() + PARTS["assumptions"]()
    assert "RULE" in page and found["text"] in page
print("shown")
"""


@pytest.fixture
def checkout(tmp_path: Path) -> ChangedCheckout:
    """A copy of the checkout without this module, so that it does not run recursively."""
    changed = ChangedCheckout(tmp_path)
    (changed.root / "tests" / "fidelity" / Path(__file__).name).unlink()
    return changed


def check_marked_test(checkout: ChangedCheckout, rule: str) -> None:
    """Add a marked test, and check that the tests pass and the rule is served and documented."""
    checkout.add("tests/fidelity/test_invoices.py", MARKED.format(mark="pytest.mark.rule", rule=rule))
    assert checkout.failing(*TESTS) == set()
    assert checkout.run(SERVED_PROGRAM.replace("RULE", rule)) == "shown\n"


@pytest.mark.prove
def test_a_rule_without_a_marked_test_is_reported(checkout: ChangedCheckout) -> None:
    """The tests of the ledger report a rule without a marked test."""
    checkout.package.append("fidelity/rules.tsv", RULE)
    assert checkout.failing(*TESTS) == {f"{FILE}::test_every_rule_is_proven"}
    check_marked_test(checkout, "ORD-99")


@pytest.mark.prove
def test_an_assumption_without_a_marked_test_is_reported(checkout: ChangedCheckout) -> None:
    """The tests of the ledger report an assumption without a marked test."""
    table = checkout.package.root / "fidelity" / "assumptions.tsv"
    number = f"A{len(table.read_text().splitlines()):02d}"
    checkout.package.append("fidelity/assumptions.tsv", ASSUMPTION.format(number=number))
    assert checkout.failing(*TESTS) == {
        f"{FILE}::test_every_assumption_has_a_test",
        f"{FILE}::test_rules_and_assumptions_are_served",
    }
    check_marked_test(checkout, number)


@pytest.mark.prove
def test_a_mark_of_an_unknown_rule_is_reported(checkout: ChangedCheckout) -> None:
    """The tests of the ledger report a mark with an unknown rule."""
    checkout.add("tests/fidelity/test_invoices.py", MARKED.format(mark="pytest.mark.rule", rule="ORD-98"))
    assert checkout.failing(*TESTS) == {f"{FILE}::test_every_marker_names_a_rule_of_the_ledger"}
