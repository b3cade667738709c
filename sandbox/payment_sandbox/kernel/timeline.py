"""A clock that advances from one due event to the next, and never backwards."""

import heapq
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar

Item = TypeVar("Item")


class DueItem(NamedTuple, Generic[Item]):
    """An item and its due time."""

    at: datetime
    sequence: int
    item: Item


class Timeline(Generic[Item]):
    """A clock with a queue of due items; items due at the same time keep their insertion order."""

    __slots__ = ("_heap", "now", "on_move", "sequence")

    def __init__(self, now: datetime, sequence: int = 0, entries: Sequence[DueItem[Item]] = ()) -> None:
        self.now = now
        self.on_move: Callable[[datetime], None] | None = None  # called with every new time
        self.sequence = sequence  # the newest item's number, which breaks ties
        self._heap: list[DueItem[Item]] = list(entries)  # sequences are unique, so items are never compared
        heapq.heapify(self._heap)

    def __len__(self) -> int:
        return len(self._heap)

    def schedule(self, at: datetime, item: Item) -> DueItem[Item]:
        """Add ``item``, due at ``at``; a moment in the past means now."""
        due = DueItem(at, self.sequence + 1, item)
        self.add(due)
        return due

    def add(self, due: DueItem[Item]) -> None:
        """Add an item with an existing sequence number."""
        self.sequence = max(self.sequence, due.sequence)
        heapq.heappush(self._heap, due)

    def batch(self, first: int, count: int) -> list[DueItem[Item]]:
        """Return a slice of the unordered items; consecutive slices cover all queued items."""
        return self._heap[first : first + count]

    def head(self) -> DueItem[Item] | None:
        """Return the first due item, without removing it."""
        heap = self._heap
        return heap[0] if heap else None

    def remove(self, sequences: Collection[int]) -> None:
        """Remove the items with these sequence numbers; cheap for the items due first."""
        heap, remaining = self._heap, set(sequences)
        while remaining and heap and heap[0].sequence in remaining:
            remaining.remove(heapq.heappop(heap).sequence)
        if remaining:
            self._heap = [due for due in heap if due.sequence not in remaining]
            heapq.heapify(self._heap)

    def move_to(self, moment: datetime) -> None:
        """Advance to ``moment``; a no-op if it is not after now."""
        if moment > self.now:
            self.now = moment
            if self.on_move is not None:
                self.on_move(moment)

    def __iter__(self) -> Iterator[DueItem[Item]]:
        """Iterate over all items, earliest first."""
        return iter(sorted(self._heap))

    def in_order(self) -> Iterator[DueItem[Item]]:
        """Yield all items, earliest first, sorted lazily."""
        heap = self._heap
        candidates = [(heap[0], 0)] if heap else []
        while candidates:
            due, index = heapq.heappop(candidates)
            yield due
            for child in (2 * index + 1, 2 * index + 2):
                with suppress(IndexError):  # read without a lock, so the heap may have shrunk
                    heapq.heappush(candidates, (heap[child], child))
