"""A clock that moves from one due event to the next, and never backwards."""

import heapq
from collections.abc import Callable, Collection, Iterator, Sequence
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
    """Holds due items; items due at the same time come in the order in which they were added."""

    __slots__ = ("_heap", "moved", "now", "sequence")

    def __init__(self, now: datetime, sequence: int = 0, entries: Sequence[Due[Item]] = ()) -> None:
        self.now = now
        self.moved: Callable[[datetime], None] | None = None  # is told of every new time
        self.sequence = sequence  # the newest item's number, which orders ties
        self._heap: list[Due[Item]] = list(entries)  # sequences are unique, so items are never compared
        heapq.heapify(self._heap)

    def __len__(self) -> int:
        return len(self._heap)

    def schedule(self, at: datetime, item: Item) -> Due[Item]:
        """Add ``item``, due at ``at``; a moment in the past means now."""
        due = Due(at, self.sequence + 1, item)
        self.add(due)
        return due

    def add(self, due: Due[Item]) -> None:
        """Add an item that already has its sequence number."""
        self.sequence = max(self.sequence, due.sequence)
        heapq.heappush(self._heap, due)

    def some(self, first: int, count: int) -> list[Due[Item]]:
        """A few items, in no order; piece by piece, they are all that stay meanwhile."""
        return self._heap[first : first + count]

    def head(self) -> Due[Item] | None:
        """The item that is due first; it is not removed."""
        heap = self._heap
        return heap[0] if heap else None

    def remove(self, gone: Collection[int]) -> None:
        """Remove the items with these sequence numbers; cheap if they are due first."""
        heap, remaining = self._heap, set(gone)
        while remaining and heap and heap[0].sequence in remaining:
            remaining.remove(heapq.heappop(heap).sequence)
        if remaining:
            self._heap = [due for due in heap if due.sequence not in remaining]
            heapq.heapify(self._heap)

    def move_to(self, moment: datetime) -> None:
        """Go to ``moment``; an earlier moment than now changes nothing."""
        if moment > self.now:
            self.now = moment
            if self.moved is not None:
                self.moved(moment)

    def __iter__(self) -> Iterator[Due[Item]]:
        """All items, earliest first."""
        return iter(sorted(self._heap))

    def first(self) -> Iterator[Due[Item]]:
        """All items, earliest first, sorted lazily."""
        heap = self._heap
        nearest = [(heap[0], 0)] if heap else []
        while nearest:
            due, place = heapq.heappop(nearest)
            yield due
            for child in (2 * place + 1, 2 * place + 2):
                with suppress(IndexError):  # read without a lock, it may be shorter by now
                    heapq.heappush(nearest, (heap[child], child))
