"""YAML parsing with the line and column of every part."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from math import isfinite
from typing import Any, Final, NamedTuple

from payment_sandbox.extensions import yaml
from payment_sandbox.kernel.patterns import FORBIDDEN_CHARACTER
from payment_sandbox.orders.refusals import Invalid, Violation

TEXT_LENGTH_MAX: Final = 1 << 18
NODES_MAX: Final = 20_000  # the nodes of an anchor count once per alias
DEPTH_MAX: Final = 50
KEY_LENGTH_MAX: Final = 1_000
PROBLEM_LENGTH_MAX: Final = 300  # parser messages quote the document
ALIASES_MAX: Final = 1_000

_TAG_PREFIX: Final = "tag:yaml.org,2002:"
_CONVERTED_KINDS: Final = ("int", "float", "bool", "null")
_TEXT_KINDS: Final = ("str", "timestamp", "merge", "value")


class Position(NamedTuple):
    """A line and a column, counted from 1."""

    line: int
    column: int


class Document:
    """Plain data with the line and column of its parts."""

    def __init__(self, data: Any, root: Any = None, *, has_positions: bool = True) -> None:
        """Hold the data and its root YAML node; JSON has no positions."""
        self.data = data
        self._root = root
        self.has_positions = has_positions
        self._children: dict[int, dict[str, tuple[Position, Any]]] = {}

    def position_of(self, path: str) -> Position:
        """Return the position of a path; a missing path has the position of its parent."""
        position, node, rest = Position(1, 1), self._root, path
        while rest and node is not None:
            children = self._children_of(node)
            end = next((end for end in _segment_ends(rest) if rest[:end] in children), None)
            if end is None:
                break
            position, node = children[rest[:end]]
            rest = rest[end:].removeprefix(".")
        return position

    def _children_of(self, node: Any) -> dict[str, tuple[Position, Any]]:
        """Return the children of a node by path segment, such as a key or ``[0]``, with their positions."""
        children = self._children.get(id(node))
        if children is None:
            if node.id == "mapping":
                pairs = [(key.value, key, value) for key, value in node.value if _value_kind(key) != "merge"]
            elif node.id == "sequence":
                pairs = [(f"[{index}]", item, item) for index, item in enumerate(node.value)]
            else:
                pairs = []
            children = {name: (_position(marked.start_mark), inner) for name, marked, inner in pairs}
            self._children[id(node)] = children
        return children

    def with_positions(self, violations: Iterable[Violation], file: str | None) -> list[Violation]:
        """Return the violations with file, line and column, sorted; those of another file keep theirs."""
        positioned = [
            one._replace(file=file, **self.position_of(one.path)._asdict()) if one.file is None else one
            for one in violations
        ]
        return sorted(positioned, key=lambda one: (one.line or 0, one.column or 0))

    @contextmanager
    def add_positions(self, file: str | None = None) -> Iterator[None]:
        """Add file, line and column to violations raised inside."""
        try:
            yield
        except Invalid as invalid:
            if not self.has_positions:
                raise
            raise Invalid(self.with_positions(invalid.violations, file)) from None


def parse_yaml(text: str, file: str | None = None) -> Document:
    """Parse one YAML 1.2 document; JSON works too.

    Raises:
        Invalid: states the problem, with line and column.
    """
    try:
        if len(text) > TEXT_LENGTH_MAX:
            raise yaml.error.YAMLError(f"it is longer than {TEXT_LENGTH_MAX} characters")
        return _compose(text)
    except yaml.error.MarkedYAMLError as error:
        position = _position(error.problem_mark) if error.problem_mark is not None else Position(1, 1)
        reason = str(error.problem or error.context)[:PROBLEM_LENGTH_MAX]
        problem = f"is not valid YAML: {reason}"
        raise Invalid([Violation("", problem, file=file, **position._asdict())]) from None
    except yaml.error.YAMLError as error:
        raise Invalid(
            [Violation("", f"is not valid YAML: {error}", file=file, **Position(1, 1)._asdict())]
        ) from None


def _compose(text: str) -> Document:
    def refuse(problem: str, node: Any) -> Any:
        raise yaml.error.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)

    class LimitedComposer(yaml.composer.Composer):
        """A composer that refuses a document as soon as it exceeds a limit."""

        nodes = aliases = levels = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            event = self.parser.peek_event()
            self.nodes += 1
            self.aliases += isinstance(event, yaml.events.AliasEvent)
            self.levels += 1
            if self.nodes > NODES_MAX:
                refuse(f"it has more than {NODES_MAX} parts", event)
            if self.aliases > ALIASES_MAX:
                refuse(f"it has more than {ALIASES_MAX} aliases", event)
            if self.levels > DEPTH_MAX:
                refuse(f"it is nested deeper than {DEPTH_MAX} levels", event)
            node = super().compose_node(parent, index)
            self.levels -= 1
            return node

    parser = yaml.YAML(typ="safe", pure=True)
    parser.version = (1, 2)
    parser.Composer = LimitedComposer
    root = parser.compose(text)
    reader = _Reader(parser.constructor, refuse)
    return Document(reader.convert(root) if root is not None else None, root)


class _Reader:
    def __init__(self, constructor: Any, refuse: Any) -> None:
        self._constructor = constructor
        self._refuse = refuse
        self._nodes = self._levels = 0

    def convert(self, node: Any) -> Any:
        """Convert a node to plain data."""
        self._nodes += 1
        self._levels += 1
        if self._nodes > NODES_MAX:
            self._refuse(f"with aliases expanded, it has more than {NODES_MAX} nodes", node)
        if self._levels > DEPTH_MAX:
            self._refuse(f"with aliases expanded, it is nested deeper than {DEPTH_MAX} levels", node)
        kind = _value_kind(node)
        if node.id == "mapping" and kind == "map":
            data: Any = self._convert_mapping(node)
        elif node.id == "sequence" and kind == "seq":
            data = [self.convert(item) for item in node.value]
        elif node.id == "scalar":
            data = self._convert_scalar(node, kind)
        else:
            data = self._refuse(f"the tag {node.tag} is not supported", node)
        self._levels -= 1
        return data

    def _convert_mapping(self, node: Any) -> dict[str, Any]:
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, value in node.value:
            if _value_kind(key) == "merge":
                merged = self._merge(value) | merged
                continue
            if key.id != "scalar":
                self._refuse("a key must be plain text", key)
            if len(key.value) > KEY_LENGTH_MAX:
                self._refuse(f"a key has more than {KEY_LENGTH_MAX} characters", key)
            name = self._read_text(key)
            if name in own:
                self._refuse(f"found duplicate key {name[:100]!r}", key)
            own[name] = self.convert(value)
        return own | {name: value for name, value in merged.items() if name not in own}

    def _merge(self, node: Any) -> dict[str, Any]:
        """Return the data of a merge key; the first of several mappings takes precedence."""
        merged: dict[str, Any] = {}
        for source in node.value if node.id == "sequence" else [node]:
            if source.id != "mapping":
                self._refuse("only mappings can be merged in with <<", source)
            merged = self.convert(source) | merged
        return merged

    def _read_text(self, node: Any) -> str:
        if FORBIDDEN_CHARACTER.search(node.value):
            self._refuse("it contains a lone surrogate or a NUL character", node)
        return str(node.value)

    def _convert_scalar(self, node: Any, kind: str) -> Any:
        if kind in _TEXT_KINDS:
            return self._read_text(node)
        if kind not in _CONVERTED_KINDS:
            self._refuse(f"the tag {node.tag} is not supported", node)
        try:
            value = self._constructor.construct_object(node)
        except (ValueError, KeyError):  # more digits than Python converts, or a wrong tag
            return self._refuse(f"{node.value[:40]!r} is not a valid {kind}", node)
        if isinstance(value, float) and not isfinite(value):
            self._refuse(f"{node.value[:40]!r} is not a finite number", node)
        return value


def _value_kind(node: Any) -> str:
    return str(node.tag).removeprefix(_TAG_PREFIX)


def _position(mark: Any) -> Position:
    return Position(mark.line + 1, mark.column + 1)


def _segment_ends(path: str) -> Iterator[int]:
    """Yield the possible ends of a path's first segment, longest first: keys may have dots and brackets."""
    for end in range(min(len(path), KEY_LENGTH_MAX), 0, -1):
        if end == len(path) or path[end] in ".[":
            yield end
