"""The fidelity ledger as tables: rules by section, and assumptions."""

from itertools import groupby

from payment_sandbox.fidelity import ledger
from payment_sandbox.web.docs.tables import table


def rules() -> str:
    """Every rule, with the number of tests that prove it."""
    shown = []
    for section, found in groupby(ledger.rules(), key=lambda rule: rule.section):
        rows = ((f"`{rule.id}`", rule.source, rule.text, len(rule.tests)) for rule in found)
        shown.append(f"### {section}\n\n" + table(("Rule", "Source", "Text", "Tests"), rows))
    return "\n\n".join(shown)


def assumptions() -> str:
    """Every assumption, with its reason."""
    rows = ((item.id, item.source, item.text, item.reason) for item in ledger.assumptions())
    return table(("No.", "Source", "Assumption", "Why"), rows)
