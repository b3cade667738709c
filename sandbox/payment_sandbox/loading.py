"""Late loading, so that the program, the pytest plugin and an import of this package start fast.

A package names the modules that few runs need: ``late(__name__, "sqlite")``. After that, ``from package
import sqlite`` does not load the module, but its first use. Libraries of this kind stand in ``extensions``.

Python locks each module while it loads, but not a package: if two threads import different modules of
urllib3 or ruamel.yaml, one gets a partial module or a deadlock. Therefore one thread loads at a time: it
holds ``LOADING``, and no function has an import of its own. The lock also guards the parsing of Python code,
since some versions of CPython count the depth of all syntax trees in one place.

Acquire this lock after all locks in ``projects/locks.py``. No module acquires a lock while it loads.
"""

import gc
import os
import re
import sys
from importlib import import_module
from threading import RLock
from types import ModuleType
from typing import Any, Final

LOADING: Final = RLock()

if hasattr(os, "register_at_fork"):  # a copy would stay locked if another thread was loading at the fork
    os.register_at_fork(
        before=LOADING.acquire, after_in_child=LOADING.release, after_in_parent=LOADING.release
    )


def load_module(name: str) -> ModuleType:
    """Load a module, unless it is loaded already, without garbage collection, which would only cost time."""
    with LOADING:
        was_collecting = gc.isenabled()
        gc.disable()
        try:
            return import_module(name)
        finally:
            if was_collecting:
                gc.enable()


class LazyModule:
    """A module that is loaded at its first use, which raises an ``ImportError`` if it is missing."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # pytest looks for such names in all values of its plugins
            raise AttributeError(attribute)
        if self._module is None:
            self._module = load_module(self._name)
        return getattr(self._module, attribute)


def late(package: str, *modules: str) -> None:
    """Let ``from package import module`` import these modules of a package without loading them."""
    for name in modules:
        setattr(sys.modules[package], name, LazyModule(f"{package}.{name}"))


def load_validators() -> None:
    """Load marshmallow without a pattern for e-mail addresses, which is compiled at its first use.

    The pattern takes 22 milliseconds, a twentieth of a server's start or of a suite's first test.
    """
    compile_now = re.compile

    def compile_late(pattern: Any, flags: Any = 0) -> Any:
        is_late = sys._getframe(1).f_globals["__name__"] == "marshmallow.validate"
        return _LatePattern(pattern, flags) if is_late else compile_now(pattern, flags)

    re.compile = compile_late
    try:
        load_module("marshmallow.validate")
    finally:
        re.compile = compile_now


class _LatePattern:
    """A regular expression that is compiled at its first use."""

    def __init__(self, pattern: str, flags: Any) -> None:
        self._given = pattern, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # a class looks for some names
            raise AttributeError(name)
        return getattr(re.compile(*self._given), name)
