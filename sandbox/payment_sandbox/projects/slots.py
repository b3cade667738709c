"""Slots: what a face of the server keeps for a project or an epoch, and what goes with it by itself."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Slot(Generic[T]):
    """A kind of thing of which an owner has at most one; it is made on first use."""

    def __init__(self, make: Callable[[], T]) -> None:
        self.make = make


class Slots:
    """The things of one owner; they are reachable from nowhere else."""

    def __init__(self) -> None:
        self._things: dict[Slot[Any], Any] = {}

    def of(self, slot: Slot[T]) -> T:
        """The owner's thing of this kind."""
        thing: T | None = self._things.get(slot)
        if thing is None:
            thing = self._things.setdefault(slot, slot.make())
        return thing
