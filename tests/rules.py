"""Prints the rules of the fidelity ledger that no test proves yet."""

import sys

from payment_sandbox.fidelity.ledger import rules


def main() -> int:
    """Print them."""
    missing = [rule for rule in rules() if not rule.tests]
    for rule in missing:
        note = "  (only a page can show it)" if rule.shown_by == "page" else ""
        print(f"{rule.id:8} {rule.text}{note}")
    print(f"{len(rules()) - len(missing)} of {len(rules())} rules are proven.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
