"""Prints the rules of the fidelity ledger that no test proves yet."""

import sys

from payment_sandbox.fidelity.ledger import assumptions, rules


def main() -> int:
    """Print the unproven rules and assumptions, and how many rules are proven."""
    missing = [rule for rule in rules() if not rule["tests"]]
    for rule in missing:
        note = "  (only a page can show it)" if rule["shown_by"] == "page" else ""
        print(f"{rule['id']:8} {rule['text']}{note}")
    for assumption in assumptions():
        if not assumption["tests"]:
            print(f"{assumption['id']:8} {assumption['text']}")
    print(f"{len(rules()) - len(missing)} of {len(rules())} rules are proven.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
