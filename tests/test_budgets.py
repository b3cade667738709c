"""The house rules that a machine can count."""

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

from tests.support.packages import MAIN, SOURCE, WINGS, module_name, sources

MODULE_LINES_MAX = 600
FUNCTION_LINES_MAX = 40
VIEW_LINES_MAX = 12
BRANCHES_MAX = 10
TESTS = Path(__file__).parent
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Every function with its length in lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, FUNCTIONS):
            yield f"{path.name}:{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1


def test_modules_and_functions_are_short() -> None:
    """Where one grows over its budget, the idea wants to be split."""
    lines = {path: path.read_text(encoding="utf-8").count("\n") for path in sources()}
    assert {str(path): count for path, count in lines.items() if count > MODULE_LINES_MAX} == {}
    long = [found for path in lines for found in functions(path) if found[1] > FUNCTION_LINES_MAX]
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
    """How many ways lead through a function, boolean operators and conditions of comprehensions counted."""
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
    """Ten at most."""
    found = {
        f"{path.name}:{node.name}": branches(node)
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, FUNCTIONS) and branches(node) > BRANCHES_MAX
    }
    assert found == {}


def test_test_modules_are_short() -> None:
    """One behaviour each."""
    lines = {path.name: path.read_text(encoding="utf-8").count("\n") for path in TESTS.rglob("*.py")}
    assert {name: count for name, count in lines.items() if count > MODULE_LINES_MAX} == {}


def test_every_room_has_a_folder_of_tests() -> None:
    """With its name, so that a reader finds what tries it."""
    rooms = {path.parent.name for path in MAIN.glob("*/__init__.py")}
    assert {room for room in rooms if not any((TESTS / room).rglob("test_*.py"))} == set()


def views(path: Path) -> Iterator[str]:
    """The functions that answer a route, if they are long."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        decorators = getattr(node, "decorator_list", ())
        is_view = any("route(" in ast.unparse(each) for each in decorators)
        if isinstance(node, FUNCTIONS) and is_view:
            if (node.end_lineno or node.lineno) - node.lineno + 1 <= VIEW_LINES_MAX:
                continue
            yield f"{path.name}:{node.name}"


def test_views_only_load_do_and_answer() -> None:
    """A view longer than that does an operation's work."""
    rooms = [MAIN / "web" / room for room in ("merchant", "control", "pages")]
    assert [found for room in rooms for path in room.glob("*.py") for found in views(path)] == []


def test_method_names_stand_in_the_methods_only() -> None:
    """Nothing outside decides by the name of a payment method."""
    names = {"credit-card", "bank-transfer", "bank-redirect-nl", "pay-later-a", "invoice-later-b"}
    found = []
    for path in sources():
        if path.parent.name == "methods":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare):
                found += [
                    f"{path.name}:{node.lineno}"
                    for part in ast.walk(node)
                    if isinstance(part, ast.Constant) and part.value in names
                ]
    assert found == []


NAMES_USED_TWICE_MAX = 11
OF_THEIR_OWN = ("model", "merchant_records.py")
"""The model judges the package and imports nothing of it; the typed records are written by a program."""


def test_a_class_name_has_one_meaning() -> None:
    """A second class of that name is the same thing once more, or wants a name of its own."""
    classes = Counter(
        node.name
        for path in sources()
        if not set(OF_THEIR_OWN) & set(path.relative_to(SOURCE).parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    twice = sorted(name for name, count in classes.items() if count > 1)
    assert len(twice) <= NAMES_USED_TWICE_MAX, twice


SINGLE_IMPORTERS_MAX = 80
PREFIX = f"{MAIN.name}."
DOORS = re.compile(
    r"(?:Other packages may import|No other package imports) (it|any of its modules|.*?)\.(?:\s|$)", re.DOTALL
)


def modules() -> dict[str, Path]:
    """Every module by its name, that of the main package left out, such as ``web.call``."""
    return {
        module_name(path).removeprefix(PREFIX): path for path in sources() if path != MAIN / "__init__.py"
    }


def imports(path: Path, known: Collection[str]) -> Iterator[str]:
    """The modules of all packages that a module imports, inside functions too."""
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
    """Who imports each module."""
    known = modules()
    found: dict[str, set[str]] = {name: set() for name in known}
    for name, path in [*known.items(), ("", MAIN / "__init__.py")]:
        for imported in imports(path, known):
            if imported != name:
                found[imported].add(name)
    return found


def test_every_room_names_its_doors() -> None:
    """What other rooms import is what the room's docstring names, no more and no less."""
    known, found = modules(), importers()
    differing = {}
    for room in [
        name
        for name, path in known.items()
        if path.stem == "__init__" and (path.parent.parent == MAIN or path.parent in WINGS)
    ]:
        inside = {name for name in known if name.startswith(f"{room}.")}
        used = {name for name in (room, *inside) if {each.partition(".")[0] for each in found[name]} - {room}}
        said = DOORS.search(ast.get_docstring(ast.parse(known[room].read_text(encoding="utf-8"))) or "")
        assert said is not None, f"{room} does not say what others import"
        doors = {f"{room}.{name}" for name in re.findall("``(.*?)``", said[1])}
        doors |= {room} if "this package" in said[1] else set()
        doors |= inside if said[1] == "any of its modules" else set()
        if doors != used and (said[1] != "any of its modules" or doors != used - {room}):
            differing[room] = doors ^ used
    assert differing == {}


def test_few_modules_have_a_single_importer() -> None:
    """A helper with one user stands in the module of its user, unless a reader would look for it by name."""
    known = modules()
    single = [name for name, by in importers().items() if len(by) == 1 and known[name].stem != "__init__"]
    assert len(single) <= SINGLE_IMPORTERS_MAX, sorted(single)


PACKAGE_LINES_MAX = 63_050


def test_the_package_does_not_grow() -> None:
    """Its lines; a change that needs more raises the limit in a commit of its own, and says why."""
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in modules().values())
    assert PACKAGE_LINES_MAX - 1000 < lines <= PACKAGE_LINES_MAX


LATE_IMPORTS_MAX = 184
ANYS_MAX = 1278


def test_late_imports_and_anys_stay_few() -> None:
    """Imports inside functions, and names that mypy cannot check; lower the limit where there are fewer."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sources()]
    functions = [node for tree in trees for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    late = {id(node) for each in functions for node in ast.walk(each) if isinstance(node, IMPORTS)}
    anys = [
        node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "Any"
    ]
    assert LATE_IMPORTS_MAX - 15 < len(late) <= LATE_IMPORTS_MAX
    assert ANYS_MAX - 60 < len(anys) <= ANYS_MAX


IMPORTS = ast.Import | ast.ImportFrom
