"""Style rules that a program can check."""

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

from tests.support.first_uses import lazy_modules
from tests.support.packages import MAIN, PACKAGES, SOURCE, WINGS, module_name, sources

MODULE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60
VIEW_LINES_MAX = 12
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


def test_every_room_has_a_folder_of_tests() -> None:
    """Each room has a folder of tests with its name, so that readers find its tests."""
    rooms = {path.parent.name for path in MAIN.glob("*/__init__.py")}
    assert {room for room in rooms if not any((TESTS / room).rglob("test_*.py"))} == set()


def views(path: Path) -> Iterator[str]:
    """Yield the view functions that are too long."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        decorators = getattr(node, "decorator_list", ())
        is_view = any("route(" in ast.unparse(each) for each in decorators)
        if isinstance(node, FUNCTIONS) and is_view:
            if (node.end_lineno or node.lineno) - node.lineno + 1 <= VIEW_LINES_MAX:
                continue
            yield f"{path.name}:{node.name}"


def test_views_are_short() -> None:
    """Views are short: the work belongs in an operation."""
    rooms = [MAIN / "web" / "merchant", MAIN / "web" / "control", MAIN / "ui" / "pages"]
    assert [each for room in rooms for path in room.glob("*.py") for each in views(path)] == []


def test_only_methods_compare_method_names() -> None:
    """Only ``methods`` compares names of payment methods."""
    names = {"credit-card", "bank-transfer", "bank-redirect-nl", "pay-later-a", "invoice-later-b"}
    comparisons = []
    for path in sources():
        if path.parent.name == "methods":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare):
                comparisons += [
                    f"{path.name}:{node.lineno}"
                    for part in ast.walk(node)
                    if isinstance(part, ast.Constant) and part.value in names
                ]
    assert comparisons == []


NAMES_USED_TWICE_MAX = 11
EXEMPT_FROM_UNIQUE_NAMES = ("model",)
"""Exempt: the model imports nothing from the package."""


def test_a_class_name_has_one_meaning() -> None:
    """Few class names are used twice: a second class is a duplicate, or needs another name."""
    classes = Counter(
        node.name
        for path in sources()
        if not set(EXEMPT_FROM_UNIQUE_NAMES) & set(path.relative_to(SOURCE).parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    twice = sorted(name for name, count in classes.items() if count > 1)
    assert len(twice) <= NAMES_USED_TWICE_MAX, twice


REPEATED_FILE_NAMES = {"__init__.py", "py.typed", "pyproject.toml", "README.md", "LICENSE"}
"""Exempt: Python, type checkers, builds and package indexes expect a file of this name in each package."""


def test_a_file_name_exists_once() -> None:
    """A file is found by its name; only names that tools prescribe are repeated."""
    files = [path for package in PACKAGES for path in package.rglob("*") if path.is_file()]
    names = Counter(path.name for path in files if "__pycache__" not in path.parts)
    assert {name for name, count in names.items() if count > 1} == REPEATED_FILE_NAMES


SINGLE_IMPORTERS_MAX = 80
PREFIX = f"{MAIN.name}."
IMPORTABLE = re.compile(
    r"(?:Other packages may import|No other package imports) (it|any of its modules|.*?)\.(?:\s|$)", re.DOTALL
)


def modules() -> dict[str, Path]:
    """Return every module by its name without the main package, such as ``web.call``."""
    return {
        module_name(path).removeprefix(PREFIX): path for path in sources() if path != MAIN / "__init__.py"
    }


def imports(path: Path, known: Collection[str]) -> Iterator[str]:
    """Yield the modules of our packages that a module imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{each.name}" for each in node.names)]
            names = [name for name in names[1:] if name.removeprefix(PREFIX) in known] or names[:1]
        elif isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        yield from (name.removeprefix(PREFIX) for name in names if name.removeprefix(PREFIX) in known)


@cache
def importers() -> dict[str, set[str]]:
    """Return the importers of each module."""
    known = modules()
    by_module: dict[str, set[str]] = {name: set() for name in known}
    for name, path in [*known.items(), ("", MAIN / "__init__.py")]:
        for imported in imports(path, known):
            if imported != name:
                by_module[imported].add(name)
    return by_module


def test_every_room_documents_its_public_modules() -> None:
    """The docstring of a room names exactly the modules that other rooms import."""
    known, importers_by_module = modules(), importers()
    differing = {}
    for room in [
        name
        for name, path in known.items()
        if path.stem == "__init__" and (path.parent.parent == MAIN or path.parent in WINGS)
    ]:
        inside = {name for name in known if name.startswith(f"{room}.")}
        used = {
            name
            for name in (room, *inside)
            if {each.partition(".")[0] for each in importers_by_module[name]} - {room}
        }
        sentence = IMPORTABLE.search(
            ast.get_docstring(ast.parse(known[room].read_text(encoding="utf-8"))) or ""
        )
        assert sentence is not None, (
            f"the docstring of {room} does not name the modules that other rooms may import"
        )
        documented = {f"{room}.{name}" for name in re.findall("``(.*?)``", sentence[1])}
        documented |= {room} if "this package" in sentence[1] else set()
        documented |= inside if sentence[1] == "any of its modules" else set()
        if documented != used and (sentence[1] != "any of its modules" or documented != used - {room}):
            differing[room] = documented ^ used
    assert differing == {}


def test_few_modules_have_a_single_importer() -> None:
    """Few modules have one importer: a helper with one user belongs in the module of its user."""
    known = modules()
    single = [name for name, by in importers().items() if len(by) == 1 and known[name].stem != "__init__"]
    assert len(single) <= SINGLE_IMPORTERS_MAX, sorted(single)


PACKAGE_LINES_MAX = 60_240


def test_the_package_does_not_grow() -> None:
    """The packages stay within the limit of lines; a separate commit raises it and gives the reason."""
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in modules().values())
    assert lines <= PACKAGE_LINES_MAX


TESTS_LINES_MAX = 57_930


def test_the_tests_do_not_grow() -> None:
    """The tests stay within the limit of lines; a new test replaces those that prove the same one level below."""
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in TESTS.rglob("*.py"))
    assert lines <= TESTS_LINES_MAX


LAZY_MODULES_MAX = 82
ANYS_MAX = 1244


def test_lazy_modules_and_anys_stay_few() -> None:
    """Modules that are loaded lazily and uses of ``Any`` stay few; lower the limits when their numbers fall."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sources()]
    anys = [
        node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "Any"
    ]
    assert len(list(lazy_modules())) <= LAZY_MODULES_MAX
    assert len(anys) <= ANYS_MAX
