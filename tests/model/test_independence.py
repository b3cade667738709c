"""The model was written from the specification, and stays independent of the engine that it judges."""

import ast
from pathlib import Path
from sys import stdlib_module_names

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
