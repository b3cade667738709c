"""Slots: data that other packages attach to a project or an epoch, with the same lifetime."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Slot(Generic[T]):
    """A kind of attached data; an owner has at most one value, created on first use."""

    def __init__(self, create: Callable[[], T]) -> None:
        self.create = create


class Slots:
    """The attached data of one owner."""

    def __init__(self) -> None:
        self._data: dict[Slot[Any], Any] = {}

    def of(self, slot: Slot[T]) -> T:
        """Return the owner's data of this kind."""
        data: T | None = self._data.get(slot)
        if data is None:
            data = self._data.setdefault(slot, slot.create())
        return data
