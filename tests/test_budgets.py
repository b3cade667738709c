"""Style rules that a program can check; ruff counts the branches of functions."""

import ast
from pathlib import Path

from tests.support.packages import sources

MODULE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60
TESTS = Path(__file__).parent


def line_counts(paths: list[Path]) -> dict[Path, int]:
    """Return the number of lines of each file."""
    return {path: len(path.read_text(encoding="utf-8").splitlines()) for path in paths}


def test_modules_and_functions_are_short() -> None:
    """Modules and functions stay within their limits of lines; longer ones are to be split."""
    paths = [*sources(), *TESTS.rglob("*.py")]
    assert {str(path): count for path, count in line_counts(paths).items() if count > MODULE_LINES_MAX} == {}
    long = [
        f"{path.name}:{node.name}"
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (node.end_lineno or node.lineno) - node.lineno >= FUNCTION_LINES_MAX
    ]
    assert long == []


PACKAGE_LINES_MAX = 41_600


def test_the_package_does_not_grow() -> None:
    """The packages stay within the limit of lines; a separate commit raises it and gives the reason."""
    assert sum(line_counts(list(sources())).values()) <= PACKAGE_LINES_MAX


TESTS_LINES_MAX = 38_000


def test_the_tests_do_not_grow() -> None:
    """The tests stay within the limit of lines; a new test replaces those that prove the same one level below."""
    assert sum(line_counts(list(TESTS.rglob("*.py"))).values()) <= TESTS_LINES_MAX
