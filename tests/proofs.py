"""Finds the tests that prove each rule, by their pytest marks, in a wheel build or in a checkout.

The wheel build and a checkout run this module on its own, so it imports nothing from the package.
"""

import re
from pathlib import Path

MARK_OR_TEST = re.compile(r"^[ \t]*(?:@pytest\.mark\.rule\(([^)]*)\)|def (\w+)\()", re.MULTILINE)
RULE = re.compile(r"""["']([^"']+)["']""")


def read_proofs(tests: Path) -> list[tuple[str, str]]:
    """Return sorted pairs of a rule and a test that proves it."""
    pairs = []
    for path in sorted(tests.rglob("test_*.py")):
        name, rules = path.relative_to(tests.parent).as_posix(), list[str]()
        for arguments, test in MARK_OR_TEST.findall(path.read_text(encoding="utf-8")):
            if test:
                pairs += [(rule, f"{name}::{test}") for rule in rules]
                rules.clear()
            else:
                rules += RULE.findall(arguments)
    return sorted(pairs)


def table(proofs: list[tuple[str, str]]) -> str:
    """Format the proofs as the table that ships in the wheel."""
    return "".join(f"{rule}\t{test}\n" for rule, test in [("rule", "test"), *proofs])
