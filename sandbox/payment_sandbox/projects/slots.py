"""Slots: data that a face of the server attaches to a project or an epoch, and that is freed with it."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Slot(Generic[T]):
    """A kind of attached data; an owner has at most one, created on first use."""

    def __init__(self, make: Callable[[], T]) -> None:
        self.make = make


class Slots:
    """The attached data of one owner, reachable only through it."""

    def __init__(self) -> None:
        self._things: dict[Slot[Any], Any] = {}

    def of(self, slot: Slot[T]) -> T:
        """Return the owner's data of this kind."""
        thing: T | None = self._things.get(slot)
        if thing is None:
            thing = self._things.setdefault(slot, slot.make())
        return thing
