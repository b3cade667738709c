"""Finds which tests prove which rules, by their pytest marks, in a wheel build or in a checkout.

The wheel build and a checkout run this module on its own, so it imports nothing from the package.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

MARK = "pytest.mark.rule"


def read_proofs(tests: Path) -> list[tuple[str, str]]:
    """Return sorted pairs of a rule and a test that proves it."""
    found = []
    for path in sorted(tests.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if MARK not in text:
            continue
        name = path.relative_to(tests.parent).as_posix()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                found += [(rule, f"{name}::{node.name}") for rule in _marked(node)]
    return sorted(found)


def table(proofs: list[tuple[str, str]]) -> str:
    """Format the proofs as the table that ships in the wheel."""
    return "".join(f"{rule}\t{test}\n" for rule, test in [("rule", "test"), *proofs])


def _marked(node: ast.FunctionDef) -> Iterator[str]:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == MARK:
            for argument in decorator.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value
