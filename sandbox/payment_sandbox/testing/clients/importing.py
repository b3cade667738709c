"""Does something once a library is imported, and imports nothing by itself."""

import sys
from collections.abc import Callable, Collection, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType


class OnImport(MetaPathFinder):
    """Calls a function with each of these libraries: at once if it is loaded, else when it is."""

    def __init__(self, names: Collection[str], then: Callable[[ModuleType], None]) -> None:
        self._waiting = set(names)
        self._then = then

    def begin(self) -> None:
        """Look at what is loaded, and watch what will be."""
        sys.meta_path.insert(0, self)
        for name in sorted(self._waiting & sys.modules.keys()):
            self._loaded(sys.modules[name])

    def end(self) -> None:
        """Watch no longer."""
        self._waiting.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a library as usual, and note the end of its import."""
        if fullname not in self._waiting:
            return None
        self._waiting.discard(fullname)  # or this would be asked again
        spec = find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        self._waiting.add(fullname)
        execute = spec.loader.exec_module

        def executed(module: ModuleType) -> None:
            execute(module)
            self._loaded(module)

        spec.loader.exec_module = executed  # type: ignore[method-assign]
        return spec

    def _loaded(self, module: ModuleType) -> None:
        if module.__name__ in self._waiting:
            self._waiting.discard(module.__name__)
            self._then(module)
