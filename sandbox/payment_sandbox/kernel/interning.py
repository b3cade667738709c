"""Interning: equal values of many records share one copy."""

from collections.abc import Hashable, Mapping
from typing import Any, Final, TypeVar

Value = TypeVar("Value")

EMPTY_MAPPING: Final[Mapping[str, Any]] = {}
"""The shared empty mapping, to save memory."""

LENGTH_MAX: Final = 100  # longer strings rarely repeat
CACHED_MAX: Final = 1000
STRING_TYPE: Final = frozenset({str})


class SharedValues:
    """A cache of recurring strings, such as field names, and of objects whose values are all strings.

    A full cache is cleared, because later records may share other values.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}

    def share(self, value: Any) -> Any:
        """Return equal data with shared strings; objects and lists are copied."""
        kind = type(value)
        if kind is str:
            if len(value) > LENGTH_MAX:
                return value
            known = self._known.get(value)
            return known if known is not None else self._remember(value, value)
        if kind is dict:
            return self.share_object({self.share(name): self.share(inner) for name, inner in value.items()})
        return list(map(self.share, value)) if kind is list else value

    def share_object(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the cached object with these strings in this order; return any other object unchanged."""
        if not STRING_TYPE.issuperset(map(type, fields.values())):
            return fields  # 1, 1.0 and True are equal, but serialized differently
        return self._remember(tuple(fields.items()), fields) if fields else EMPTY_MAPPING

    def _remember(self, key: Hashable, value: Value) -> Value:
        if len(self._known) >= CACHED_MAX:
            self._known.clear()
        first: Value = self._known.setdefault(key, value)
        return first
