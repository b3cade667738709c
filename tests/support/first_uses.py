"""Concurrent first uses of the modules that the package loads lazily, on eight threads in a fresh process."""

import ast
import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from random import Random  # noqa: TID251 (an order of its own for each thread)
from threading import Event
from typing import NamedTuple

from payment_sandbox.loading import load_module

SOURCE = Path(__file__).parents[2] / "sandbox"
THREADS = 8
PAUSE_SECONDS = 0.001  # enough for a thread to proceed until it blocks


class LazyModule(NamedTuple):
    """A module that another module loads lazily, under a name."""

    file: Path
    name: str
    module: str


def lazy_modules() -> Iterator[LazyModule]:
    """Yield the modules that are loaded lazily, once for each file."""
    for file in sorted(SOURCE.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "lazy(" in text else ():
            if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("lazy("):
                (argument,) = [each for each in ast.walk(node.value) if isinstance(each, ast.Constant)]
                yield LazyModule(file, ast.unparse(node.targets[0]), str(argument.value))


def loadable_names() -> list[str]:
    """Return the names of the modules whose library is installed; some libraries belong to shops."""
    names = {each.module for each in lazy_modules()}
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
