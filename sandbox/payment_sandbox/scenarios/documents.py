"""YAML parsing that keeps the line and column of every part."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import date
from typing import Any, Final, NamedTuple

from payment_sandbox.orders.refusals import Invalid, Violation

NODES_MAX: Final = 100_000
TEXT_BYTES_MAX: Final = 1 << 20


class Place(NamedTuple):
    """A line and a column, from 1."""

    line: int
    column: int


class Document(NamedTuple):
    """Plain data, with the line and column of every path."""

    data: Any
    places: Mapping[str, Place]

    def place_of(self, path: str) -> Place:
        """The place of a path; for a missing one, the place of its parent."""
        while path and path not in self.places:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return self.places.get(path, Place(1, 1))

    def placed(self, found: Iterable[Violation], file: str | None) -> list[Violation]:
        """The violations with file, line and column, in the order of the text."""
        placed = [one._replace(file=file, **self.place_of(one.path)._asdict()) for one in found]
        return sorted(placed, key=lambda one: (one.line or 0, one.column or 0))

    @contextmanager
    def placing(self, file: str | None = None) -> Iterator[None]:
        """Add file, line and column to violations raised inside."""
        try:
            yield
        except Invalid as invalid:
            if not self.places:
                raise
            raise Invalid(self.placed(invalid.violations, file)) from None


def parse_yaml(text: str, file: str | None = None) -> Document:
    """Parse one YAML 1.2 document; JSON works too.

    Raises:
        Invalid: says what is wrong, with line and column.
    """
    from ruamel.yaml import YAML  # imported here for a faster startup
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    yaml = YAML(typ="rt", pure=True)
    yaml.version = (1, 2)
    try:
        if len(text) > TEXT_BYTES_MAX:
            raise YAMLError(f"it is longer than {TEXT_BYTES_MAX} characters")
        places: dict[str, Place] = {"": Place(1, 1)}
        return Document(_plain(yaml.load(text), "", places), places)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
        problem = f"is not valid YAML: {error.problem or error.context}"
        raise Invalid([Violation("", problem, file=file, line=line, column=column)]) from None
    except (YAMLError, ValueError, RecursionError) as error:
        problem = f"is not valid YAML: {error or 'it is nested too deeply'}"
        raise Invalid([Violation("", problem, file=file, line=1, column=1)]) from None


def _plain(node: Any, path: str, places: dict[str, Place]) -> Any:
    """The plain data of a node; records the place of every key and item."""
    if len(places) > NODES_MAX:
        raise ValueError(f"it has more than {NODES_MAX} parts")
    if isinstance(node, dict):
        paths = {key: f"{path}.{key}" if path else str(key) for key in node}
        _note(paths, node.lc.key, places)  # type: ignore[attr-defined]
        return {str(key): _plain(value, paths[key], places) for key, value in node.items()}
    if isinstance(node, list):
        paths = {index: f"{path}[{index}]" for index in range(len(node))}
        _note(paths, node.lc.item, places)  # type: ignore[attr-defined]
        return [_plain(item, paths[index], places) for index, item in enumerate(node)]
    return _scalar(node)


def _note(paths: Mapping[Any, str], mark_of: Callable[[Any], Any], places: dict[str, Place]) -> None:
    """Record the places of keys or items; those merged in from elsewhere have none."""
    for key, path in paths.items():
        with suppress(KeyError):
            mark = mark_of(key)
            if mark is not None:
                places[path] = Place(mark[0] + 1, mark[1] + 1)


def _scalar(node: Any) -> Any:
    if isinstance(node, bool) or node is None:
        return node
    if type(node).__name__ == "ScalarBoolean":  # a boolean with an anchor, which is an int subclass
        return bool(node)
    for kind in (int, float, str):
        if isinstance(node, kind):
            return kind(node)
    if isinstance(node, date):
        return node.isoformat()
    raise ValueError(f"it contains a value of type {type(node).__name__}, which is not supported")
