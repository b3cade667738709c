"""Which tests prove which rules: read from the markers, written into the ledger."""

import ast
import sys
from pathlib import Path

from payment_sandbox.fidelity.ledger import rules

TESTS = Path(__file__).parent
PROOFS = TESTS.parent / "sandbox" / "payment_sandbox" / "fidelity" / "proofs.tsv"


def proofs() -> list[tuple[str, str]]:
    """Pairs of a rule and a test that proves it, sorted."""
    found = []
    for path in sorted(TESTS.rglob("test_*.py")):
        name = path.relative_to(TESTS.parent).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                found += [(rule, f"{name}::{node.name}") for rule in _marked(node)]
    return sorted(found)


def _marked(node: ast.FunctionDef) -> list[str]:
    return [
        argument.value
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.rule"
        for argument in decorator.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


def table() -> str:
    """The ledger's table of proofs."""
    return "".join(f"{rule}\t{test}\n" for rule, test in [("rule", "test"), *proofs()])


def main() -> int:
    """Write the proofs into the ledger, and print the rules without one."""
    PROOFS.write_text(table(), encoding="utf-8")
    proven = {rule for rule, _ in proofs()}
    missing = [rule for rule in rules() if rule.id not in proven]
    for rule in missing:
        note = "  (only a page can show it)" if rule.shown_by == "page" else ""
        print(f"{rule.id:8} {rule.text}{note}")
    print(f"{len(rules()) - len(missing)} of {len(rules())} rules are proven.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
