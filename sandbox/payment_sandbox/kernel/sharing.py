"""One copy of what many records have in common."""

from collections.abc import Hashable, Mapping
from typing import Any, Final, TypeVar

Value = TypeVar("Value")

NOTHING: Final[Mapping[str, Any]] = {}
"""The fields of whatever has none; a mapping of its own would take more memory than some records."""

LENGTH_MAX: Final = 100  # longer texts are rarely the same
KNOWN_MAX: Final = 1000
TEXTS_ONLY: Final = frozenset({str})


class SharedValues:
    """Texts that come again and again, such as names of fields, and objects of texts.

    When there are many, all are forgotten: the next records have others in common.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}

    def value(self, value: Any) -> Any:
        """Equal data whose texts are shared; an object or a list is copied."""
        kind = type(value)
        if kind is str:
            if len(value) > LENGTH_MAX:
                return value
            known = self._known.get(value)
            return known if known is not None else self._remember(value, value)
        if kind is dict:
            return self.object({self.value(name): self.value(inner) for name, inner in value.items()})
        return list(map(self.value, value)) if kind is list else value

    def object(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """The first object with the same texts in the same order; another one if there are other values."""
        if not TEXTS_ONLY.issuperset(map(type, fields.values())):
            return fields  # 1, 1.0 and true are equal, and written differently
        return self._remember(tuple(fields.items()), fields) if fields else NOTHING

    def _remember(self, key: Hashable, value: Value) -> Value:
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        first: Value = self._known.setdefault(key, value)
        return first
