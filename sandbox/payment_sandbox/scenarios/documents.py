"""YAML as people write it: plain data, and where in the text each part of it stands."""

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
    """Plain data with the place of every path in it."""

    data: Any
    places: Mapping[str, Place]

    def place_of(self, path: str) -> Place:
        """Where a path stands; what is missing stands where it should be, in its parent."""
        while path and path not in self.places:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return self.places.get(path, Place(1, 1))

    def placed(self, found: Iterable[Violation], file: str | None) -> list[Violation]:
        """The same with file, line and column, in the order of the text."""
        placed = [one._replace(file=file, **self.place_of(one.path)._asdict()) for one in found]
        return sorted(placed, key=lambda one: (one.line or 0, one.column or 0))

    @contextmanager
    def placing(self, file: str | None = None) -> Iterator[None]:
        """Give the violations found inside the place where they stand in the text."""
        try:
            yield
        except Invalid as invalid:
            if not self.places:
                raise
            raise Invalid(self.placed(invalid.violations, file)) from None


def parse_yaml(text: str, file: str | None = None) -> Document:
    """Parse one YAML 1.2 document; JSON is YAML.

    Raises:
        Invalid: names what is wrong, with line and column.
    """
    from ruamel.yaml import YAML  # here, because starting up is faster without it
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
    """Plain data of a node; notes the place of every key and item on the way."""
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
    """Note where keys or items stand; what was merged in from elsewhere has no place of its own."""
    for key, path in paths.items():
        with suppress(KeyError):
            mark = mark_of(key)
            if mark is not None:
                places[path] = Place(mark[0] + 1, mark[1] + 1)


def _scalar(node: Any) -> Any:
    if isinstance(node, bool) or node is None:
        return node
    if type(node).__name__ == "ScalarBoolean":  # one with an anchor, and an int, too
        return bool(node)
    for kind in (int, float, str):
        if isinstance(node, kind):
            return kind(node)
    if isinstance(node, date):
        return node.isoformat()
    raise ValueError(f"it holds a {type(node).__name__}, which no scenario has")
