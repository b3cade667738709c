"""Style rules that a program can check."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support.packages import sources

MODULE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60
BRANCHES_MAX = 12
TESTS = Path(__file__).parent
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Yield every function with its length in lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, FUNCTIONS):
            yield f"{path.name}:{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1


def test_modules_and_functions_are_short() -> None:
    """Modules and functions stay within their limits of lines; longer ones are to be split."""
    lines = {path: path.read_text(encoding="utf-8").count("\n") for path in sources()}
    assert {str(path): count for path, count in lines.items() if count > MODULE_LINES_MAX} == {}
    long = [each for path in lines for each in functions(path) if each[1] > FUNCTION_LINES_MAX]
    assert long == []


BRANCHES = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.IfExp,
    ast.ExceptHandler,
    ast.comprehension,
    ast.match_case,
)


def branches(function: ast.AST) -> int:
    """Count the branches of a function, boolean operators and conditions of comprehensions included."""
    count, inner = 1, list(ast.iter_child_nodes(function))
    while inner:
        node = inner.pop()
        if isinstance(node, FUNCTIONS | ast.ClassDef):
            continue
        count += isinstance(node, BRANCHES)
        count += len(node.values) - 1 if isinstance(node, ast.BoolOp) else 0
        count += len(node.ifs) if isinstance(node, ast.comprehension) else 0
        inner += ast.iter_child_nodes(node)
    return count


def test_functions_have_few_branches() -> None:
    """A function has twelve branches at most."""
    branching = {
        f"{path.name}:{node.name}": branches(node)
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, FUNCTIONS) and branches(node) > BRANCHES_MAX
    }
    assert branching == {}


def test_test_modules_are_short() -> None:
    """A test module stays within the limit of lines."""
    lines = {path.name: path.read_text(encoding="utf-8").count("\n") for path in TESTS.rglob("*.py")}
    assert {name: count for name, count in lines.items() if count > MODULE_LINES_MAX} == {}


PACKAGE_LINES_MAX = 45_000


def test_the_package_does_not_grow() -> None:
    """The packages stay within the limit of lines; a separate commit raises it and gives the reason."""
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in sources())
    assert lines <= PACKAGE_LINES_MAX


TESTS_LINES_MAX = 47_400


def test_the_tests_do_not_grow() -> None:
    """The tests stay within the limit of lines; a new test replaces those that prove the same one level below."""
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in TESTS.rglob("*.py"))
    assert lines <= TESTS_LINES_MAX
