"""Lazy loading, so that the program, the pytest plugin and an import of this package start fast.

A module that starts late is loaded at the first use of one of its names:

    if TYPE_CHECKING:
        from payment_sandbox.serving import tls
    else:
        tls = lazy("payment_sandbox.serving.tls")

Python locks each module while it loads, but not a package: if two threads import different modules of
urllib3, ruamel.yaml or prometheus_client, one gets a partial module or a deadlock, and pygments replaces its
own modules while they load. Therefore one thread loads at a time: it holds ``LOADING``. No function has
an import of its own; ruff checks that.

The lock also guards the parsing of Python code, since some versions of CPython count the depth of all
syntax trees in one place.

Acquire this lock after all locks in ``projects/locks.py``. No module acquires a lock while it loads.
"""

import gc
import os
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
