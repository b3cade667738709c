"""Concurrent first uses of the modules that the package loads lazily, on eight threads in a fresh process."""

import ast
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from random import Random  # noqa: TID251 (an order of its own for each thread)
from threading import Event

from payment_sandbox.loading import load_module
from tests.support.packages import module_name, sources

THREADS = 8
PAUSE_SECONDS = 0.001  # enough for a thread to proceed until it blocks


def loadable_names() -> list[str]:
    """Return the names of the modules that are loaded lazily; some libraries may be missing."""
    names = set()
    for file in sources():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("LazyModule", "late"):
                modules = [str(each.value) for each in node.args if isinstance(each, ast.Constant)]
                is_own = ast.unparse(node.func) == "late"
                names |= {f"{module_name(file)}.{name}" if is_own else name for name in modules}
    return sorted(name for name in names if find_spec(name.partition(".")[0]) is not None)


def load_all(names: Sequence[str]) -> set[str]:
    """Load modules; return the problems."""
    problems = set()
    for name in names:
        try:
            if load_module(name) is not sys.modules[name]:
                problems.add(f"{name}: two threads have different modules")
        except BaseException as error:
            problems.add(f"{name}: {error!r}")
    return problems


def pause_on_load(event: str, _: tuple[object, ...]) -> None:
    """Let other threads run when a module begins to load."""
    if event == "exec":
        Event().wait(PAUSE_SECONDS)


def load_on_threads(sequences: Sequence[Sequence[str]]) -> list[str]:
    """Load modules on one thread for each sequence; return the problems."""
    sys.addaudithook(pause_on_load)
    with ThreadPoolExecutor(len(sequences)) as threads:
        return sorted(set().union(*threads.map(load_all, sequences)))


def load_in_random_order(seed: int) -> list[str]:
    """Return the problems of eight threads that load all modules, each in a random order."""
    orders, names = Random(seed), loadable_names()
    return load_on_threads([orders.sample(names, len(names)) for _ in range(THREADS)])


if __name__ == "__main__":
    print(json.dumps(load_in_random_order(int(sys.argv[1]))))
