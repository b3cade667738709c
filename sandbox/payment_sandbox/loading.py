"""Lazy loading, so that the program, the pytest plugin and an import of this package start fast.

A module that starts late is loaded at the first use of one of its names:

    if TYPE_CHECKING:
        from payment_sandbox.serving import tls
    else:
        tls = lazy("payment_sandbox.serving.tls")

Python locks each module while it loads, but not a package: if two threads import different modules of
urllib3 or ruamel.yaml, one gets a partial module or a deadlock. Therefore one thread loads at a time: it
holds ``LOADING``. No function has an import of its own; ruff checks that.

The lock also guards the parsing of Python code, since some versions of CPython count the depth of all
syntax trees in one place.

Acquire this lock after all locks in ``projects/locks.py``. No module acquires a lock while it loads.
"""

import gc
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec, module_from_spec
from threading import RLock
from types import ModuleType
from typing import Any, Final

LOADING: Final = RLock()
SERVER_MODULES: Final = {"aiohttp": ("web",), "werkzeug": ("routing", "wrappers")}

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


class _LazyModule:
    """A module that is loaded at its first use."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # pytest looks for such names in all values of its plugins
            raise AttributeError(attribute)
        if self._module is None:
            self._module = load_module(self._name)
        return getattr(self._module, attribute)


def lazy(name: str) -> Any:
    """Return a module that is loaded at the first use of one of its names.

    That use raises ``ModuleNotFoundError`` if the module, or a library that it imports, is missing.
    """
    return _LazyModule(name)


def late(package: str, *modules: str) -> None:
    """Let ``from package import module`` import these modules of a package without loading them."""
    for name in modules:
        setattr(sys.modules[package], name, _LazyModule(f"{package}.{name}"))


def load_validators() -> None:
    """Load marshmallow without a pattern for e-mail addresses, which is compiled at its first use.

    The pattern takes 30 ms, a tenth of a server's start or of a suite's first test.
    """
    with _late_patterns_of("marshmallow.validate"):
        load_module("marshmallow.validate")


def load_server_libraries() -> None:
    """Load aiohttp and Werkzeug without parts that no server uses, or not at first.

    Of 340 ms to the first response, 30 are the client of aiohttp, whose package imports it, and which reads
    all certificates of the system, 12 the test client and the server of Werkzeug, and 12 the patterns of
    both. Whatever asks for one of them later gets it. Called before any thread.
    """
    with _late_patterns_of(*SERVER_MODULES), suppress(ModuleNotFoundError):  # a server names what is missing
        for package, modules in SERVER_MODULES.items():
            if package not in sys.modules and (spec := find_spec(package)) is not None:
                sys.modules[package] = module_from_spec(spec)
                sys.modules[package].__class__ = _LatePackage
            for module in modules:
                load_module(f"{package}.{module}")


@contextmanager
def _late_patterns_of(*modules: str) -> Iterator[None]:
    """Let the patterns of modules, or of all modules of packages, be compiled at their first use."""
    compile_now = re.compile

    def compile_late(pattern: Any, flags: Any = 0) -> Any:
        is_late = sys._getframe(1).f_globals["__name__"].startswith(modules)
        return _LatePattern(lambda: compile_now(pattern, flags)) if is_late else compile_now(pattern, flags)

    re.compile = compile_late
    try:
        yield
    finally:
        re.compile = compile_now


class _LatePattern:
    """A regular expression that is compiled at its first use."""

    def __init__(self, compiled: Callable[[], re.Pattern[str]]) -> None:
        self._compiled = lru_cache(compiled)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # a class looks for some names
            raise AttributeError(name)
        value = getattr(self._compiled(), name)
        setattr(self, name, value)  # as fast as a pattern's own from now on
        return value


class _LatePackage(ModuleType):
    """A package of which modules can be imported alone; another name than theirs loads all of it."""

    def __getattr__(self, name: str) -> Any:
        spec, loader = self.__spec__, self.__loader__
        assert spec is not None
        assert isinstance(loader, SourceFileLoader), "the package consists of files"
        source = loader.get_source(spec.name) or "" if name == "__version__" else ""
        if version := re.search('^__version__ = "(.+)"', source, re.MULTILINE):
            return version[1]
        if find_spec(f"{spec.name}.{name}") is not None:
            return load_module(f"{spec.name}.{name}")
        if name.startswith("_"):  # the import system looks for some names
            raise AttributeError(name)
        with LOADING:
            if isinstance(self, _LatePackage):
                object.__setattr__(self, "__class__", ModuleType)
                loader.exec_module(self)
        return getattr(self, name)
