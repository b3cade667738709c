"""Concurrent first uses of modules that the package imports late, on eight threads in a fresh process.

A thread starts whenever a module begins to load, so that each thread meets partly loaded modules.
"""

import ast
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from random import Random  # noqa: TID251 (an order of its own for each thread)
from threading import Event, Thread
from typing import Any, NamedTuple

SOURCE = Path(__file__).parents[2] / "sandbox"
MAIN = "payment_sandbox"
OURS = {file.parent.name for file in SOURCE.glob("*/__init__.py")}
THREADS = 8
PAUSE_SECONDS = 0.001  # enough for a thread to proceed until it blocks
LOCK = "LOADING"
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
IMPORTS = ast.Import | ast.ImportFrom


class LateImport(NamedTuple):
    """An import in a function: its statement, and whether it is under the lock."""

    module: str
    text: str
    imported: tuple[str, ...]
    is_locked: bool

    @property
    def is_of_standard_library(self) -> bool:
        """Whether it imports only modules of the standard library."""
        return all(name.partition(".")[0] in sys.stdlib_module_names for name in self.imported)

    @property
    def name(self) -> str:
        """Its name in a report."""
        return f"{self.module}: {self.text}"

    @property
    def room(self) -> str:
        """The layer of its module: a subpackage of the main package, or another distribution."""
        package, _, inner = self.module.partition(".")
        return inner.partition(".")[0] if package == MAIN else package

    @property
    def library(self) -> str:
        """The imported library."""
        return self.imported[0].partition(".")[0]

    @property
    def is_installed(self) -> bool:
        """Whether the library is installed; some belong to shops."""
        return find_spec(self.library) is not None

    @property
    def is_loaded(self) -> bool:
        """Whether this process has loaded its modules."""
        return all(name in sys.modules for name in self.imported)


class Result(NamedTuple):
    """The attempted imports, those that were loaded already, and the problems of the attempted ones."""

    tried: list[str]
    loaded: list[str]
    problems: dict[str, list[str]]


@cache
def late_imports() -> tuple[LateImport, ...]:
    """Return every import in a function of the packages, once for each module."""
    imports: dict[LateImport, None] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        module = ".".join(part for part in parts if part != "__init__")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node, is_locked in _inner(tree, is_late=False, is_locked=False):
            imported = (
                [str(node.module)] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
            )
            imports[LateImport(module, ast.unparse(node), tuple(imported), is_locked)] = None
    return tuple(imports)


def _inner(
    node: ast.AST, *, is_late: bool, is_locked: bool
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Yield the imports in functions, and whether each is under the lock."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, IMPORTS) and is_late:
            yield child, is_locked
        locks = (
            [ast.unparse(item.context_expr) for item in child.items] if isinstance(child, ast.With) else []
        )
        yield from _inner(
            child, is_late=is_late or isinstance(child, FUNCTIONS), is_locked=is_locked or LOCK in locks
        )


def together(works: Sequence[Callable[[], Any]]) -> list[Any]:
    """Return results or exceptions; each function starts on a thread when a further module begins to load."""
    results: list[Any] = [None] * len(works)
    gates = [Event() for _ in works]

    def run(number: int) -> None:
        gates[number].wait()
        try:
            results[number] = works[number]()
        except BaseException as error:
            results[number] = error

    threads = [Thread(target=run, args=(number,)) for number in range(len(works))]
    for thread in threads:
        thread.start()
    _WAITING[:] = gates[:0:-1]
    gates[0].set()
    threads[0].join()
    while _WAITING:
        _WAITING.pop().set()
    for thread in threads:
        thread.join()
    return results


_WAITING: list[Event] = []


def _on_load(event: str, arguments: tuple[Any, ...]) -> None:
    """Start the next thread when a module begins to load."""
    if event == "exec" and _WAITING and arguments[0].co_filename != __file__:
        _WAITING.pop().set()
        Event().wait(PAUSE_SECONDS)


def _run(late: LateImport) -> dict[str, int]:
    """Import as the package does, and return the identity of each name."""
    names: dict[str, Any] = {}
    with import_module("payment_sandbox.loading").LOADING if late.is_locked else nullcontext():
        exec(compile(late.text, __file__, "exec"), names)
    return {name: id(value) for name, value in names.items() if not name.startswith("__")}


def race(imports: Sequence[LateImport]) -> list[str]:
    """Return the problems of eight threads that each run one of these imports."""
    sequence = [imports[number % len(imports)] for number in range(THREADS)]
    results = together([partial(_run, late) for late in sequence])
    problems = {repr(each) for each in results if isinstance(each, BaseException)}
    if not problems and len(imports) == 1 and any(each != results[0] for each in results):
        problems.add("two threads have different objects")
    return sorted(problems)


def run_in_random_order(imports: Sequence[LateImport], seed: int) -> list[str]:
    """Return the problems of eight threads that run all imports in random order."""
    orders = Random(seed)
    problems: set[str] = set()

    def all_in_order(order: Sequence[LateImport]) -> None:
        for late in order:
            try:
                _run(late)
            except BaseException as error:
                problems.add(f"{late.name}: {error!r}")

    def pause(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "exec" and arguments[0].co_filename != __file__:
            Event().wait(PAUSE_SECONDS * orders.random())

    sys.addaudithook(pause)
    sequences = [orders.sample(imports, len(imports)) for _ in range(THREADS)]
    threads = [Thread(target=all_in_order, args=(order,)) for order in sequences]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(problems)


def in_fork(work: Callable[[], Any]) -> Any:
    """Return the result of a function that runs in a fork of this process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(writing, "w") as out:
            json.dump(work(), out)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as printed:
        text = printed.read()
    os.waitpid(child, 0)
    return json.loads(text)


def _races(imports: Sequence[LateImport]) -> Result:
    """Run each import, and those of each library, in forks of a process that has loaded their modules."""
    for late in imports:
        import_module(late.module)
    result = Result([], [], {})
    for late in imports:
        if late.is_loaded:
            result.loaded.append(late.name)
        else:
            result.tried.append(late.name)
            result.problems[late.name] = in_fork(partial(race, [late]))
    for library in sorted({late.library for late in imports} - OURS):
        entries = [late for late in imports if late.library == library and not late.is_loaded]
        for first in range(len(entries) if len(entries) > 1 else 0):
            name = f"{library}, first {entries[first].name}"
            rotated = entries[first:] + entries[:first]
            result.problems[name] = in_fork(partial(race, rotated))
    return result


def main(how: str, seed: int, rooms: Sequence[str]) -> None:
    """Print the problems of the late imports of some layers as JSON."""
    imports = [late for late in late_imports() if late.room in rooms and late.is_installed]
    sys.addaudithook(_on_load)
    if how == "wander":
        for late in imports:
            import_module(late.module)
        print(
            json.dumps(
                [[late.name for late in imports], {"in any order": run_in_random_order(imports, seed)}]
            )
        )
        return
    tried, loaded, problems = Result(*in_fork(partial(_races, imports)))
    for late in imports:
        if how == "alone" and late.name in loaded:
            alone = Result(*in_fork(partial(_races, [late])))
            tried += alone.tried
            problems |= alone.problems
    print(json.dumps([tried, problems]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3].split(","))
