"""A clock that goes from one due event to the next, and never backwards."""

import heapq
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar

Item = TypeVar("Item")


class Due(NamedTuple, Generic[Item]):
    """An item and the moment at which it is due."""

    at: datetime
    sequence: int
    item: Item


class Timeline(Generic[Item]):
    """Holds what is due when; items that are due together come in the order in which they were added."""

    __slots__ = ("_heap", "now", "sequence")

    def __init__(self, now: datetime, sequence: int = 0, entries: Sequence[Due[Item]] = ()) -> None:
        self.now = now
        self.sequence = sequence  # the place of the newest item among ties
        self._heap: list[Due[Item]] = list(entries)  # no two have one sequence, so items are never compared
        heapq.heapify(self._heap)

    def __len__(self) -> int:
        return len(self._heap)

    def schedule(self, at: datetime, item: Item) -> Due[Item]:
        """Add ``item``, due at ``at``; a moment that has passed already means: now."""
        due = Due(at, self.sequence + 1, item)
        self.add(due)
        return due

    def add(self, due: Due[Item]) -> None:
        """Add what has its place among ties already."""
        self.sequence = max(self.sequence, due.sequence)
        heapq.heappush(self._heap, due)

    def head(self) -> Due[Item] | None:
        """What is due first; it stays where it is."""
        heap = self._heap
        return heap[0] if heap else None

    def remove(self, gone: Collection[int]) -> None:
        """Forget what has one of these places; cheap where that is what is due first."""
        heap, left = self._heap, set(gone)
        while left and heap and heap[0].sequence in left:
            left.remove(heapq.heappop(heap).sequence)
        if left:
            self._heap = [due for due in heap if due.sequence not in left]
            heapq.heapify(self._heap)

    def move_to(self, moment: datetime) -> None:
        """Go to ``moment``; a moment before now changes nothing, for time never goes back."""
        if moment > self.now:
            self.now = moment

    def __iter__(self) -> Iterator[Due[Item]]:
        """All that is due, first things first."""
        return iter(sorted(self._heap))

    def first(self) -> Iterator[Due[Item]]:
        """All that is due, first things first, without looking at more than is asked for."""
        heap = self._heap
        nearest = [(heap[0], 0)] if heap else []
        while nearest:
            due, place = heapq.heappop(nearest)
            yield due
            for child in (2 * place + 1, 2 * place + 2):
                with suppress(IndexError):  # whoever reads without a lock may find it shorter by now
                    heapq.heappush(nearest, (heap[child], child))
