"""The model was written from the specification, and stays independent of the engine that it judges."""

import ast
import re
from pathlib import Path
from sys import stdlib_module_names

from payment_sandbox.fidelity.ledger import assumptions, rule_texts

SPECIFICATION = Path(__file__).parent / "specification"


def test_the_model_imports_nothing_of_the_engine() -> None:
    """The executable specification imports the standard library and itself only."""
    imported = {
        name.name if isinstance(node, ast.Import) else str(node.module)
        for file in SPECIFICATION.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    own = "tests.model.specification"
    others = {name.partition(".")[0] for name in imported if not name.startswith(own)}
    assert others <= stdlib_module_names
    assert any(name.startswith(own) for name in imported)


def test_the_model_names_many_rules_of_the_ledger_and_no_others() -> None:
    """The rules and assumptions that the model cites are in the ledger."""
    text = "".join(file.read_text(encoding="utf-8") for file in SPECIFICATION.glob("*.py"))
    named = {*re.findall(r"\b[A-Z]{3,4}-\d\d\b|\bA\d\d\b", text)}
    known = {*rule_texts(), *(assumption["id"] for assumption in assumptions())}
    assert named <= known
    assert len(named) > 200
